"""What the scan's Triton bodies do with one chunk of one head: loads, decays, and operands of matrix products.

A decay is exp of a difference of two sums of log-decays that start with the chunk. Sums are taken in f64. A difference between two
steps is taken in parts of the kernel's precision, so that it is as good as the two are close, whatever came before them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.gpu.maths import exp

__all__ = ["block", "computed", "decay", "decays_between", "given", "load_steps", "log_decays", "of_head", "store_block"]

FARTHEST = tl.constexpr(2000.0)  # exp of it is zero or infinite in every precision, and sums of such steps stay finite


# --- loads -------------------------------------------------------------------------------------------------------------------


@triton.jit
def of_head(pointer, steps, batch, head):
    """Where a head, or a group, of one batch begins; `steps` are those of batch, position and head."""
    return pointer + batch.to(tl.int64) * steps[0] + head.to(tl.int64) * steps[2]


@triton.jit
def block(pointer, step, first, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Positions from `first` on of x, b, c or dy, [ROWS, COLS]; zero past the end of the sequence and of a row."""
    at, inside = _places(step, first, length, width, ROWS, COLS)
    return tl.load(pointer + at, mask=inside, other=0.0)


@triton.jit
def store_block(pointer, step, first, length, width, values):
    at, inside = _places(step, first, length, width, values.shape[0], values.shape[1])
    tl.store(pointer + at, values.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _places(step, first, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = first + tl.arange(0, ROWS), tl.arange(0, COLS)
    return (row.to(tl.int64) * step)[:, None] + col[None, :], (row < length)[:, None] & (col < width)[None, :]


@triton.jit
def load_steps(dt, step, first, length, CHUNK: tl.constexpr):
    """The lengths of a chunk's steps, [CHUNK]; those past the end have none."""
    place = first + tl.arange(0, CHUNK)
    return tl.load(dt + place.to(tl.int64) * step, mask=place < length, other=0.0)


# --- decays ------------------------------------------------------------------------------------------------------------------


@triton.jit
def log_decays(steps, rate, count):
    """The sums of dt A up to and with each step of a chunk that has `count` of them or more, and over all of it, in f64."""
    exponents = steps.to(tl.float64) * rate.to(tl.float64)
    exponents = tl.where(tl.arange(0, steps.shape[0]) < count, exponents, 0.0)  # even if the rate is infinite
    exponents = tl.where(exponents > FARTHEST, FARTHEST, exponents)  # but not if it is NaN
    exponents = tl.where(exponents < -FARTHEST, -FARTHEST, exponents)
    return tl.cumsum(exponents, 0), tl.sum(exponents, 0)


@triton.jit
def decay(exponent, ACC: tl.constexpr, PRECISE: tl.constexpr):
    """exp of a sum of log-decays, or of a difference of two sums that has been taken in f64."""
    return exp(exponent.to(ACC), PRECISE)


@triton.jit
def decays_between(sums, ACC: tl.constexpr, PRECISE: tl.constexpr):
    """[later, earlier]: from each step of a chunk to each that is not before it; zero to those that are."""
    high = sums.to(ACC)
    exponents = high[:, None] - high[None, :]
    if PRECISE:  # to what f32 has of a sum, what it has not
        low = (sums - high.to(tl.float64)).to(ACC)
        exponents += low[:, None] - low[None, :]
    place = tl.arange(0, sums.shape[0])
    return exp(tl.where(place[:, None] >= place[None, :], exponents, float("-inf")), PRECISE)


# --- operands of products ----------------------------------------------------------------------------------------------------


@triton.jit
def given(values):
    """An input as an operand beside a computed one."""
    if values.dtype == tl.float16:
        return values.to(tl.float32)
    else:
        return values


@triton.jit
def computed(values, beside):
    """Computed numbers as an operand beside an input. They may pass f16's range: TF32 has f16's bits and f32's range."""
    if beside.dtype == tl.bfloat16:
        return values.to(tl.bfloat16)
    else:
        return values
