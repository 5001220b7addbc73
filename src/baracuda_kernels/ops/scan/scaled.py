"""Products that overflow nowhere on the way: a number m near 1, and a power e of two, that stand for m 2^e.

Joined as a tree, a part of a product may be larger than any float although the whole is none too large, or is zero. Of up to a thousand
factors, each between the roots of 1/2 and of 2, it stays within 2^-512 and 2^512, and so within f64. Zeros, infinities and NaN are m as they are.
"""

from __future__ import annotations

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.operations import absolute, bitcast, convert, eq, where

__all__ = ["MOST_FACTORS", "multiplied", "scaled", "settled", "unscaled"]

F32, F64, I32, I64 = ElementKind.F32, ElementKind.F64, ElementKind.I32, ElementKind.I64
MOST_FACTORS = 1024  # that are joined before one of them is settled
FAR = 1 << 20  # a power that no other factors bring back: the product is zero or infinite from there on
_BITS = {F32: (I32, 23), F64: (I64, 52)}  # an integer of that size, and the bits after the exponent
_ROOT_OF_HALF = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}  # bits
_SMALLEST_NORMAL = {F32: 2.0**-126, F64: 2.0**-1022}


def scaled(x: Expr) -> tuple[Expr, Expr]:
    integer, digits = _BITS[x.element]
    is_subnormal = absolute(x) < _SMALLEST_NORMAL[x.element]
    normal = where(is_subnormal, x * 2.0**digits, x)
    bits = bitcast(normal, integer)
    power = (bitcast(absolute(normal), integer) - _ROOT_OF_HALF[x.element]) >> digits
    m = where(_has_power(x), bitcast(bits - (power << digits), x.element), x)
    e = convert(power, I32) - where(is_subnormal, constant(digits, I32), 0)
    return m, where(_has_power(x), e, 0)


def multiplied(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    return a[0] * b[0], a[1] + b[1]


def _has_power(x: Expr) -> Expr:
    return (absolute(x) < float("inf")) & ~eq(x, 0.0)


def settled(state: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    m, more = scaled(state[0])
    e = where(_has_power(m), state[1] + more, 0)
    m = where(e > FAR, m * float("inf"), where(e < -FAR, m * 0.0, m))
    return m, where((e > FAR) | (e < -FAR), 0, e)


def unscaled(state: tuple[Expr, ...], element: ElementKind) -> Expr:
    """The product in f64; for f32 and narrower it need not be exact where those have only zero and infinity."""
    m, e = state
    if element is not F64:
        return m * _power(_clamped(e, 1000))
    e = _clamped(e, 3000)
    quarter = e >> 2
    return m * _power(quarter) * _power(quarter) * _power(quarter) * _power(e - quarter - quarter - quarter)


def _clamped(e: Expr, most: int) -> Expr:
    return where(e > most, most, where(e < -most, -most, e))


def _power(e: Expr) -> Expr:
    return bitcast((convert(e, I64) + 1023) << 52, F64)
