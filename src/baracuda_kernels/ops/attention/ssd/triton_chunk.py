"""What the scan's Triton bodies do with one chunk of one head: loads, decays, and operands of matrix products.

A decay is exp of a difference of two sums of log-decays that start with the chunk. Sums are taken in f64. A difference between two
steps is taken in parts of the kernel's precision, so that it is as good as the two are close, whatever came before them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.targets.cuda.triton.maths import exp
from baracuda_kernels.targets.cuda.triton.products import rounded_to_tf32

__all__ = [
    "block",
    "block_by_pairs",
    "bounded_exponents",
    "computed",
    "decay",
    "decays_between",
    "differences",
    "given",
    "in_parts",
    "load_steps",
    "log_decays",
    "log_decays_between",
    "of_head",
    "store_block",
]

FARTHEST = tl.constexpr(2000.0)  # exp of it is zero or infinite in every precision, and sums of such steps stay finite


# --- loads -------------------------------------------------------------------------------------------------------------------


@triton.jit
def of_head(pointer, steps, batch, head):
    """Where a head, or a group, of one batch begins; `steps` are those of batch, position and head."""
    return pointer + batch.to(tl.int64) * steps[0] + head.to(tl.int64) * steps[2]


@triton.jit
def block(pointer, step, first, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Positions from `first` on of x, b, c or dy, [ROWS, COLS]; zero past the end of the sequence and of a row.

    A step of 32 bits says that offsets within the block need no more: wider ones take twice the registers.
    """
    at, inside = _places(step, first, length, width, ROWS, COLS)
    return tl.load(pointer + at, mask=inside, other=0.0)


@triton.jit
def block_by_pairs(pointer, step, first, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The same, of 16-bit floats in whole vectors, for what is no operand of a product as it is: a loop reads ahead into shared memory only what
    comes in words of 32 bits."""
    at, inside = _places(step // 2, first, length, width // 2, ROWS, COLS // 2)
    pairs = tl.load(pointer.to(tl.pointer_type(tl.int32)) + at, mask=inside, other=0)
    low, high = pairs.to(tl.int16), (pairs >> 16).to(tl.int16)
    element: tl.constexpr = pointer.dtype.element_ty
    return tl.interleave(low.to(element, bitcast=True), high.to(element, bitcast=True))


@triton.jit
def store_block(pointer, step, first, length, width, values):
    at, inside = _places(step, first, length, width, values.shape[0], values.shape[1])
    tl.store(pointer + at, values.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _places(step, first, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    first += tl.zeros((), tl.int32)
    row, col = tl.arange(0, ROWS) + tl.minimum(first, 0), tl.arange(0, COLS)  # from `first` on, lest a loop keeps all offsets
    at = first.to(tl.int64) * step + ((row * step)[:, None] + col[None, :])
    return at, (first + row < length)[:, None] & (col < width)[None, :]


@triton.jit
def load_steps(dt, step, first, length, CHUNK: tl.constexpr):
    """The lengths of a chunk's steps, [CHUNK], 16-bit floats as f32; those past the end have none.

    The sum of each and three zeros: a block that looks smaller than it is would be loaded again in every layout it is wanted in.
    """
    place, zeros = first + tl.arange(0, CHUNK)[:, None], tl.arange(0, 4)[None, :]
    lengths = tl.load(dt + place.to(tl.int64) * step + zeros, mask=(place < length) & (zeros == 0), other=0.0)
    return tl.sum(lengths.to(tl.float32) if dt.dtype.element_ty.primitive_bitwidth == 16 else lengths, 1)


# --- decays ------------------------------------------------------------------------------------------------------------------


@triton.jit
def log_decays(steps, rate, count):
    """The sums of dt A up to and with each step of a chunk that has `count` of them or more, and over all of it, in f64."""
    exponents = bounded_exponents(steps, rate, tl.arange(0, steps.shape[0]) < count)
    return tl.cumsum(exponents, 0), tl.sum(exponents, 0)


@triton.jit
def bounded_exponents(steps, rate, inside):
    """dt A in f64, no farther from zero than counts, but NaN where it is; zero where there is no step, even if the rate is infinite."""
    exponents = tl.where(inside, steps.to(tl.float64) * rate.to(tl.float64), 0.0)
    exponents = tl.where(exponents > FARTHEST, FARTHEST, exponents)
    return tl.where(exponents < -FARTHEST, -FARTHEST, exponents)


@triton.jit
def decay(exponent, ACC: tl.constexpr, PRECISE: tl.constexpr):
    """exp of a sum of log-decays, or of a difference of two sums that has been taken in f64."""
    return exp(exponent.to(ACC), PRECISE)


@triton.jit
def decays_between(sums, ACC: tl.constexpr, PRECISE: tl.constexpr):
    """[later, earlier]: from each step of a chunk to each that is not before it; zero to those that are."""
    place = tl.arange(0, sums.shape[0])
    return exp(tl.where(place[:, None] >= place[None, :], log_decays_between(sums, ACC, PRECISE), float("-inf")), PRECISE)


@triton.jit
def log_decays_between(sums, ACC: tl.constexpr, PRECISE: tl.constexpr):
    """[later, earlier], but also of steps that are not."""
    high, low = in_parts(sums, ACC)
    return differences(high, low, PRECISE)


@triton.jit
def in_parts(sums, ACC: tl.constexpr):
    """What f32 has of a sum, and what it has not."""
    high = sums.to(ACC)
    return high, (sums - high.to(tl.float64)).to(ACC)


@triton.jit
def differences(high, low, PRECISE: tl.constexpr):
    if PRECISE:
        return (high[:, None] - high[None, :]) + (low[:, None] - low[None, :])
    else:
        return high[:, None] - high[None, :]


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
    elif beside.dtype == tl.float16:
        return rounded_to_tf32(values)
    else:
        return values
