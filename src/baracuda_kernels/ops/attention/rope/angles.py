"""Cosine and sine of position times frequency, for Triton bodies, in whole numbers until an angle is below a turn.

A frequency is a fraction of a turn, 128 bits after the point. Times a position, bits before the point are whole turns and fall
away by themselves, for negative positions too; so angles are good to the last bits of f32 and of f64 at every 64-bit position,
with no f64 arithmetic where f32 is asked for and no rounding that a compiler could change.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.rope import frequencies

__all__ = ["cos_sin", "frequency"]

DIGIT_BITS = tl.constexpr(frequencies.DIGIT_BITS)
DIGITS = tl.constexpr(frequencies.DIGITS)
RADIANS = tl.constexpr(1.5707963267948966 / 2**64)  # in 2^-64 of a quarter turn


@triton.jit
def frequency(pair, factors, SHIFT: tl.constexpr):
    """Turns per position, less whole ones, in words of 64 bits, high and low.

    Pairs count from the one that turns fastest, and `factors` are those of `turns_by_digit`, in words.
    """
    high, low = _factor(pair, factors, 0)
    for place in tl.static_range(1, len(factors) // (2 * DIGITS)):
        factor_high, factor_low = _factor(pair, factors, place)
        high, low = _product(high, low, factor_high, factor_low)
    if SHIFT >= 64:
        return low << (SHIFT - 64), low * 0
    elif SHIFT > 0:
        return (high << SHIFT) | (low >> (64 - SHIFT)), low << SHIFT
    else:
        return high, low


@triton.jit
def _factor(pair, factors, PLACE: tl.constexpr):
    """The factor for the pair's digit at this place."""
    digit = (pair >> (PLACE * DIGIT_BITS)) & (DIGITS - 1)
    high = factors[2 * PLACE * DIGITS].to(tl.uint64)
    low = factors[2 * PLACE * DIGITS + 1].to(tl.uint64)
    for other in tl.static_range(1, DIGITS):
        high = tl.where(digit == other, factors[2 * (PLACE * DIGITS + other)].to(tl.uint64), high)
        low = tl.where(digit == other, factors[2 * (PLACE * DIGITS + other) + 1].to(tl.uint64), low)
    return high, low


@triton.jit
def _product(a_high, a_low, b_high, b_low):
    """The upper 128 bits of a product, but for its last few."""
    high, low = tl.umulhi(a_high, b_high), a_high * b_high
    cross = tl.umulhi(a_high, b_low)
    low += cross
    high += (low < cross).to(tl.uint64)
    cross = tl.umulhi(a_low, b_high)
    low += cross
    high += (low < cross).to(tl.uint64)
    return high, low


@triton.jit
def cos_sin(position, high, low, BACKWARD: tl.constexpr, ACC: tl.constexpr):
    """cos and sin of position, a 64-bit whole number, times a frequency; backwards, those of the opposite angle."""
    unsigned = position.to(tl.uint64)
    if ACC == tl.float64:  # noqa: SIM300
        rest = tl.umulhi(unsigned, low)
    else:  # 96 bits are enough, and half of the low words need no registers
        upper = low >> 32
        rest = (unsigned >> 32) * upper + ((unsigned & 0xFFFFFFFF) * upper >> 32)
        low = upper << 32
    # A negative position is 2^64 too large as an unsigned one: that is whole turns of the high word, but not of the low one.
    turns = unsigned * high + rest - tl.where(position < 0, low, low * 0)
    quarters = ((turns >> 61).to(tl.int32) + 1) >> 1
    angle = (turns << 2).to(tl.int64).to(ACC) * RADIANS  # what is left over, at most half a quarter
    z = angle * angle
    if z.dtype == tl.float64:
        p = tl.full(z.shape, 1.58969099521155010221e-10, ACC)
        p = _horner(p, z, -2.50507602534068634195e-08)
        p = _horner(p, z, 2.75573137070700676789e-06)
        p = _horner(p, z, -1.98412698298579493134e-04)
        p = _horner(p, z, 8.33333333332248946124e-03)
        p = _horner(p, z, -1.66666666666666324348e-01)
        q = tl.full(z.shape, -1.13596475577881948265e-11, ACC)
        q = _horner(q, z, 2.08757232129817482790e-09)
        q = _horner(q, z, -2.75573143513906633035e-07)
        q = _horner(q, z, 2.48015872894767294178e-05)
        q = _horner(q, z, -1.38888888888741095749e-03)
        q = _horner(q, z, 4.16666666666666019037e-02)
    else:
        p = tl.full(z.shape, -1.9515295891e-4, ACC)
        p = _horner(p, z, 8.3321608736e-3)
        p = _horner(p, z, -1.6666654611e-1)
        q = tl.full(z.shape, 2.443315711809948e-5, ACC)
        q = _horner(q, z, -1.388731625493765e-3)
        q = _horner(q, z, 4.166664568298827e-2)
    sin = tl.fma(p * z, angle, angle)
    cos = tl.fma(z * z, q, tl.fma(z, -0.5, 1.0))
    odd = (quarters & 1) != 0
    c, s = tl.where(odd, sin, cos), tl.where(odd, cos, sin)
    positive: tl.constexpr = 2 if BACKWARD else 0
    return tl.where(((quarters + 1) & 2) != 0, c * -1.0, c), tl.where((quarters & 2) != positive, s * -1.0, s)


@triton.jit
def _horner(p, z, COEFFICIENT: tl.constexpr):
    """p z + coefficient; a bare constant would be rounded to f32 here."""
    return tl.fma(p, z, tl.full(z.shape, COEFFICIENT, z.dtype))
