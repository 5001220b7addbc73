"""Softmax and log-softmax on CUDA, forward and backward.

Three schemes. Rows: some rows of a power of two of places are held on chip, read once and written once. Long rows: as much of
a row as fits is held, the rest is walked twice, the second time backwards, while its end is still in the cache. Columns: where
another axis is contiguous, a strip of it is treated like that, along the softmax axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.tiles import SoftmaxTile, columns_tile, rows_tile
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES, At, Count, Step, TritonLaunch, is_wide
from baracuda_kernels.targets.cuda.tiles import for_contiguous
from baracuda_kernels.targets.cuda.triton.indexing import along, dims, offset
from baracuda_kernels.targets.cuda.triton.maths import LOG2E, exp
from baracuda_kernels.targets.cuda.triton.packing import hold, release
from baracuda_kernels.targets.cuda.triton.thread_reduction import column_max, column_sum, thread_max, thread_sum
from baracuda_kernels.targets.geometry import Dim, collapse, dim_of, is_contiguous

__all__ = ["backward", "forward"]


# --- rows ------------------------------------------------------------------------------------------------------------------


@triton.jit
def forward_rows(
    x, y, rows, extent, extents, x_steps, y_steps, x_step, y_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(ROWS, WIDE) + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    inside = (row < rows)[:, None] & (col < extent)[None, :]
    values = tl.load(
        x + offset(row, extents, x_steps)[:, None] + along(col, x_step, CONTIGUOUS)[None, :], mask=inside, other=float("-inf")
    ).to(ACC)
    top = tl.max(values, 1)[:, None]
    powers = exp(values - top, PRECISE)
    total = tl.sum(powers, 1)[:, None]
    result = (values - top) - tl.log(total) if LOG else powers * (1.0 / total)
    tl.store(
        y + offset(row, extents, y_steps)[:, None] + along(col, y_step, CONTIGUOUS)[None, :],
        result.to(y.dtype.element_ty),
        mask=inside,
    )


@triton.jit
def backward_rows(
    dy, y, dx, rows, extent, extents, dy_steps, y_steps, dx_steps, dy_step, y_step, dx_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(ROWS, WIDE) + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    inside = (row < rows)[:, None] & (col < extent)[None, :]
    up = tl.load(
        dy + offset(row, extents, dy_steps)[:, None] + along(col, dy_step, CONTIGUOUS)[None, :], mask=inside, other=0.0
    ).to(ACC)
    out = tl.load(y + offset(row, extents, y_steps)[:, None] + along(col, y_step, CONTIGUOUS)[None, :], mask=inside, other=0.0).to(
        ACC
    )
    total = tl.sum(up if LOG else up * out, 1)[:, None]
    tl.store(
        dx + offset(row, extents, dx_steps)[:, None] + along(col, dx_step, CONTIGUOUS)[None, :],
        _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty),
        mask=inside,
    )


# --- long rows ----------------------------------------------------------------------------------------------------------------


@triton.jit
def forward_long(
    x, y, rows, extent, extents, x_steps, y_steps, x_step, y_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, HELD: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    THREADS: tl.constexpr, VECTOR: tl.constexpr, CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(1, WIDE)
    x += offset(row, extents, x_steps)
    y += offset(row, extents, y_steps)
    held_col = tl.arange(0, HELD)
    held = tl.load(x + along(held_col, x_step, CONTIGUOUS))
    tops = thread_max(held.to(ACC), THREADS, VECTOR)
    held = hold(held)
    col = tl.arange(0, COLS)
    totals = tl.zeros((THREADS,), ACC)
    for start in range(HELD, extent, COLS):
        place = start + col
        values = tl.load(
            x + along(place, x_step, CONTIGUOUS), mask=place < extent, other=float("-inf"), eviction_policy="evict_last"
        ).to(ACC)
        higher = tl.maximum(tops, thread_max(values, THREADS, VECTOR))
        base = _finite_base(higher)
        spread = tl.reshape(values, (COLS // (THREADS * VECTOR), THREADS, VECTOR))
        powers = exp(spread - base[None, :, None], PRECISE)
        totals = totals * exp(tops - base, PRECISE) + tl.sum(tl.sum(powers, 2), 0)
        tops = higher
    top = tl.max(tops, 0)
    base = _finite_base(top)
    held_powers = exp(release(held, x.dtype.element_ty).to(ACC) - base, PRECISE)
    totals = totals * exp(tops - base, PRECISE) + thread_sum(held_powers, THREADS, VECTOR)
    total = tl.log(tl.sum(totals, 0))
    for start in range(HELD, extent, COLS):
        place = _last_start(extent - HELD, COLS) + 2 * HELD - start + col
        values = tl.load(x + along(place, x_step, CONTIGUOUS), mask=place < extent, eviction_policy="evict_first").to(ACC)
        result = _normalized(values, top, total, LOG, PRECISE).to(y.dtype.element_ty)
        tl.store(y + along(place, y_step, CONTIGUOUS), result, mask=place < extent, eviction_policy="evict_first")
    result = _normalized(release(held, x.dtype.element_ty).to(ACC), top, total, LOG, PRECISE).to(y.dtype.element_ty)
    tl.store(y + along(held_col, y_step, CONTIGUOUS), result, eviction_policy="evict_first")


@triton.jit
def backward_long(
    dy, y, dx, rows, extent, extents, dy_steps, y_steps, dx_steps, dy_step, y_step, dx_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, HELD: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    THREADS: tl.constexpr, VECTOR: tl.constexpr, CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(1, WIDE)
    dy += offset(row, extents, dy_steps)
    y += offset(row, extents, y_steps)
    dx += offset(row, extents, dx_steps)
    held_col = tl.arange(0, HELD)
    held_up = tl.load(dy + along(held_col, dy_step, CONTIGUOUS))
    held_out = tl.load(y + along(held_col, y_step, CONTIGUOUS))
    totals = thread_sum(held_up.to(ACC) if LOG else held_up.to(ACC) * held_out.to(ACC), THREADS, VECTOR)
    held_up, held_out = hold(held_up), hold(held_out)
    col = tl.arange(0, COLS)
    for start in range(HELD, extent, COLS):
        place = start + col
        inside = place < extent
        up = tl.load(dy + along(place, dy_step, CONTIGUOUS), mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        if not LOG:
            up *= tl.load(y + along(place, y_step, CONTIGUOUS), mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        totals += thread_sum(up, THREADS, VECTOR)
    total = tl.sum(totals, 0)
    for start in range(HELD, extent, COLS):
        place = _last_start(extent - HELD, COLS) + 2 * HELD - start + col
        inside = place < extent
        up = tl.load(dy + along(place, dy_step, CONTIGUOUS), mask=inside, eviction_policy="evict_first").to(ACC)
        out = tl.load(y + along(place, y_step, CONTIGUOUS), mask=inside, eviction_policy="evict_first").to(ACC)
        result = _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty)
        tl.store(dx + along(place, dx_step, CONTIGUOUS), result, mask=inside, eviction_policy="evict_first")
    up = release(held_up, dy.dtype.element_ty).to(ACC)
    out = release(held_out, y.dtype.element_ty).to(ACC)
    result = _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty)
    tl.store(dx + along(held_col, dx_step, CONTIGUOUS), result, eviction_policy="evict_first")


# --- columns -----------------------------------------------------------------------------------------------------------------


@triton.jit
def forward_columns(
    x, y, strips, width, extent, extents, x_steps, y_steps, x_step, y_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, HELD: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LANES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = _first(1, WIDE)
    first_col = (program % strips).to(tl.int64) * COLS
    width -= first_col
    x += offset(program // strips, extents, x_steps) + first_col
    y += offset(program // strips, extents, y_steps) + first_col
    col = tl.arange(0, COLS)[None, :]
    held_row = tl.arange(0, HELD)[:, None]
    held_inside = (held_row < extent) & (col < width)
    # What is held is never read again, so that the cache has room for what is.
    held = tl.load(x + held_row.to(tl.int64) * x_step + col, mask=held_inside, other=float("-inf"), eviction_policy="evict_first")
    tops = column_max(held.to(ACC), LANES)
    held = hold(held)
    row = tl.arange(0, ROWS)[:, None]
    totals = tl.zeros((LANES, COLS), ACC)
    for start in range(HELD, extent, ROWS):
        place = start + row
        inside = (place < extent) & (col < width)
        at = place.to(tl.int64) * x_step + col
        values = tl.load(x + at, mask=inside, other=float("-inf"), eviction_policy="evict_last").to(ACC)
        higher = tl.maximum(tops, column_max(values, LANES))
        base = _finite_base(higher)
        powers = exp(tl.reshape(values, (ROWS // LANES, LANES, COLS)) - base[None, :, :], PRECISE)
        totals = totals * exp(tops - base, PRECISE) + tl.sum(powers, 0)
        tops = higher
    top = tl.max(tops, 0)[None, :]
    base = _finite_base(top)
    held_powers = exp(release(held, x.dtype.element_ty).to(ACC) - base, PRECISE)
    totals = totals * exp(tops - base, PRECISE) + column_sum(held_powers, LANES)
    total = tl.log(tl.sum(totals, 0))[None, :]
    for start in range(HELD, extent, ROWS):
        place = _last_start(extent - HELD, ROWS) + 2 * HELD - start + row
        inside = (place < extent) & (col < width)
        values = tl.load(x + place.to(tl.int64) * x_step + col, mask=inside, eviction_policy="evict_first").to(ACC)
        result = _normalized(values, top, total, LOG, PRECISE).to(y.dtype.element_ty)
        tl.store(y + place.to(tl.int64) * y_step + col, result, mask=inside, eviction_policy="evict_first")
    result = _normalized(release(held, x.dtype.element_ty).to(ACC), top, total, LOG, PRECISE).to(y.dtype.element_ty)
    tl.store(y + held_row.to(tl.int64) * y_step + col, result, mask=held_inside, eviction_policy="evict_first")


@triton.jit
def backward_columns(
    dy, y, dx, strips, width, extent, extents, dy_steps, y_steps, dx_steps, dy_step, y_step, dx_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, HELD: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LANES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = _first(1, WIDE)
    first_col = (program % strips).to(tl.int64) * COLS
    width -= first_col
    dy += offset(program // strips, extents, dy_steps) + first_col
    y += offset(program // strips, extents, y_steps) + first_col
    dx += offset(program // strips, extents, dx_steps) + first_col
    col = tl.arange(0, COLS)[None, :]
    held_row = tl.arange(0, HELD)[:, None]
    held_inside = (held_row < extent) & (col < width)
    held_up = tl.load(dy + held_row.to(tl.int64) * dy_step + col, mask=held_inside, other=0.0, eviction_policy="evict_first")
    held_out = tl.load(y + held_row.to(tl.int64) * y_step + col, mask=held_inside, other=0.0, eviction_policy="evict_first")
    totals = column_sum(held_up.to(ACC) if LOG else held_up.to(ACC) * held_out.to(ACC), LANES)
    held_up, held_out = hold(held_up), hold(held_out)
    row = tl.arange(0, ROWS)[:, None]
    for start in range(HELD, extent, ROWS):
        place = (start + row).to(tl.int64)
        inside = (place < extent) & (col < width)
        up = tl.load(dy + place * dy_step + col, mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        if not LOG:
            up *= tl.load(y + place * y_step + col, mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        totals += column_sum(up, LANES)
    total = tl.sum(totals, 0)[None, :]
    for start in range(HELD, extent, ROWS):
        place = (_last_start(extent - HELD, ROWS) + 2 * HELD - start + row).to(tl.int64)
        inside = (place < extent) & (col < width)
        up = tl.load(dy + place * dy_step + col, mask=inside, eviction_policy="evict_first").to(ACC)
        out = tl.load(y + place * y_step + col, mask=inside, eviction_policy="evict_first").to(ACC)
        result = _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty)
        tl.store(dx + place * dx_step + col, result, mask=inside, eviction_policy="evict_first")
    up = release(held_up, dy.dtype.element_ty).to(ACC)
    out = release(held_out, y.dtype.element_ty).to(ACC)
    result = _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty)
    tl.store(dx + held_row.to(tl.int64) * dx_step + col, result, mask=held_inside, eviction_policy="evict_first")


# --- shared by the bodies ------------------------------------------------------------------------------------------------------


@triton.jit
def _first(EACH: tl.constexpr, WIDE: tl.constexpr):
    """The number of this program's first row."""
    return tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * EACH


@triton.jit
def _last_start(extent, STEP: tl.constexpr):
    return (extent - 1) // STEP * STEP


@triton.jit
def _finite_base(top):
    """What powers are taken relative to: 0 as long as nothing but -inf has been seen."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _normalized(values, top, log_total, LOG: tl.constexpr, PRECISE: tl.constexpr):
    if LOG:
        return (values - top) - log_total
    elif PRECISE or values.dtype == tl.float64:
        return exp((values - top) - log_total, PRECISE)
    else:
        return tl.exp2((values - top) * LOG2E - log_total * LOG2E)


@triton.jit
def _gradient(up, out, total, LOG: tl.constexpr, PRECISE: tl.constexpr):
    return up - exp(out, PRECISE) * total if LOG else out * (up - total)


# --- launching -------------------------------------------------------------------------------------------------------------------

ROWS_BODIES = {"forward": forward_rows, "backward": backward_rows}
LONG_BODIES = {"forward": forward_long, "backward": backward_long}
COLUMNS_BODIES = {"forward": forward_columns, "backward": backward_columns}


def forward(problem: SoftmaxDescriptor, device: Device, tile: SoftmaxTile | None = None) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, y) -> launch."""
    return _kernel("forward", problem, device, tile)


def backward(problem: SoftmaxDescriptor, device: Device, tile: SoftmaxTile | None = None) -> Bind:
    """The kernel for a backward problem: bind(layouts of dy, y, dx) -> launch."""
    return _kernel("backward", problem, device, tile)


def forward_by_rows(problem: SoftmaxDescriptor, device: Device) -> Bind:
    return _kernel("forward", problem, device, by_rows=True)


def backward_by_rows(problem: SoftmaxDescriptor, device: Device) -> Bind:
    return _kernel("backward", problem, device, by_rows=True)


def _kernel(
    direction: str, problem: SoftmaxDescriptor, device: Device, tile: SoftmaxTile | None = None, by_rows: bool = False
) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        strides = [layout.stride for layout in layouts if layout is not None]
        return launcher(device, *calls(direction, problem, strides, for_contiguous(tile, layouts), by_rows))

    return bind


def calls(
    direction: str,
    problem: SoftmaxDescriptor,
    strides: Sequence[Sequence[int]],
    tile: SoftmaxTile | None = None,
    by_rows: bool = False,
) -> list[TritonLaunch]:
    """What is launched for operands of these strides; `tile` is for trying others than the chosen one.

    How many rows there are does not matter: strides count even where an extent is 1. With `by_rows`, strides do not matter either:
    the same code runs for all of them.
    """
    shape, axis = problem.input_shape, dim_of(problem.input_shape, strides, problem.softmax_axis)
    if 0 in shape:
        return []
    outer = collapse(shape, strides, [problem.softmax_axis])
    if by_rows:
        return [_rows_call(direction, problem, axis, outer, tile or rows_tile(direction, problem, vectors=False), False)]
    beside = None if is_contiguous(axis) else _side_by_side(problem, strides, outer)
    if tile is not None and tile.is_for_columns is (beside is None):
        tile = None  # it was meant for operands that lie otherwise
    forms = []
    for vectors in (True, False):
        if beside is None:
            chosen = tile or rows_tile(direction, problem, vectors)
            forms.append(_rows_call(direction, problem, axis, outer, chosen, is_contiguous(axis)))
        else:
            chosen = tile or columns_tile(direction, problem, vectors)
            others = [dim for dim in outer if dim is not beside]
            forms.append(_columns_call(direction, problem, axis, beside, others, chosen))
    if not _whole_vectors(problem, strides):
        return forms[1:]
    return [replace(forms[0], otherwise=forms[1])]


def _side_by_side(problem: SoftmaxDescriptor, strides: Sequence[Sequence[int]], outer: list[Dim]) -> Dim | None:
    """The dim along which all operands move by one element, of whatever extent."""
    found = next((dim for dim in outer if is_contiguous(dim)), None)
    single = any(
        extent == 1 and axis != problem.softmax_axis and all(stride[axis] == 1 for stride in strides)
        for axis, extent in enumerate(problem.input_shape)
    )
    return Dim(1, (1,) * len(strides)) if found is None and single else found


def _whole_vectors(problem: SoftmaxDescriptor, strides: Sequence[Sequence[int]]) -> bool:
    """Whether every stride but that of single elements is a whole number of vectors."""
    multiple = VECTOR_BYTES // problem.element.size
    return all(step % multiple == 0 or step == 1 for stride in strides for step in stride)


def _constants(problem: SoftmaxDescriptor, tile: SoftmaxTile, wide: bool) -> dict[str, Any]:
    return {
        "LOG": problem.kind is SoftmaxKind.LOG_SOFTMAX,
        "PRECISE": problem.element.size == 4,
        "ACC": "tl.float64" if problem.element.size == 8 else "tl.float32",
        "ROWS": tile.rows,
        "COLS": tile.cols,
        "WIDE": wide,
    }


def _long_constants(problem: SoftmaxDescriptor, tile: SoftmaxTile) -> dict[str, Any]:
    if not tile.held:
        return {}
    return {"HELD": tile.held, "THREADS": 32 * tile.warps, "VECTOR": VECTOR_BYTES // problem.element.size}


def _rows_call(
    direction: str, problem: SoftmaxDescriptor, axis: Dim, outer: list[Dim], tile: SoftmaxTile, contiguous: bool
) -> TritonLaunch:
    element, operands = problem.element, len(axis.steps)
    rows = _count(outer)
    extents, steps = dims(outer, operands, element if contiguous else None)
    return TritonLaunch(
        (LONG_BODIES if tile.held else ROWS_BODIES)[direction],
        -(-rows // tile.rows),
        (
            *(At(operand, element) for operand in range(operands)),
            Count(rows),
            Count(axis.extent, element if contiguous else None),
            extents,
            *steps,
            *(Step(step) for step in axis.steps),
        ),
        _constants(problem, tile, is_wide(rows)) | {"CONTIGUOUS": contiguous} | _long_constants(problem, tile),
        tile.warps,
    )


def _columns_call(
    direction: str, problem: SoftmaxDescriptor, axis: Dim, beside: Dim, outer: list[Dim], tile: SoftmaxTile
) -> TritonLaunch:
    element, operands = problem.element, len(axis.steps)
    strips = -(-beside.extent // tile.cols)
    programs = strips * _count(outer)
    extents, steps = dims(outer, operands, element)
    return TritonLaunch(
        COLUMNS_BODIES[direction],
        programs,
        (
            *(At(operand, element) for operand in range(operands)),
            Count(strips),
            Count(beside.extent, element),
            Count(axis.extent),
            extents,
            *steps,
            *(Step(step, element) for step in axis.steps),
        ),
        _constants(problem, tile, is_wide(programs)) | {"HELD": tile.held, "LANES": tile.lanes(element)},
        tile.warps,
    )


def _count(outer: list[Dim]) -> int:
    return math.prod(dim.extent for dim in outer)
