"""Scans on CUDA along rows whose elements are made of neighbours, there or back.

A thread has a group of contiguous elements. It joins them by itself, so that only what each group comes to changes threads. Where an
operand cannot be read in vectors, as where every row begins elsewhere, it reads them one by one, and all but the first are in a cache.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.scan.triton_bodies import as_floats
from baracuda_kernels.ops.scan.triton_groups import apart, before_groups, joined_back, joined_on, terms, together
from baracuda_kernels.targets.cuda.triton.indexing import along, filled, offset

__all__ = ["scan_neighbours"]


@triton.jit
def scan_neighbours(
    inputs, output, numbers, lines, blocks, extent, bounds, tiles, extents, outer_steps, beside_steps, axis_steps,
    START: tl.constexpr, TERM: tl.constexpr, JOINED: tl.constexpr, VALUE: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr,
    NEXT: tl.constexpr, VECTORS: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr,
    GROUP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Every input is read at each place and `NEXT` to it, 1 or -1, and is 0 where its own bound is passed. `VECTORS` says which are read
    in vectors; of every operand, `BESIDE` and `ALONG` say whether neighbouring lines are adjacent, or a line's elements contiguous."""
    GROUPS: tl.constexpr = STEPS // GROUP
    OUTPUT: tl.constexpr = len(inputs)
    block = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = block % blocks * LINES + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_there = line < lines
    sources = ()
    for i in tl.static_range(len(inputs)):
        sources += (inputs[i] + offset(outer, extents, outer_steps[i]) + along(line, beside_steps[i], BESIDE[i]),)  # type: ignore[assignment]
    target = output + offset(outer, extents, outer_steps[OUTPUT]) + along(line, beside_steps[OUTPUT], BESIDE[OUTPUT])
    parameters = as_floats(numbers)
    carry = filled(START(), (1, LINES))
    walked = tl.arange(0, GROUPS)[:, None] * GROUP
    begun = extent - GROUP - walked if REVERSE else walked
    following = read_rows(sources, bounds, begun, is_there, axis_steps, NEXT, VECTORS, ALONG, GROUP)
    for _ in range(0, tiles):
        values = with_next(following, parameters, NEXT, GROUP)
        ahead = begun - STEPS if REVERSE else begun + STEPS
        following = read_rows(sources, bounds, ahead, is_there, axis_steps, NEXT, VECTORS, ALONG, GROUP)
        own = terms(values, begun, TERM, GROUPS, LINES, GROUP)
        within = joined_back(own, JOINED, GROUP) if REVERSE else joined_on(own, JOINED, GROUP)
        before, carry = before_groups(carry, within[0 if REVERSE else GROUP - 1], JOINED, SCAN, GROUPS, LINES)
        results = ()
        for k in tl.static_range(GROUP):
            value = VALUE(JOINED(before, within[k]), values[k], ((begun + k).to(tl.int64),))[0]
            results += ((tl.broadcast_to(value.to(output.dtype.element_ty), (GROUPS, LINES)),),)  # type: ignore[assignment]
        place = begun[:, :, None] + tl.arange(0, GROUP)[None, None, :]
        inside = ((place >= 0) if REVERSE else (place < extent)) & is_there[:, :, None]
        step = along(place, axis_steps[OUTPUT], ALONG[OUTPUT])
        tl.store(target[:, :, None] + step, together(results, 0, GROUP), mask=inside)
        begun = ahead


@triton.jit
def read_rows(
    sources,
    bounds,
    begun,
    is_there,
    axis_steps,
    NEXT: tl.constexpr,
    VECTORS: tl.constexpr,
    ALONG: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Reads a group's elements of every operand, and the one after the last or before the first."""
    rows = ()
    for i in tl.static_range(len(sources)):
        own = read_group(sources[i], bounds[i], begun, is_there, axis_steps[i], VECTORS[i], ALONG[i], GROUP)
        beyond = read_one(sources[i], bounds[i], begun + (GROUP if NEXT > 0 else -1), is_there, axis_steps[i], ALONG[i])
        rows += (own + (beyond,) if NEXT > 0 else (beyond,) + own,)  # type: ignore[assignment]  # noqa: RUF005
    return rows


@triton.jit
def with_next(rows, parameters, NEXT: tl.constexpr, GROUP: tl.constexpr):
    """The operands of every element of a group, each followed by its neighbour, and the parameters."""
    values = ()
    for k in tl.static_range(GROUP):
        given = ()
        for i in tl.static_range(len(rows)):
            given += (rows[i][k if NEXT > 0 else k + 1], rows[i][k + 1 if NEXT > 0 else k])  # type: ignore[assignment]
        values += (given + parameters,)  # type: ignore[assignment]
    return values


@triton.jit
def read_group(source, bound, begun, is_there, step, VECTOR: tl.constexpr, ALONG: tl.constexpr, GROUP: tl.constexpr):
    """Reads a group of elements of every line, as a tuple."""
    if VECTOR:
        place = begun[:, :, None] + tl.arange(0, GROUP)[None, None, :]
        inside = (place >= 0) & (place < bound) & is_there[:, :, None]
        found = apart(tl.load(source[:, :, None] + along(place, step, ALONG), mask=inside, other=0.0), GROUP)
    else:
        found = ()
        for k in tl.static_range(GROUP):
            found += (read_one(source, bound, begun + k, is_there, step, ALONG),)  # type: ignore[assignment]
    return found


@triton.jit
def read_one(source, bound, place, is_there, step, ALONG: tl.constexpr):
    return tl.load(source + along(place, step, ALONG), mask=(place >= 0) & (place < bound) & is_there, other=0.0)
