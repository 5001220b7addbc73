"""Blocks of matrices for Triton bodies: where they lie, how they are read and written, and their products."""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.targets.cuda.triton import products

__all__ = ["inside", "of_rows", "places", "product", "put", "tile"]


@triton.jit
def places(start, first, step, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The addresses of a block of a matrix from row `first` on. Within the block 32 bits do where the step has no more."""
    return start + tl.cast(first, tl.int64) * step + (tl.arange(0, ROWS) * step)[:, None] + tl.arange(0, COLS)[None, :]


@triton.jit
def inside(first, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Which places of a block belong to the matrix."""
    return (tl.arange(0, ROWS) < rows - first)[:, None] & (tl.arange(0, COLS) < cols)[None, :]


@triton.jit
def tile(start, first, rows, cols, step, ROWS: tl.constexpr, COLS: tl.constexpr, WHOLE: tl.constexpr):
    """A block of a matrix from row `first` on, zero outside of it. WHOLE: no block of it reaches outside."""
    at = places(start, first, step, ROWS, COLS)
    if WHOLE:
        return tl.load(at)
    else:
        return tl.load(at, mask=inside(first, rows, cols, ROWS, COLS), other=0.0)


@triton.jit
def put(start, values, first, rows, cols, step, WHOLE: tl.constexpr):
    """Writes a block of a matrix from row `first` on."""
    at = places(start, first, step, values.shape[0], values.shape[1])
    if WHOLE:
        tl.store(at, values.to(start.dtype.element_ty))
    else:
        tl.store(at, values.to(start.dtype.element_ty), mask=inside(first, rows, cols, values.shape[0], values.shape[1]))


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr):
    """total + a @ b. The tensor cores cut f32 off where they take it as TF32: rounded before, it loses half as much."""
    if PRECISION == "tf32" and a.dtype == tl.float32:
        a, b = products.rounded_to_tf32(a), products.rounded_to_tf32(b)
    return products.product(a, b, total, PRECISION)


@triton.jit
def of_rows(
    own, a, b, a_first, b_first, a_rows, b_rows, inner, a_step, b_step,
    PRECISION: tl.constexpr, ACC: tl.constexpr, B_ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """a bᵀ for a block of rows of each. `own` is the first chunk of those of a; further chunks are read when they are needed."""
    A_ROWS: tl.constexpr = own.shape[0]
    total = tl.zeros((A_ROWS, B_ROWS), ACC)
    total = product(own, tl.trans(tile(b, b_first, b_rows, inner, b_step, B_ROWS, CHUNK, WHOLE)), total, PRECISION)
    if CHUNKS > 1:
        for done in range(CHUNK, inner, CHUNK):
            left = tile(a + done, a_first, a_rows, inner - done, a_step, A_ROWS, CHUNK, False)
            right = tile(b + done, b_first, b_rows, inner - done, b_step, B_ROWS, CHUNK, False)
            total = product(left, tl.trans(right), total, PRECISION)
    return total
