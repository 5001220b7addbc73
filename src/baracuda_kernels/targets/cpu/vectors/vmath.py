"""Vector mathematics, written once over `simd` lanes and specialised by the type of the lanes."""

from numba import types
from numba.extending import overload

from baracuda_kernels.targets.cpu.vectors.simd import Lanes, as_float, bits, fma, spread, where

__all__ = ["exp", "exp_nonpositive", "exp_nonpositive_for_halves", "log"]


def exp(x):
    """e to the x, lane by lane: within 1 ulp over the whole range, gradual underflow, NaN and infinities as IEEE says."""
    raise NotImplementedError("only inside a kernel")


def exp_nonpositive(x):
    """e to the x for x <= 0 or NaN: cheaper than `exp`, and results below the smallest normal times 1.5 are zero."""
    raise NotImplementedError("only inside a kernel")


def exp_nonpositive_for_halves(x):
    """`exp_nonpositive` on f32 lanes to a relative 4e-6, for results that are rounded to 16 bits; cheaper still."""
    raise NotImplementedError("only inside a kernel")


def log(x):
    """The natural logarithm of f64 lanes, within 1 ulp, zero, negative numbers, infinity and NaN as IEEE says."""
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


def _exp_nonpositive_for_halves_f32(x):
    x = where(x < -87.33, -87.33, x)
    shifted = fma(x, 1.4426950408889634, 12583038.0)
    r = fma(shifted - 12583038.0, -0.6931471805599453, x)
    p = fma(r, 2 * 0.04151351749897003, 2 * 0.16787710785865784)
    p = fma(p, r, 2 * 0.5000302791595459)
    p = fma(p, r, 2 * 0.9999666810035706)
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


# log(2^k · m) = k · ln 2 + log(m), m in [√½, √2), log(m) = 2 artanh(s) with s = (m - 1) / (m + 1), arranged as in fdlibm.
# Not the C library's, whose bits differ from one system to the next.


def _log_f64(x):
    subnormal = x < 2.2250738585072014e-308
    y = where(subnormal, x * 18014398509481984.0, x)
    e = (bits(y) - 0x3FE6A09E667F3BCD) >> 52
    k = as_float(e + 0x4338000000000000) - where(subnormal, 6755399441055798.0, spread(6755399441055744.0))
    f = as_float(bits(y) - (e << 52)) - 1.0
    s = f / (f + 2.0)
    z = s * s
    p = fma(z, 1.479819860511658591e-01, 1.531383769920937332e-01)
    p = fma(p, z, 1.818357216161805012e-01)
    p = fma(p, z, 2.222219843214978396e-01)
    p = fma(p, z, 2.857142874366239149e-01)
    p = fma(p, z, 3.999999999940941908e-01)
    p = fma(p, z, 6.666666666666735130e-01)
    half_square = f * f * 0.5
    low = fma(k, 1.90821492927058770002e-10, s * fma(p, z, half_square))
    r = fma(k, 6.93147180369123816490e-01, f - (half_square - low))
    r = where(x > 1.7976931348623157e308, x, r)
    return where(x > 0.0, r, where(x >= 0.0, -_INFINITY, spread(_NAN)))


_INFINITY, _NAN = float("inf"), float("nan")

overload(log)(_by_lanes(None, _log_f64))
overload(exp)(_by_lanes(_exp_f32, _exp_f64))
overload(exp_nonpositive)(_by_lanes(_exp_nonpositive_f32, _exp_nonpositive_f64))
overload(exp_nonpositive_for_halves)(_by_lanes(_exp_nonpositive_for_halves_f32, None))
