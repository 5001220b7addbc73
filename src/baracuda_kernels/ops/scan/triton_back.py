"""Scans on CUDA back along rows.

Elements are read in vectors, as they lie. The thread that has one joins its elements from the last to the first, and all of them to what comes
before: what ran before the tile, and the vectors of the tile that are nearer to the end. Of those, each thread reads its neighbour's once more,
which is in a cache by then, so that a scan from one on gives what comes before each.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.scan.triton_bodies import (
    SEGMENTS,
    TOTALS,
    added,
    chosen,
    come_to,
    last_power,
    near_power,
    row_of,
    summing,
)
from baracuda_kernels.ops.scan.triton_groups import apart, before_groups, joined_back, terms, together
from baracuda_kernels.targets.cuda.triton.indexing import along, filled, offset

__all__ = ["scan_back"]


@triton.jit
def scan_back(
    inputs, outputs, totals, numbers, lines, blocks, extent, tiles, segments, extents, outer_steps, beside_steps, axis_steps,
    START: tl.constexpr, TERM: tl.constexpr, JOINED: tl.constexpr, VALUE: tl.constexpr, SETTLED: tl.constexpr, LIFTED: tl.constexpr,
    SCAN: tl.constexpr, FALLS: tl.constexpr, PART: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr,
    STEPS: tl.constexpr, GROUP: tl.constexpr, TOTALS_AT_ONCE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Of every operand, `BESIDE` and `ALONG` say whether neighbouring lines are adjacent, or a line's elements contiguous. A tile is `LINES` lines
    of `STEPS` elements, in groups of `GROUP`."""
    GROUPS: tl.constexpr = STEPS // GROUP
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    segment = program % segments
    block = program // segments
    line = block % blocks * LINES + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_there = line < lines
    sources, targets = (), ()
    for i in tl.static_range(len(inputs)):
        source = inputs[i] + offset(outer, extents, outer_steps[i]) + along(line, beside_steps[i], BESIDE[i])
        sources += (source[:, :, None],)  # type: ignore[assignment]
    for i in tl.static_range(len(outputs)):
        target = outputs[i] + offset(outer, extents, outer_steps[len(inputs) + i])
        target += along(line, beside_steps[len(inputs) + i], BESIDE[len(inputs) + i])
        targets += (target[:, :, None],)  # type: ignore[assignment]
    slot = (outer.to(tl.int64) * lines + line) * segments
    carry = filled(START(), (1, LINES))
    if PART == SEGMENTS:
        carry = come_to(totals, carry, slot, segment, is_there, START, JOINED, SETTLED, SCAN, TOTALS_AT_ONCE, LINES)
    begin = segment * tiles * STEPS
    end = tl.minimum(begin + tiles * STEPS, extent)
    group = tl.arange(0, GROUPS)[:, None]
    for first in range(begin, end, STEPS):
        begun = extent - GROUP - first - group * GROUP  # where each group begins
        place = begun[:, :, None] + tl.arange(0, GROUP)[None, None, :]
        inside = (place >= 0) & is_there[:, :, None]
        values = read(sources, place, inside, axis_steps, ALONG, GROUP)
        # An output may be an input: none of a tile is written before the scan has had all of it from all threads.
        # What is not there may be anything, as may a last tile's carry: nothing comes after them.
        own = terms(values, begun, TERM, GROUPS, LINES, GROUP)
        if LIFTED is not None:
            results, carry = of_powers(
                carry, own, values, begun, is_there, JOINED, LIFTED, VALUE, SCAN, FALLS, GROUPS, LINES, GROUP
            )
        else:
            is_nearer = (place >= -GROUP) & (is_there & (group > 0))[:, :, None]
            nearer = read(sources, place + GROUP, is_nearer, axis_steps, ALONG, GROUP)
            others = terms(nearer, begun + GROUP, TERM, GROUPS, LINES, GROUP)
            states = of_states(carry, own, others, START, JOINED, SCAN, GROUPS, LINES, GROUP)
            results = values_of(states, values, begun, VALUE, GROUPS, LINES, GROUP)
            carry = row_of(states[0], GROUPS - 1, GROUPS)
        if SETTLED is not None:
            carry = SETTLED(carry)
        if PART != TOTALS:
            for i in tl.static_range(len(outputs)):
                step = along(place, axis_steps[len(inputs) + i], ALONG[len(inputs) + i])
                tl.store(targets[i] + step, together(results, i, GROUP).to(outputs[i].dtype.element_ty), mask=inside)
    if PART == TOTALS:
        for i in tl.static_range(len(totals)):
            tl.store(totals[i] + slot + segment, carry[i], mask=is_there)


@triton.jit
def read(sources, place, inside, axis_steps, ALONG: tl.constexpr, GROUP: tl.constexpr):
    """Reads the operands of every element of a group."""
    everything = ()
    for i in tl.static_range(len(sources)):
        everything += (apart(tl.load(sources[i] + along(place, axis_steps[i], ALONG[i]), mask=inside), GROUP),)  # type: ignore[assignment]
    values = ()
    for k in tl.static_range(GROUP):
        operands = ()
        for i in tl.static_range(len(sources)):
            operands += (everything[i][k],)  # type: ignore[assignment]
        values += (operands,)  # type: ignore[assignment]
    return values


@triton.jit
def of_states(
    carry, own, others, START: tl.constexpr, JOINED: tl.constexpr, SCAN: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """All of a tile, from the carry on."""
    is_second = tl.arange(0, GROUPS)[:, None] > 0
    nearer = chosen(is_second, joined_back(others, JOINED, GROUP)[0], START(), (GROUPS, LINES))
    before = chosen(is_second, JOINED(carry, SCAN(nearer)), carry, (GROUPS, LINES))  # a start is to have others joined to it
    states = ()
    within = joined_back(own, JOINED, GROUP)
    for k in tl.static_range(GROUP):
        states += (JOINED(before, within[k]),)  # type: ignore[assignment]
    return states


@triton.jit
def of_powers(
    carry, own, values, begun, is_there, JOINED: tl.constexpr, LIFTED: tl.constexpr, VALUE: tl.constexpr, SCAN: tl.constexpr,
    FALLS: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The values of pairs (m, s) for exp(m) s, and the carry after them."""
    last = tl.broadcast_to(carry[0], (GROUPS, LINES))
    for k in tl.static_range(GROUP):
        power = tl.where(begun + k >= 0, own[k][0], carry[0])
        last = tl.minimum(last, power) if FALLS else tl.maximum(last, power)
    first = row_of(own[GROUP - 1], 0, GROUPS)[0]
    top, is_near = near_power(last_power(last, 0, FALLS), first, carry[0], is_there, FALLS)
    if is_near:
        results, carry = beside_one_power(carry, top, own, values, begun, LIFTED, VALUE, GROUPS, LINES, GROUP)
    else:
        results, carry = beside_their_own(carry, own, values, begun, JOINED, VALUE, SCAN, GROUPS, LINES, GROUP)
    return results, carry


@triton.jit
def beside_one_power(
    carry, power, own, values, begun, LIFTED: tl.constexpr, VALUE: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    """Plain sums, where running powers are near each other."""
    sums = lifted_sums(own, power, LIFTED, GROUP)
    before, after = before_groups(LIFTED(carry, (power,)), (sums[0],), added, summing, GROUPS, LINES)
    states = ()
    for k in tl.static_range(GROUP):
        states += ((power, before[0] + sums[k]),)  # type: ignore[assignment]
    return values_of(states, values, begun, VALUE, GROUPS, LINES, GROUP), (power, after[0])


@triton.jit
def beside_their_own(
    carry, own, values, begun, JOINED: tl.constexpr, VALUE: tl.constexpr, SCAN: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    within = joined_back(own, JOINED, GROUP)
    before, after = before_groups(carry, within[0], JOINED, SCAN, GROUPS, LINES)
    states = ()
    for k in tl.static_range(GROUP):
        states += (JOINED(before, within[k]),)  # type: ignore[assignment]
    return values_of(states, values, begun, VALUE, GROUPS, LINES, GROUP), after


@triton.jit
def values_of(states, values, begun, VALUE: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr):
    results = ()
    for k in tl.static_range(GROUP):
        results += (filled(VALUE(states[k], values[k], ((begun + k).to(tl.int64),)), (GROUPS, LINES)),)  # type: ignore[assignment]
    return results


@triton.jit
def lifted_sums(states, top, LIFTED: tl.constexpr, GROUP: tl.constexpr):
    sums = (LIFTED(states[GROUP - 1], (top,))[0],)
    for k in tl.static_range(1, GROUP):
        sums = (LIFTED(states[GROUP - 1 - k], (top,))[0] + sums[0],) + sums  # type: ignore[assignment]  # noqa: RUF005
    return sums
