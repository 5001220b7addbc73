"""Vector mathematics, written once over `simd` lanes and specialised by the type of the lanes."""

from numba import types
from numba.extending import overload

from baracuda_kernels.lang.simd import Lanes, as_float, bits, fma, where

__all__ = ["exp", "exp_nonpositive"]


def exp(x):
    """e to the x, lane by lane: within 1 ulp over the whole range, gradual underflow, NaN and infinities as IEEE says."""
    raise NotImplementedError("only inside a kernel")


def exp_nonpositive(x):
    """e to the x for x <= 0 or NaN: cheaper than `exp`, and results below the smallest normal times 1.5 are zero."""
    raise NotImplementedError("only inside a kernel")


def _by_lanes(f32, f64):
    def choose(x):
        if not isinstance(x, Lanes):
            return None
        return f64 if x.scalar == types.float64 else f32

    return choose


# exp(x) = 2^k · exp(r), k the nearest integer to x / ln 2, |r| <= ln 2 / 2, and exp(r) = 1 + r + r² · p(r), p near the minimax
# polynomial. Adding 1.5 · 2^mantissa + bias rounds to an integer and leaves k + bias in the low bits, one shift away from
# 2^k. Clamps are written so that NaN passes them.


def _exp_f32(x):
    x = where(x > 89.0, 89.0, where(x < -104.0, -104.0, x))
    shifted = fma(x, 1.4426950408889634, 12582912.0)
    k = shifted - 12582912.0
    r = fma(k, -0.693359375, x)
    r = fma(k, 2.12194440e-4, r)
    p = fma(r, 0.0013820999301970005, 0.00836867094039917)
    p = fma(p, r, 0.04166826233267784)
    p = fma(p, r, 0.1666652113199234)
    p = fma(p, r, 0.4999999403953552)
    p = fma(p, r, 1.0)
    p = fma(p, r, 1.0)
    # Two factors, so that results which overflow or are subnormal come out right without a branch.
    n = bits(shifted) - 0x4B400000
    half = n >> 1
    return p * as_float((half + 127) << 23) * as_float((n - half + 127) << 23)


def _exp_nonpositive_f32(x):
    x = where(x < -87.33, -87.33, x)
    shifted = fma(x, 1.4426950408889634, 12583038.0)
    k = shifted - 12583038.0
    r = fma(k, -0.693359375, x)
    r = fma(k, 2.12194440e-4, r)
    # The polynomial is doubled and the bias is 126, so that k = -126, where x was clamped, makes a factor of zero.
    p = fma(r, 2 * 0.0013820999301970005, 2 * 0.00836867094039917)
    p = fma(p, r, 2 * 0.04166826233267784)
    p = fma(p, r, 2 * 0.1666652113199234)
    p = fma(p, r, 2 * 0.4999999403953552)
    p = fma(p, r, 2.0)
    p = fma(p, r, 2.0)
    return p * as_float(bits(shifted) << 23)


def _exp_f64(x):
    x = where(x > 710.0, 710.0, where(x < -746.0, -746.0, x))
    shifted = fma(x, 1.4426950408889634, 6755399441055744.0)
    k = shifted - 6755399441055744.0
    r = fma(k, -6.93147180369123816490e-01, x)
    r = fma(k, -1.90821492927058770002e-10, r)
    p = fma(r, 2.501113071765034e-08, 2.763038257675575e-07)
    p = fma(p, r, 2.755754942315592e-06)
    p = fma(p, r, 2.480149264817081e-05)
    p = fma(p, r, 0.000198412695508926)
    p = fma(p, r, 0.0013888888944171586)
    p = fma(p, r, 0.008333333333472085)
    p = fma(p, r, 0.041666666666527435)
    p = fma(p, r, 0.16666666666666452)
    p = fma(p, r, 0.5000000000000011)
    p = fma(p, r, 1.0)
    p = fma(p, r, 1.0)
    n = bits(shifted) - 0x4338000000000000
    half = n >> 1
    return p * as_float((half + 1023) << 52) * as_float((n - half + 1023) << 52)


def _exp_nonpositive_f64(x):
    x = where(x < -708.39, -708.39, x)
    shifted = fma(x, 1.4426950408889634, 6755399441056766.0)
    k = shifted - 6755399441056766.0
    r = fma(k, -6.93147180369123816490e-01, x)
    r = fma(k, -1.90821492927058770002e-10, r)
    p = fma(r, 2 * 2.501113071765034e-08, 2 * 2.763038257675575e-07)
    p = fma(p, r, 2 * 2.755754942315592e-06)
    p = fma(p, r, 2 * 2.480149264817081e-05)
    p = fma(p, r, 2 * 0.000198412695508926)
    p = fma(p, r, 2 * 0.0013888888944171586)
    p = fma(p, r, 2 * 0.008333333333472085)
    p = fma(p, r, 2 * 0.041666666666527435)
    p = fma(p, r, 2 * 0.16666666666666452)
    p = fma(p, r, 2 * 0.5000000000000011)
    p = fma(p, r, 2.0)
    p = fma(p, r, 2.0)
    return p * as_float(bits(shifted) << 52)


overload(exp)(_by_lanes(_exp_f32, _exp_f64))
overload(exp_nonpositive)(_by_lanes(_exp_nonpositive_f32, _exp_nonpositive_f64))
