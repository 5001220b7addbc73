"""Vector mathematics, written once over `simd` lanes and specialised by the type of the lanes."""


from numba import types
from numba.extending import overload

from baracuda_kernels.lang.simd import Lanes, as_float, bits, inline, where

__all__ = ["exp"]


def exp(x):
    """e to the x, lane by lane: within 2 ulp over the whole range, gradual underflow, NaN and infinities as IEEE says."""
    raise NotImplementedError("only inside a kernel")


@overload(exp)
def _exp(x):
    if not isinstance(x, Lanes):
        return None
    return _exp_f64 if x.scalar == types.float64 else _exp_f32


# exp(x) = 2^k · exp(r), k the nearest integer to x / ln 2, |r| <= ln 2 / 2, and exp(r) = 1 + r + r² · p(r), with p near the
# minimax polynomial. Adding and subtracting 1.5 · 2^mantissa rounds to an integer and leaves it in the low bits. The power is
# applied as two factors, so that results which overflow or are subnormal come out right without a branch.


def _exp_f32(x):
    x = where(x > 90.0, x * 0.0 + 90.0, x)
    x = where(x < -105.0, x * 0.0 - 105.0, x)
    shifted = x * 1.4426950408889634 + 12582912.0
    k = shifted - 12582912.0
    r = x - k * 0.693359375
    r = r + k * 2.12194440e-4
    p = r * 1.9875691500e-4 + 1.3981999507e-3
    p = p * r + 8.3334519073e-3
    p = p * r + 4.1665795894e-2
    p = p * r + 1.6666665459e-1
    p = p * r + 5.0000001201e-1
    e = p * (r * r) + r + 1.0
    n = bits(shifted) - 0x4B400000
    half = n >> 1
    return e * as_float((half + 127) << 23) * as_float((n - half + 127) << 23)


def _exp_f64(x):
    return x
