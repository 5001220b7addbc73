"""Running sums on CUDA down columns, of what neighbours make, there or back.

A thread has a strip of rows of its columns, and reads the next strip while it sums up this one. It has all neighbours but one to itself, so
that only what each strip comes to changes threads.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Program, input_of
from baracuda_kernels.ops.scan.triton_bodies import as_floats, scanning
from baracuda_kernels.ops.scan.triton_groups import joined_back, joined_on, terms
from baracuda_kernels.targets.cuda.triton.indexing import filled, offset

__all__ = ["scan_columns", "sums_before"]


@functools.cache
def sums_before(total: ElementKind) -> Any:
    """What scans pairs of a sum before something, and of all of it: from (0, x) of every x to the sums of those before it, and up to it."""
    (_, all_before), (before, every) = ((input_of(2 * side, total), input_of(2 * side + 1, total)) for side in (0, 1))
    return scanning(Program((total,) * 4, (total,) * 2, (all_before + before, all_before + every)))


@triton.jit
def scan_columns(
    inputs, output, numbers, lines, blocks, extent, bound, tiles, extents, outer_steps, axis_steps,
    START: tl.constexpr, TERM: tl.constexpr, JOINED: tl.constexpr, VALUE: tl.constexpr, SUMS_BEFORE: tl.constexpr, REVERSE: tl.constexpr,
    NEXT: tl.constexpr, BESIDE: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr, STRIPS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Every input is read at each place and `NEXT` to it, 1 or -1, and is 0 where the bound is passed, less than a tile from the
    extent. `BESIDE` says which have a column for every line, side by side; of others one is for all lines.

    A tile is `STRIPS` strips of `STEPS` rows each, one after the other.
    """
    TILE: tl.constexpr = -STRIPS * STEPS if REVERSE else STRIPS * STEPS
    OUTPUT: tl.constexpr = len(inputs)
    block = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    first = block % blocks * LINES
    # The last program reads columns of the one before it again, rather than some that are not there: loads need compare no lines.
    line = tl.minimum(first, lines - LINES) + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_own = line >= first
    walked = tl.arange(0, STRIPS)[:, None] * STEPS
    begun = extent - STEPS - walked if REVERSE else walked
    sources = ()
    for i in tl.static_range(len(inputs)):
        source = inputs[i] + offset(outer, extents, outer_steps[i]) + begun.to(tl.int64) * axis_steps[i]
        sources += (source + line if BESIDE[i] else source,)  # type: ignore[assignment]
    target = output + offset(outer, extents, outer_steps[OUTPUT]) + begun.to(tl.int64) * axis_steps[OUTPUT] + line
    parameters = as_floats(numbers)
    carry = filled(START(), (1, LINES))[0]
    following = read_first(sources, bound, begun, axis_steps, NEXT, STEPS)
    for _ in range(0, tiles):
        values = with_next(following, parameters, NEXT, STEPS)
        sources = moved(sources, axis_steps, TILE)
        following = read_on(sources, bound, begun + TILE, axis_steps, REVERSE, NEXT, STEPS)
        own = terms(values, begun, TERM, STRIPS, LINES, STEPS)
        within = joined_back(own, JOINED, STEPS) if REVERSE else joined_on(own, JOINED, STEPS)
        come_to = within[0 if REVERSE else STEPS - 1][0]
        # Those before each strip by a scan of pairs: to gather the sums of others would make the compiler shuffle every element.
        before = carry + SUMS_BEFORE((filled(START(), (STRIPS, LINES))[0], come_to))[0]
        carry += tl.sum(come_to, 0, keep_dims=True)
        edge = tl.where(is_own, edge_of(begun, extent, REVERSE, STEPS), STEPS if REVERSE else 0)
        for k in tl.static_range(STEPS):
            value = VALUE(JOINED((before,), within[k]), values[k], ((begun + k).to(tl.int64),))[0]
            result = tl.broadcast_to(value.to(output.dtype.element_ty), (STRIPS, LINES))
            tl.store(target + k * axis_steps[OUTPUT], result, mask=(k >= edge) if REVERSE else (k < edge))
        target += TILE * axis_steps[OUTPUT]
        begun += TILE


@triton.jit
def moved(sources, axis_steps, BY: tl.constexpr):
    found = ()
    for i in tl.static_range(len(sources)):
        found += (sources[i] + BY * axis_steps[i],)  # type: ignore[assignment]
    return found


@triton.jit
def edge_of(begun, bound, REVERSE: tl.constexpr, STEPS: tl.constexpr):
    """The row of a strip from which on the bound is passed, or on the way back the first that there is: with it alone each row compares."""
    return (tl.maximum(-begun, -1) if REVERSE else tl.minimum(bound - begun, STEPS + 1)).to(tl.int32)


@triton.jit
def read_first(sources, bound, begun, axis_steps, NEXT: tl.constexpr, STEPS: tl.constexpr):
    """Reads a strip's elements of every operand, and the one after the last or before the first."""
    FIRST: tl.constexpr = 0 if NEXT > 0 else -1
    rows = ()
    for k in tl.static_range(FIRST, FIRST + STEPS + 1):
        row, mask = (), (begun + k >= 0) & (begun + k < bound)
        for i in tl.static_range(len(sources)):
            row += (tl.load(sources[i] + k * axis_steps[i], mask=mask, other=0.0),)  # type: ignore[assignment]
        rows += (row,)  # type: ignore[assignment]
    return rows


@triton.jit
def read_on(sources, bound, begun, axis_steps, REVERSE: tl.constexpr, NEXT: tl.constexpr, STEPS: tl.constexpr):
    """The same of a later tile. What is not there may be anything: nothing comes after it."""
    FIRST: tl.constexpr = 0 if NEXT > 0 else -1
    edge = edge_of(begun, bound, REVERSE, STEPS)
    rows = ()
    for k in tl.static_range(FIRST, FIRST + STEPS + 1):
        row, mask = (), (k >= edge) if REVERSE else (k < edge)
        for i in tl.static_range(len(sources)):
            row += (tl.load(sources[i] + k * axis_steps[i], mask=mask),)  # type: ignore[assignment]
        rows += (row,)  # type: ignore[assignment]
    return rows


@triton.jit
def with_next(rows, parameters, NEXT: tl.constexpr, STEPS: tl.constexpr):
    """The operands of every row, each followed by its neighbour, and the parameters."""
    values = ()
    for k in tl.static_range(STEPS):
        given = ()
        for i in tl.static_range(len(rows[0])):
            given += (rows[k if NEXT > 0 else k + 1][i], rows[k + 1 if NEXT > 0 else k][i])  # type: ignore[assignment]
        values += (given + parameters,)  # type: ignore[assignment]
    return values
