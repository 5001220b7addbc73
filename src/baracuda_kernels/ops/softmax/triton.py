"""Softmax and log-softmax on CUDA, forward and backward.

Three schemes. Rows: some rows of a power of two of places are held on chip, read once and written once. Long rows: one row per
program is walked twice, the second time backwards, while its end is still in the cache. Columns: where another axis lies
side by side in memory, a strip of it is walked along the softmax axis, also twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.gpu.call import At, Call, Count, Step
from baracuda_kernels.gpu.indexing import along, dims, is_wide, offset
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.gpu.maths import exp
from baracuda_kernels.lang.geometry import Dim, collapse, dim_of, is_contiguous
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.tiles import Tile, columns_tile, rows_tile

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
    shifted = values - tl.max(values, 1)[:, None]
    powers = exp(shifted, PRECISE)
    total = tl.sum(powers, 1)[:, None]
    result = shifted - tl.log(total) if LOG else powers * (1.0 / total)
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
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(1, WIDE)
    x += offset(row, extents, x_steps)
    y += offset(row, extents, y_steps)
    col = tl.arange(0, COLS)
    top = tl.full((), float("-inf"), ACC)
    totals = tl.zeros((COLS,), ACC)
    for start in range(0, extent, COLS):
        values = tl.load(x + along(start + col, x_step, CONTIGUOUS), mask=start + col < extent, other=float("-inf")).to(ACC)
        higher = tl.maximum(top, tl.max(values, 0))
        base = _finite_base(higher)
        totals = totals * exp(top - base, PRECISE) + exp(values - base, PRECISE)
        top = higher
    total = tl.log(tl.sum(totals, 0))
    for start in range(0, extent, COLS):
        place = _last_start(extent, COLS) - start + col
        values = tl.load(x + along(place, x_step, CONTIGUOUS), mask=place < extent, other=float("-inf")).to(ACC)
        result = (values - top) - total
        tl.store(
            y + along(place, y_step, CONTIGUOUS),
            (result if LOG else exp(result, PRECISE)).to(y.dtype.element_ty),
            mask=place < extent,
        )


@triton.jit
def backward_long(
    dy, y, dx, rows, extent, extents, dy_steps, y_steps, dx_steps, dy_step, y_step, dx_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = _first(1, WIDE)
    dy += offset(row, extents, dy_steps)
    y += offset(row, extents, y_steps)
    dx += offset(row, extents, dx_steps)
    col = tl.arange(0, COLS)
    totals = tl.zeros((COLS,), ACC)
    for start in range(0, extent, COLS):
        inside = start + col < extent
        up = tl.load(dy + along(start + col, dy_step, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
        if LOG:
            totals += up
        else:
            totals += up * tl.load(y + along(start + col, y_step, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
    total = tl.sum(totals, 0)
    for start in range(0, extent, COLS):
        place = _last_start(extent, COLS) - start + col
        up = tl.load(dy + along(place, dy_step, CONTIGUOUS), mask=place < extent, other=0.0).to(ACC)
        out = tl.load(y + along(place, y_step, CONTIGUOUS), mask=place < extent, other=0.0).to(ACC)
        tl.store(
            dx + along(place, dx_step, CONTIGUOUS),
            _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty),
            mask=place < extent,
        )


# --- columns -----------------------------------------------------------------------------------------------------------------


@triton.jit
def forward_columns(
    x, y, strips, width, extent, extents, x_steps, y_steps, x_step, y_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = _first(1, WIDE)
    col = (program % strips).to(tl.int32) * COLS + tl.arange(0, COLS)
    x += offset(program // strips, extents, x_steps)
    y += offset(program // strips, extents, y_steps)
    row = tl.arange(0, ROWS)
    top = tl.full((1, COLS), float("-inf"), ACC)
    totals = tl.zeros((ROWS, COLS), ACC)
    for start in range(0, extent, ROWS):
        place = (start + row)[:, None]
        inside = (place < extent) & (col < width)[None, :]
        values = tl.load(x + place.to(tl.int64) * x_step + col[None, :], mask=inside, other=float("-inf")).to(ACC)
        higher = tl.maximum(top, tl.max(values, 0)[None, :])
        base = _finite_base(higher)
        totals = totals * exp(top - base, PRECISE) + exp(values - base, PRECISE)
        top = higher
    total = tl.log(tl.sum(totals, 0))[None, :]
    for start in range(0, extent, ROWS):
        place = (_last_start(extent, ROWS) - start + row)[:, None]
        inside = (place < extent) & (col < width)[None, :]
        values = tl.load(x + place.to(tl.int64) * x_step + col[None, :], mask=inside, other=float("-inf")).to(ACC)
        result = (values - top) - total
        tl.store(
            y + place.to(tl.int64) * y_step + col[None, :],
            (result if LOG else exp(result, PRECISE)).to(y.dtype.element_ty),
            mask=inside,
        )


@triton.jit
def backward_columns(
    dy, y, dx, strips, width, extent, extents, dy_steps, y_steps, dx_steps, dy_step, y_step, dx_step,
    LOG: tl.constexpr, PRECISE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = _first(1, WIDE)
    col = (program % strips).to(tl.int32) * COLS + tl.arange(0, COLS)
    dy += offset(program // strips, extents, dy_steps)
    y += offset(program // strips, extents, y_steps)
    dx += offset(program // strips, extents, dx_steps)
    row = tl.arange(0, ROWS)
    totals = tl.zeros((ROWS, COLS), ACC)
    for start in range(0, extent, ROWS):
        place = (start + row)[:, None]
        inside = (place < extent) & (col < width)[None, :]
        up = tl.load(dy + place.to(tl.int64) * dy_step + col[None, :], mask=inside, other=0.0).to(ACC)
        if LOG:
            totals += up
        else:
            totals += up * tl.load(y + place.to(tl.int64) * y_step + col[None, :], mask=inside, other=0.0).to(ACC)
    total = tl.sum(totals, 0)[None, :]
    for start in range(0, extent, ROWS):
        place = (_last_start(extent, ROWS) - start + row)[:, None]
        inside = (place < extent) & (col < width)[None, :]
        up = tl.load(dy + place.to(tl.int64) * dy_step + col[None, :], mask=inside, other=0.0).to(ACC)
        out = tl.load(y + place.to(tl.int64) * y_step + col[None, :], mask=inside, other=0.0).to(ACC)
        tl.store(
            dx + place.to(tl.int64) * dx_step + col[None, :],
            _gradient(up, out, total, LOG, PRECISE).to(dx.dtype.element_ty),
            mask=inside,
        )


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
def _gradient(up, out, total, LOG: tl.constexpr, PRECISE: tl.constexpr):
    return up - exp(out, PRECISE) * total if LOG else out * (up - total)


# --- launching -------------------------------------------------------------------------------------------------------------------

ROWS_BODIES = {"forward": forward_rows, "backward": backward_rows}
LONG_BODIES = {"forward": forward_long, "backward": backward_long}
COLUMNS_BODIES = {"forward": forward_columns, "backward": backward_columns}


def forward(problem: SoftmaxDescriptor, device: Device) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, y) -> launch."""
    return _kernel("forward", problem, device)


def backward(problem: SoftmaxDescriptor, device: Device) -> Bind:
    """The kernel for a backward problem: bind(layouts of dy, y, dx) -> launch."""
    return _kernel("backward", problem, device)


def _kernel(direction: str, problem: SoftmaxDescriptor, device: Device) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *calls(direction, problem, [layout.stride for layout in layouts if layout is not None]))

    return bind


def calls(direction: str, problem: SoftmaxDescriptor, strides: Sequence[Sequence[int]], tile: Tile | None = None) -> list[Call]:
    """What is launched for operands of these strides; `tile` is for trying others than the chosen one."""
    shape, axis = problem.input_shape, dim_of(problem.input_shape, strides, problem.softmax_axis)
    if 0 in shape:
        return []
    outer = collapse(shape, strides, [problem.softmax_axis])
    beside = next((dim for dim in outer if is_contiguous(dim)), None)
    if beside and beside.extent >= 8 and not is_contiguous(axis):
        outer.remove(beside)
        return [_columns_call(direction, problem, axis, beside, outer, tile or columns_tile(direction, problem, beside.extent))]
    return [_rows_call(direction, problem, axis, outer, tile or rows_tile(direction, problem))]


def _constants(problem: SoftmaxDescriptor, tile: Tile, wide: bool) -> dict[str, Any]:
    return {
        "LOG": problem.kind is SoftmaxKind.LOG_SOFTMAX,
        "PRECISE": problem.element.size == 4,
        "ACC": "tl.float64" if problem.element.size == 8 else "tl.float32",
        "ROWS": tile.rows,
        "COLS": tile.cols,
        "WIDE": wide,
    }


def _rows_call(direction: str, problem: SoftmaxDescriptor, axis: Dim, outer: list[Dim], tile: Tile) -> Call:
    element, operands = problem.element, len(axis.steps)
    rows = _count(outer)
    extents, steps = dims(outer, operands, element)
    contiguous = is_contiguous(axis)
    return Call(
        (ROWS_BODIES if tile.cols >= axis.extent else LONG_BODIES)[direction],
        -(-rows // tile.rows),
        (
            *(At(operand, element) for operand in range(operands)),
            Count(rows),
            Count(axis.extent, element if contiguous else None),
            extents,
            *steps,
            *(Step(step) for step in axis.steps),
        ),
        _constants(problem, tile, is_wide(rows)) | {"CONTIGUOUS": contiguous},
        tile.warps,
    )


def _columns_call(direction: str, problem: SoftmaxDescriptor, axis: Dim, beside: Dim, outer: list[Dim], tile: Tile) -> Call:
    element, operands = problem.element, len(axis.steps)
    strips = -(-beside.extent // tile.cols)
    programs = strips * _count(outer)
    extents, steps = dims(outer, operands, element)
    return Call(
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
        _constants(problem, tile, is_wide(programs)),
        tile.warps,
    )


def _count(outer: list[Dim]) -> int:
    count = 1
    for dim in outer:
        count *= dim.extent
    return count
