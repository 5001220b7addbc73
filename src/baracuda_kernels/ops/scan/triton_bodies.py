"""Scans on CUDA: tiles of neighbouring lines, walked along from their first element on.

What a tile's elements come to is joined to what ran before. A long line is walked in segments by several programs: first for the totals
of all segments, then, from the totals before it, each segment for its results. No two programs write to one place.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import is_interpreted
from baracuda_kernels.formula.expression import Program, constant
from baracuda_kernels.ops.scan.rows import ScanFormulas
from baracuda_kernels.targets.cuda.formulas.source import function, name_of, taking
from baracuda_kernels.targets.cuda.triton.indexing import along, filled, offset

__all__ = ["SEGMENTS", "TOTALS", "WHOLE", "Functions", "as_floats", "functions", "only_row", "scan_tiles", "scanning"]

WHOLE = tl.constexpr(0)  # lines from end to end
TOTALS = tl.constexpr(1)  # what segments come to
SEGMENTS = tl.constexpr(2)
NEAR = tl.constexpr(16.0)  # powers of e: small beside the precision of a logarithm, and of a sum
IN_RANGE = tl.constexpr(32.0)  # powers of e that leave a small gradient enough digits, and their inverses
INTERPRETED = tl.constexpr(is_interpreted())


class Functions(NamedTuple):
    """A scan's formulas as Triton functions, of tuples of numbers."""

    start: Any
    term: Any  # of operands and the place
    joined: Any  # of an earlier and a later state
    value: Any  # of a state, operands and the place
    settled: Any  # of a state; None where it stays as it is
    lifted: Any  # of a state and a power, None where there is none
    scan: Any  # of a tile of states, along its first axis

    def constants(self) -> dict[str, Any]:
        return {name.upper(): each for name, each in self._asdict().items()}


@functools.cache
def functions(formulas: ScanFormulas) -> Functions:
    given = (*formulas.inputs, *[ElementKind.F64] * formulas.numbers)
    states, inputs = formulas.states, (*given, ElementKind.I64)
    start = tuple(constant(value, element) for value, element in zip(formulas.start, states, strict=True))
    join = Program((*states, *states), states, formulas.combine)
    settle = None if formulas.settle is None else taking(Program(states, states, formulas.settle), len(states))
    lift = None if formulas.lift is None else taking(Program((*states, states[0]), states[:1], formulas.lift), len(states), 1)
    return Functions(
        taking(Program((), states, start)),
        taking(Program(inputs, states, formulas.term), len(given), 1),
        taking(join, len(states), len(states)),
        taking(Program((*states, *inputs), formulas.outputs, formulas.value), len(states), len(given), 1),
        settle,
        lift,
        scanning(join),
    )


def scanning(join: Program, is_back: bool = False) -> Any:
    """What scans a tile of states; joining takes them number by number, as `tl.associative_scan` gives them."""
    count, name = len(join.outputs), name_of("scan_back" if is_back else "scan", join)
    numbers = [f"{side}{number}" for side in "ab" for number in range(count)]
    states = [f"({''.join(f'{number}, ' for number in side)})" for side in (numbers[:count], numbers[count:])]
    found = ", ".join(f"found[{number}]" for number in range(count))
    pair = f"def pair_{name}({', '.join(numbers)}):\n    found = JOIN({', '.join(states)})\n    return {found}\n"
    joined = function(f"pair_{name}", pair, {"JOIN": taking(join, count, count)})
    if is_interpreted():  # `tl.associative_scan` would take a second for what this does in a blink
        from baracuda_kernels.targets.cuda.runtime.interpret import scanned

        return function(
            name, f"def {name}(states):\n    return scanned(states, PAIR, {is_back})\n", {"scanned": scanned, "PAIR": joined}
        )
    given, found = ("states", "found") if count > 1 else ("states[0]", "(found,)")
    source = f"def {name}(states):\n    found = tl.associative_scan({given}, 0, PAIR, reverse={is_back})\n    return {found}\n"
    return function(name, source, {"PAIR": joined})


@triton.jit
def scan_tiles(
    inputs, outputs, totals, numbers, lines, blocks, extent, tiles, segments, extents, outer_steps, beside_steps, axis_steps,
    START: tl.constexpr, TERM: tl.constexpr, JOINED: tl.constexpr, VALUE: tl.constexpr, SETTLED: tl.constexpr, LIFTED: tl.constexpr,
    SCAN: tl.constexpr, COMMUTES: tl.constexpr, FALLS: tl.constexpr, PART: tl.constexpr, REVERSE: tl.constexpr,
    BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr, STRIPS: tl.constexpr, VECTOR: tl.constexpr,
    TOTALS_AT_ONCE: tl.constexpr, AHEAD: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """`BESIDE` and `ALONG` say of every operand whether neighbouring lines are adjacent, or a line's elements contiguous. `REVERSE` is from the
    last element on.

    A tile is `STRIPS` pieces of lines, one after the other, of `STEPS` elements each: its columns are first those of all lines of the first
    piece. Down columns of memory each warp has one such piece, and each thread a strip of it, so that nothing but what these come to
    changes threads.
    """
    TILE: tl.constexpr = STEPS * STRIPS
    COLUMNS: tl.constexpr = STRIPS * LINES
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    segment = program % segments
    block = program // segments
    column = tl.arange(0, COLUMNS)
    line = block % blocks * LINES + column % LINES
    if VECTOR > 1:
        line = tl.max_contiguous(tl.multiple_of(line, VECTOR), VECTOR)
    line, strip = line[None, :], (column // LINES)[None, :]
    outer = block // blocks
    is_there = line < lines
    sources = ()
    for i in tl.static_range(len(inputs)):
        source = inputs[i] + offset(outer, extents, outer_steps[i]) + along(line, beside_steps[i], BESIDE[i])
        sources += (source + along(extent - 1, axis_steps[i], ALONG[i]) if REVERSE else source,)  # type: ignore[assignment]
    parameters = as_floats(numbers)
    slot = (outer.to(tl.int64) * lines + line) * segments
    carry = filled(START(), (1, COLUMNS))  # the same for all pieces
    if PART == SEGMENTS:
        carry = come_to(totals, carry, slot, segment, is_there, START, JOINED, SETTLED, SCAN, TOTALS_AT_ONCE, COLUMNS)
    length = tiles * TILE
    begin = segment * length  # that it is whole tiles lets the compiler read vectors
    if PART == TOTALS and COMMUTES:
        carry = filled(START(), (STEPS, COLUMNS))  # every row has a total of its own
    end = tl.minimum(begin + length, extent)
    if AHEAD:
        at, inside = tile_at(begin, end, extent, strip, is_there, STEPS, STRIPS)
        following = read(sources, at, inside, axis_steps, ALONG, REVERSE)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        if AHEAD:
            values = following
            at, inside = tile_at(first + TILE, end, extent, strip, is_there, STEPS, STRIPS)
            following = read(sources, at, inside, axis_steps, ALONG, REVERSE)
        at, inside = tile_at(first, end, extent, strip, is_there, STEPS, STRIPS)
        if not AHEAD:
            values = read(sources, at, inside, axis_steps, ALONG, REVERSE)
        place = extent - 1 - at if REVERSE else at
        states = filled(TERM(values + parameters, (place.to(tl.int64),)), (STEPS, COLUMNS))
        # What is not there may be anything, as may a last tile's carry: nothing comes after them.
        if LIFTED is not None:
            states = chosen(inside, states, START(), (STEPS, COLUMNS))
        if PART == TOTALS and COMMUTES:
            carry = JOINED(carry, states)
        elif LIFTED is not None:
            states, carry = scan_powers(carry, states, is_there, JOINED, LIFTED, SCAN, FALLS, STEPS, STRIPS, LINES)
        else:
            states = SCAN(states)
            before, carry = joined_strips(carry, states, JOINED, STEPS, STRIPS, LINES)
            states = JOINED(before, states)
        if SETTLED is not None:
            carry = SETTLED(carry)
        if PART != TOTALS:
            results = VALUE(states, values + parameters, (place.to(tl.int64),))
            for i in tl.static_range(len(outputs)):
                target = outputs[i] + offset(outer, extents, outer_steps[len(inputs) + i])
                target += along(line, beside_steps[len(inputs) + i], BESIDE[len(inputs) + i])
                step = axis_steps[len(inputs) + i]
                if REVERSE:
                    target += along(extent - 1, step, ALONG[len(inputs) + i]) - along(at, step, ALONG[len(inputs) + i])
                else:
                    target += along(at, step, ALONG[len(inputs) + i])
                tl.store(target, tl.broadcast_to(results[i], (STEPS, COLUMNS)).to(outputs[i].dtype.element_ty), mask=inside)
    if PART == TOTALS:
        if COMMUTES:
            before, carry = joined_strips(filled(START(), (1, COLUMNS)), SCAN(carry), JOINED, STEPS, STRIPS, LINES)
        for i in tl.static_range(len(totals)):
            tl.store(totals[i] + slot + segment, carry[i], mask=is_there & (strip == 0))


@triton.jit
def as_floats(numbers):
    """The parameters of formulas, which are given as the bits of f64."""
    found = ()
    for i in tl.static_range(len(numbers)):
        found += (numbers[i].to(tl.int64).to(tl.float64, bitcast=True),)  # type: ignore[assignment]
    return found


@triton.jit
def come_to(
    totals, carry, slot, segment, is_there, START: tl.constexpr, JOINED: tl.constexpr, SETTLED: tl.constexpr, SCAN: tl.constexpr,
    AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """What all segments before this one come to."""
    for first in range(0, segment, AT_ONCE):
        before = first + tl.arange(0, AT_ONCE)[:, None]
        is_before = (before < segment) & is_there
        states = ()
        for i in tl.static_range(len(totals)):
            states += (tl.load(totals[i] + slot + before, mask=is_before),)  # type: ignore[assignment]
        states = SCAN(chosen(is_before, states, START(), (AT_ONCE, COLUMNS)))
        carry = row_of(JOINED(carry, states), tl.minimum(segment - first, AT_ONCE) - 1, AT_ONCE)
        if SETTLED is not None:
            carry = SETTLED(carry)
    return carry


@triton.jit
def tile_at(first, end, extent, strip, is_there, STEPS: tl.constexpr, STRIPS: tl.constexpr):
    """How far from where the walk begins a tile's elements are, and which of them there are."""
    step = tl.arange(0, STEPS)[:, None]
    begun = first + strip * STEPS
    if STRIPS == 1:
        inside = (begun + step < extent) & is_there
    else:  # one comparison for each, with what each thread has
        inside = step < tl.where(is_there & (first < end), tl.minimum(extent - begun, STEPS), 0).to(tl.int32)
    return begun + step, inside


@triton.jit
def read(sources, at, inside, axis_steps, ALONG: tl.constexpr, REVERSE: tl.constexpr):
    values = ()
    for i in tl.static_range(len(sources)):
        step = along(at, axis_steps[i], ALONG[i])
        values += (tl.load(sources[i] - step if REVERSE else sources[i] + step, mask=inside),)  # type: ignore[assignment]
    return values


@triton.jit
def joined_strips(carry, states, JOINED: tl.constexpr, STEPS: tl.constexpr, STRIPS: tl.constexpr, LINES: tl.constexpr):
    """For strips that are scanned separately, the state before each of them, starting with the carry, and the carry after the last."""
    ends = row_of(states, STEPS - 1, STEPS)
    before = carry
    if STRIPS == 1:
        carry = JOINED(carry, ends)
    else:
        carry, before = shaped(carry, (1, STRIPS, LINES)), shaped(carry, (1, STRIPS, LINES))
        piece, place = tl.arange(0, STRIPS)[None, :, None], tl.arange(0, STRIPS)[:, None, None]
        ends = only(shaped(ends, (1, STRIPS, LINES)), piece == place, 1)  # one after the other: all warps learn them at once
        for i in tl.static_range(STRIPS):
            before = chosen(piece == i, carry, before, (1, STRIPS, LINES))
            carry = filled(JOINED(carry, only(ends, place == i, 0)), (1, STRIPS, LINES))
        carry, before = shaped(carry, (1, STRIPS * LINES)), shaped(before, (1, STRIPS * LINES))
    return before, carry


@triton.jit
def shaped(states, SHAPE: tl.constexpr):
    found = ()
    for i in tl.static_range(len(states)):
        found += (tl.reshape(states[i], SHAPE),)  # type: ignore[assignment]
    return found


@triton.jit
def scan_powers(
    carry, states, is_there, JOINED: tl.constexpr, LIFTED: tl.constexpr, SCAN: tl.constexpr, FALLS: tl.constexpr,
    STEPS: tl.constexpr, STRIPS: tl.constexpr, LINES: tl.constexpr,
):  # fmt: skip
    """Of pairs (m, s) for exp(m) s. Where running powers are near each other, sums beside the last of them: a power for each state, and not
    for each that is joined."""
    last = last_power(states[0], 0, FALLS)
    first = row_of(states, 0, STEPS)[0]
    if STRIPS > 1:
        piece = tl.arange(0, STRIPS)[None, :, None]
        last = last_power(tl.reshape(last, (1, STRIPS, LINES)), 1, FALLS)
        last = tl.reshape(tl.broadcast_to(last, (1, STRIPS, LINES)), (1, STRIPS * LINES))
        first = only_row(tl.reshape(first, (1, STRIPS, LINES)), piece == 0, 1)
        first = tl.reshape(tl.broadcast_to(first, (1, STRIPS, LINES)), (1, STRIPS * LINES))
    top, is_near = near_power(last, first, carry[0], is_there, FALLS)
    if is_near:
        sums = tl.cumsum(LIFTED(states, (top,))[0], 0)
        before_sums, sum_after = joined_strips(LIFTED(carry, (top,)), (sums,), added, STEPS, STRIPS, LINES)
        m, s, carry_m, carry_s = tl.broadcast_to(top, (STEPS, STRIPS * LINES)), sums + before_sums[0], top, sum_after[0]
    else:
        scanned = SCAN(states)
        before, after = joined_strips(carry, scanned, JOINED, STEPS, STRIPS, LINES)
        m, s = JOINED(before, scanned)
        carry_m, carry_s = after
    return (m, s), (carry_m, carry_s)


@triton.jit
def last_power(powers, AXIS: tl.constexpr, FALLS: tl.constexpr):
    """That of the last running state along an axis."""
    return tl.min(powers, AXIS, keep_dims=True) if FALLS else tl.max(powers, AXIS, keep_dims=True)


@triton.jit
def near_power(last, first, carried, is_there, FALLS: tl.constexpr):
    """The power that sums of a tile are taken beside, from its first and last ones and what ran before, and whether all are near it.

    Sums that rise beside a larger power lose digits; those that fall beside a smaller one have but to be within range. Infinities are never near.
    """
    if FALLS:
        power = tl.minimum(last, carried)
        is_near = tl.maximum(first, tl.where(carried < float("inf"), carried, first)) - power <= IN_RANGE
    else:
        power = tl.maximum(last, carried)
        is_near = power - tl.maximum(first, carried) <= NEAR
    return power, tl.min((is_near | (is_there == 0)).to(tl.int32)) > 0


@triton.jit
def summing(terms):
    return (tl.cumsum(terms[0], 0),)


@triton.jit
def added(earlier, later):
    return (earlier[0] + later[0],)


@triton.jit
def chosen(condition, states, others, SHAPE: tl.constexpr):
    """Those states where the condition holds, others elsewhere."""
    found = ()
    for i in tl.static_range(len(states)):
        found += (tl.where(condition, tl.broadcast_to(states[i], SHAPE), tl.broadcast_to(others[i], SHAPE)),)  # type: ignore[assignment]
    return found


@triton.jit
def row_of(states, row, STEPS: tl.constexpr):
    """One row of a tile of states."""
    return only(states, tl.arange(0, STEPS)[:, None] == row, 0)


@triton.jit
def only(states, is_it, AXIS: tl.constexpr):
    """The one of the states along an axis for which the condition holds."""
    found = ()
    for i in tl.static_range(len(states)):
        found += (only_row(states[i], is_it, AXIS),)  # type: ignore[assignment]
    return found


@triton.jit
def only_row(state, is_it, AXIS: tl.constexpr = 0):
    """Bit by bit: in a sum of integers, all others are zero."""
    if state.dtype == tl.float64:
        bits = state.to(tl.int64, bitcast=True)
    elif state.dtype == tl.float32:
        bits = state.to(tl.int32, bitcast=True)
    else:
        bits = state
    wide = bits.to(tl.int64) if INTERPRETED else bits  # sums of 32 bits have 64 there
    row = tl.sum(tl.where(is_it, wide, 0), AXIS, keep_dims=True).to(bits.dtype)
    return row.to(state.dtype, bitcast=state.dtype.is_floating())
