"""How much of an order statistic one program takes on CUDA, and the workspace of programs, computed from the extents."""

from __future__ import annotations

from typing import Any, NamedTuple

from baracuda_kernels.ops.order_statistics.descriptor import Interpolation, QuantileBackwardDescriptor, QuantileDescriptor
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = [
    "DIGIT",
    "LONG_TILE",
    "MOST_QUANTILES",
    "MOST_SORTED",
    "Buffers",
    "LineSplit",
    "RegisterTile",
    "buffers_of",
    "fits_registers",
    "queries_of",
    "register_tile",
    "sorted_tile",
    "split_for",
    "spread_tile",
    "workspace_bytes",
]  # fmt: skip

REGISTER_BYTES = 64 << 10  # of the keys of a line that one program holds in its registers
MOST_SORTED = 4096  # elements of a line whose mode is found
MOST_QUANTILES = 64  # that are told to a program
SMALL = 2048  # elements of several lines that a program takes at once
BESIDE = 8  # adjacent lines, a sector of four-byte elements
LONG_TILE = 4096  # elements of a longer line that are read at once
DIGIT = 256  # what one pass over a longer line tells apart
SEGMENTS = 128  # that a longer line is split into, at most
PROGRAMS = 1024  # so many keep any device busy
SLOT = 8  # bytes of one number in the workspace


class RegisterTile(NamedTuple):
    lines: int
    cols: int
    warps: int


def key_bytes(problem: Any) -> int:
    """Bytes of a sort key in registers."""
    return max(4, problem.element.size)


def fits_registers(problem: Any) -> bool:
    return power_of_two(problem.count) * key_bytes(problem) <= REGISTER_BYTES


def register_tile(problem: Any, lines: int, by_columns: bool) -> RegisterTile:
    """The tile for adjacent lines: whole lines, 32 registers of keys per thread, or half of that if more is kept besides them."""
    cols, most = power_of_two(problem.count), REGISTER_BYTES // key_bytes(problem)
    wanted = min(BESIDE, most // cols) if by_columns else 1
    together = min(power_of_two(lines), max(wanted, SMALL // cols, 1))
    is_full = together > 1 or isinstance(problem, QuantileBackwardDescriptor)
    return RegisterTile(together, cols, _warps(together * cols * key_bytes(problem) * (2 if is_full else 1)))


def sorted_tile(problem: Any) -> RegisterTile:
    """One line, whose keys are in the registers several times."""
    cols = power_of_two(problem.count)
    return RegisterTile(1, cols, _warps(2 * cols * key_bytes(problem)))


def spread_tile(problem: Any, lines: int, by_columns: bool) -> RegisterTile:
    """The tile of a gradient, which is written once."""
    cols = min(power_of_two(problem.count), SMALL // BESIDE if by_columns else SMALL)
    return RegisterTile(min(power_of_two(lines), SMALL // cols), cols, 4)


def _warps(size: int) -> int:
    return max(1, min(16, size // (32 * 32 * 4)))


# --- longer lines ------------------------------------------------------------------------------------------------------------------


class LineSplit(NamedTuple):
    """Into how many segments a line is split, and how long they are."""

    segments: int
    length: int


def queries_of(problem: Any) -> int:
    """How many ranks of each line are looked for."""
    if not isinstance(problem, QuantileDescriptor):
        return 1
    return len(problem.q) * (2 if problem.interpolation in (Interpolation.LINEAR, Interpolation.MIDPOINT) else 1)


def split_for(problem: Any) -> LineSplit:
    programs = max(1, problem.lines * queries_of(problem))
    wanted = max(1, min(SEGMENTS, PROGRAMS // programs, problem.count // (4 * LONG_TILE)))
    length = -(-problem.count // (wanted * LONG_TILE)) * LONG_TILE
    return LineSplit(-(-problem.count // length), length)


class Buffers(NamedTuple):
    """The offsets in the workspace, in bytes, of what programs pass to each other, and its end."""

    places: int  # of every rank that is looked for
    shares: int  # of the upper neighbours
    prefixes: int  # digits that are known
    ranks: int  # among the elements that have them
    nans: int  # of every segment
    equals: int  # the same
    digits: int  # how often each is there, in every segment
    end: int


def buffers_of(problem: Any) -> Buffers:
    """Lines that are held need the first two, for a gradient."""
    lines, queries, segments = problem.lines, problem.lines * queries_of(problem), split_for(problem).segments
    is_long, is_gradient = not fits_registers(problem), isinstance(problem, QuantileBackwardDescriptor)
    sizes = [queries * (is_long or is_gradient), queries * (is_long or is_gradient)]
    sizes += [size * is_long for size in (queries, queries, lines * segments, queries * segments, queries * segments * DIGIT // 2)]
    starts = [SLOT * sum(sizes[:place]) for place in range(len(sizes) + 1)]
    return Buffers(*starts)


def workspace_bytes(problem: Any) -> int:
    """What programs pass to each other for lines that are too long for one, and the two elements of each quantile."""
    return buffers_of(problem).end
