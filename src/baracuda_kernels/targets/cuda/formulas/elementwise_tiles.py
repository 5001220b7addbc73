"""How much of a formula's elements one program takes: computed from the program, the extents and the layouts."""

from __future__ import annotations

import functools
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Program, in_order
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = ["Block", "ElementwiseTile", "block_for", "elements_per_thread", "live_words", "operands_of", "tile_for", "vector_for"]

WARPS = 4
REGISTERS = 112  # words of a thread for a formula's numbers: with some for places, half of what a thread can have
FEW_PROGRAMS = 256  # with less, multiprocessors stay idle, and each program had better do less
# Words of a thread in blocks, which need none for places: as they were measured, of formulas, and of the usual part of those that have
# a slow path, by their operands.
OF_BLOCKS, OF_TWO_OPERANDS, OF_THREE, OF_MANY = 200, 256, 320, 170
SIDE = 64  # of a tile that is turned on chip: both ways, whole lines of memory


class Block(NamedTuple):
    """A block of adjacent elements: how many, and how many of them a thread reads at once."""

    size: int
    vector: int
    warps: int


class ElementwiseTile(NamedTuple):
    rows: int
    cols: int
    warps: int


def vector_for(largest: ElementKind | None) -> int:
    """How many neighbours a thread reads at once: 16 bytes of the largest element, and as many of all others. So none changes threads."""
    return 1 if largest is None else VECTOR_BYTES // largest.size


def block_for(program: Program, count: int, vector: int) -> Block:
    """Two vectors for each thread, unless the formula has too many numbers under way, or elements are few."""
    each = min(2 * vector, elements_per_thread(program, REGISTERS if _computes_in_f64(program) else OF_BLOCKS))
    warps = WARPS
    if usual(program) is not None and (vector > 2 or _is_packed(program)):
        # A single warp knows without others whether the slow path is needed. As 32 of them share a multiprocessor, it has to have
        # much to read.
        each, warps = _vectors_with_rare(program, vector) * vector, 1
    while each > vector and count < FEW_PROGRAMS * 32 * warps * each:
        each //= 2
    return Block(32 * warps * each, min(vector, each), warps)


def operands_of(program: Program) -> int:
    """How many are read or written."""
    return sum(here.operation == "input" for here in in_order(program.results)) + len(program.outputs)


def _vectors_with_rare(program: Program, vector: int) -> int:
    """Vectors per thread: the fewer operands, the more of each."""
    operands, words = operands_of(program), vector * _words_of_usual(program)
    if operands <= 2 or _is_packed(program):  # two numbers at once are half a vector of each
        return 4 if 4 * words <= OF_TWO_OPERANDS else 2
    return 2 if 2 * words <= (OF_THREE if operands == 3 else OF_MANY) else 1


@functools.cache
def _words_of_usual(program: Program) -> int:
    """Registers that a thread needs for an element on the fast path; what is called, as divisions are, needs some of its own."""
    part = usual(program) or program
    return live_words(part) + (2 if any(here.operation in ("div", "sqrt") for here in in_order(part.results)) else 0)


def _is_packed(program: Program) -> bool:
    """Whether operands are pairs of f32, as complex ones are, and computed as such."""
    return ElementKind.I64 in (*program.inputs, *program.outputs) and not _computes_in_f64(program)


def _computes_in_f64(program: Program) -> bool:
    """What is usual of it: other threads had better have time for that."""
    order = in_order((usual(program) or program).results)
    return any(here.element is ElementKind.F64 and here.operation not in ("parameter", "constant") for here in order)


def tile_for(program: Program, rows: int, cols: int, others: int, vector: int, turned: bool) -> ElementwiseTile:
    """The tile of two axes; results are contiguous along the columns, and operands along the rows if `turned`."""
    most = elements_per_thread(program)
    vector = min(vector, most)
    if not turned:
        # Warps side by side, and rows one after the other in each: what all rows share is then read once, by who needs it.
        width = _width(cols, 32 * vector, 32 * WARPS * vector)
        warps = width // (32 * vector) or WARPS
        height = min(power_of_two(rows), max(1, 32 * warps * min(2 * vector, most) // width))
        return ElementwiseTile(height, width, warps)
    few = rows * cols * others < FEW_PROGRAMS * SIDE * SIDE
    side = SIDE // 2 if few or most < 8 else SIDE
    height, width = min(power_of_two(rows), side), min(power_of_two(cols), side)
    if height < side:
        width = min(power_of_two(cols), side * side // height)
    elif width < side:
        height = min(power_of_two(rows), side * side // width)
    return ElementwiseTile(height, width, max(1, min(16, height * width // (32 * min(most, side // 4)))))


def _width(cols: int, least: int, most: int) -> int:
    """The part of a row for which the fewest places are without work; an eighth of them does not matter, and less than `least` is left
    to very short rows."""
    width = min(power_of_two(cols), most)
    waste: dict[int, int] = {}
    while width >= least or not waste:
        waste[width] = -cols % width if 8 * (-cols % width) > cols else 0
        width //= 2
    return min(waste, key=lambda width: waste[width])


@functools.cache
def elements_per_thread(program: Program, words: int = REGISTERS) -> int:
    """The largest power of two whose numbers fit into so many registers of a thread, on the fast path."""
    return 1 << max(0, min(32, words // live_words(usual(program) or program)).bit_length() - 1)


def live_words(program: Program) -> int:
    """The most words that numbers take which are still needed, at any time, if they are computed in order. What depends on no operand is
    the same for all threads, and in none of their registers."""
    order = in_order(program.results)
    shared: set[Expr] = set()
    last: dict[Expr, int] = {}
    for now, here in enumerate(order):
        last.update((arg, now) for arg in here.args)
    last.update((result, len(order)) for result in program.results)
    live = {here for here in order if here.operation == "input"}  # which are read before all else
    most = 1
    for now, here in enumerate(order):
        if here.operation != "input" and all(arg in shared for arg in here.args):
            shared.add(here)
        else:
            live.add(here)
        most = max(most, sum(-(-each.element.size // 4) for each in live))
        live = {each for each in live if last[each] > now}
    return most
