"""What several rows share: signs, division with its signs, powers and divisors of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.derive import gradients
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import sigmoid
from baracuda_kernels.formula.functions.pieces import by_element, nearest, sign_bit, with_sign
from baracuda_kernels.formula.operations import (
    absolute,
    bitcast,
    convert,
    eq,
    floor,
    fma,
    is_nan,
    ne,
    popcount,
    quotient,
    rarely,
    reciprocal,
    remainder,
    rint,
    shr_logical,
    where,
)

__all__ = [
    "INFINITY", "LEFT", "NAN", "bits_of", "flat", "floor_quotient", "floor_remainder", "greatest_divisor", "is_negative", "larger",
    "least_multiple", "power_of_integers", "smaller", "times_sigmoid", "truncated_quotient", "truncated_remainder", "truth",
    "wide_gradient", "with_sign_of",
]  # fmt: skip

INFINITY, NAN = float("inf"), float("nan")
LEFT = {ElementKind.F32: (64.0, 32.0), ElementKind.F64: (512.0, 256.0)}  # where exp has to be moved, and how far
F64, I64 = ElementKind.F64, ElementKind.I64


def wide_gradient(formula: Callable[..., Expr]) -> Callable[..., Any]:
    """The derived gradients in f64, of a formula whose terms cancel in them."""

    def found(d: Expr, *operands: Expr) -> Any:
        wide = [convert(operand, F64) for operand in operands]
        return tuple(convert(each, d.element) for each in gradients(formula(*wide), wide, convert(d, F64)))

    return found


def flat(d: Expr, *operands: Expr) -> tuple[Expr, ...]:
    """The gradients of steps: 0 between them, and none at them."""
    return tuple(constant(0, d.element) for _ in operands)


def truth(x: Expr) -> Expr:
    """Whether it is not zero, which NaN is not."""
    return convert(x, ElementKind.BOOL)


def bits_of(x: Expr) -> Expr:
    """A float as the integer of the same bits."""
    return bitcast(x, I64 if x.element is F64 else ElementKind.I32)


def is_negative(x: Expr) -> Expr:
    """Whether the sign is minus, which zeros and NaN have too."""
    return (bits_of(x) if x.element.is_float else x) < 0


def with_sign_of(x: Expr, y: Expr) -> Expr:
    return where(is_negative(y), -absolute(x), absolute(x))


def larger(a: Expr, b: Expr) -> Expr:
    """NaN if one of them is."""
    return where((a > b) | is_nan(a), a, b)


def smaller(a: Expr, b: Expr) -> Expr:
    """NaN if one of them is."""
    return where((a < b) | is_nan(a), a, b)


@function(lambda d, y, x, z: (d * sigmoid(z), d * x * (sigmoid(z) * sigmoid(-z))))
def times_sigmoid(x: Expr, z: Expr) -> Expr:
    """x sigmoid(z). Far to the left sigmoid is exp, and alone would be too small to have all its digits."""
    bound, shift = LEFT[z.element]
    found = x * sigmoid(where(z < -bound, z + shift, z))
    return where(z < -bound, found * math.exp(-shift), found)


def truncated_remainder(a: Expr, b: Expr) -> Expr:
    """What division towards zero leaves: it has the sign of `a`. Of an integer by 0 it is 0."""
    return float_fmod(a, b) if a.element.is_float else where(eq(b, 0), 0, remainder(a, b))


def floor_remainder(a: Expr, b: Expr) -> Expr:
    """What division towards minus infinity leaves: it has the sign of `b`. Of an integer by 0 it is 0."""
    if a.element.is_float:
        return float_remainder(a, b)
    left = truncated_remainder(a, b)
    return where(_signs_differ(left, b), left + b, left)


def truncated_quotient(a: Expr, b: Expr) -> Expr:
    """The quotient, towards zero. Of an integer by 0 it is 0."""
    if not a.element.is_float:
        return where(eq(b, 0), 0, quotient(a, b))
    is_short, whole, left = _short_division(a, b)
    short = _signed_zero(where(_signs_differ(left, a), whole - _sign_of_quotient(a, b), whole), a, b)
    dividend, divisor, left = _divided(a, b)
    ratio = dividend / divisor
    long = where(eq(absolute(ratio), INFINITY), ratio, _whole((dividend - left) / divisor, ratio))
    return rarely(~is_short, convert(long, a.element), short)


def floor_quotient(a: Expr, b: Expr) -> Expr:
    """The quotient, towards minus infinity. Of an integer by 0 it is 0."""
    if not a.element.is_float:
        whole = quotient(a, b)
        return where(eq(b, 0), 0, where(_signs_differ(remainder(a, b), b), whole - 1, whole))
    is_short, whole, left = _short_division(a, b)
    short = _signed_zero(where(_signs_differ(left, b), whole - 1.0, whole), a, b)
    dividend, divisor, left = _divided(a, b)
    near, ratio = (dividend - left) / divisor, dividend / divisor
    near = where(_signs_differ(left, divisor), near - 1, near)
    return rarely(~is_short, convert(where(eq(divisor, 0), ratio, _whole(near, ratio)), a.element), short)


def _divided(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Both in f64, and what division towards zero leaves."""
    return convert(a, F64), convert(b, F64), _long_division(a, b)


def _whole(near: Expr, ratio: Expr) -> Expr:
    """What is an integer but for rounding; a zero with the sign of the ratio."""
    whole = where(near - floor(near) > 0.5, floor(near) + 1, floor(near))
    return where(eq(whole, 0), with_sign_of(whole, ratio), whole)


@function(lambda d, y, a, b: flat(d, a, b))
def whole_towards_zero(a: Expr, b: Expr) -> Expr:
    return truncated_quotient(a, b)


@function(lambda d, y, a, b: flat(d, a, b))
def whole_downwards(a: Expr, b: Expr) -> Expr:
    return floor_quotient(a, b)


@function(lambda d, left, a, b: (d, -(d * whole_towards_zero(a, b))))
def float_fmod(a: Expr, b: Expr) -> Expr:
    """The short division is one of sizes: what is left then has no sign of its own."""
    size = absolute(b)
    is_short, _, left = _short_division(absolute(a), size)
    left = where(left < 0, left + size, left)
    return rarely(~is_short, convert(_long_division(a, b), a.element), with_sign(left, sign_bit(a)))


@function(lambda d, left, a, b: (d, -(d * whole_downwards(a, b))))
def float_remainder(a: Expr, b: Expr) -> Expr:
    """The short division is one by the size of `b`, of `a` with the sign that it has beside that of `b`."""
    size = absolute(b)
    is_short, _, rest = _short_division(with_sign(a, sign_bit(b)), size)
    rest = where(rest < 0, rest + size, rest)
    short = with_sign(rest, sign_bit(where(eq(rest, 0), a, b)))
    left, divisor = _long_division(a, b), convert(b, F64)
    return rarely(~is_short, convert(where(_signs_differ(left, divisor), left + divisor, left), a.element), short)


def _signs_differ(left: Expr, other: Expr) -> Expr:
    """Of what is left, unless it is zero, and of the divisor or the dividend."""
    return ne(left, 0) & ne(left < 0, other < 0)


def _short_division(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Whether it is one, then the quotient to an integer that may be the next one to the nearest, and what that leaves, both exact.

    The quotient is off by less than a quarter before it is rounded, so that at most three quarters of `b` are left: no more digits than `b` has.
    """
    near = a * reciprocal(b)  # by a `b` next to zero, infinite or NaN
    is_short = (absolute(near) < by_element(a, 2.0**19, 2.0**48)) & (absolute(b) < by_element(a, 2.0**100, 2.0**1000))
    whole, _ = nearest(near, 1.0)
    return is_short, whole, fma(-whole, b, a)


def _sign_of_quotient(a: Expr, b: Expr) -> Expr:
    return where(ne(a < 0, b < 0), -1.0, constant(1, a.element))


def _signed_zero(whole: Expr, a: Expr, b: Expr) -> Expr:
    """A zero with the sign of a / b."""
    return where(eq(whole, 0), where(ne(is_negative(a), is_negative(b)), -0.0, constant(0, a.element)), whole)


def _long_division(a: Expr, b: Expr) -> Expr:
    """The remainder with the sign of `a`, exact, in f64: 50 bits of the quotient at a time, as often as exponents can ask for."""
    steps = 42 if a.element is F64 else 6
    x, y = absolute(convert(a, F64)), absolute(convert(b, F64))
    (left, exponent), (divisor, scale) = _parts(x), _parts(y)
    inverse, places = 1 / divisor, exponent - scale
    for _ in range(steps):
        step = where(places < 50, where(places < 0, 0, places), 50)
        left = left * _power_of_two(step)
        left = fma(-rint(left * inverse), divisor, left)
        places = places - step
    left = where(left < 0, left + divisor, left)
    left = where(left < divisor, left, left - divisor)
    half = scale >> 1  # back to the size of `b` by two factors, since one alone need not be a normal number
    left = left * _power_of_two(half) * _power_of_two(scale - half)
    found = where((x < INFINITY) & (y > 0), where(x < y, x, left), NAN)
    return where(is_negative(a), -found, found)


def _power_of_two(exponent: Expr) -> Expr:
    """2 to an i64 power, as a normal f64."""
    return bitcast((exponent + 1023) << 52, F64)


def _parts(x: Expr) -> tuple[Expr, Expr]:
    """The significand, from 1 to 2, and the exponent of a positive f64."""
    tiny = x < 2.0**-1022
    bits = bits_of(where(tiny, x * 2.0**54, x))
    exponent = (bits >> 52) - 1023
    return bitcast((bits & ((1 << 52) - 1)) | (1023 << 52), F64), where(tiny, exponent - 54, exponent)


def power_of_integers(base: Expr, exponent: Expr) -> Expr:
    """An integer power by squaring, wrapping around. Negative powers are 0, except of 1 and -1."""
    signed = exponent.element is not ElementKind.U8
    found, square = where(eq(exponent & 1, 0), 1, base), base
    for place in range(1, exponent.element.size * 8 - signed):
        square = square * square
        found = where(eq((exponent >> place) & 1, 0), found, found * square)
    if not signed:
        return found
    of_minus_one = where(eq(exponent & 1, 0), -base, base)
    return where(exponent < 0, where(eq(base, 1), base, where(eq(base, -1), of_minus_one, 0)), found)


def greatest_divisor(a: Expr, b: Expr) -> Expr:
    """The gcd of two integers (binary algorithm): the smaller odd part is subtracted from the larger until they are equal; each step removes a bit at least."""
    a, b = absolute(a), absolute(b)
    x, y = where(eq(a, 0), 1, a), where(eq(b, 0), 1, b)
    twos, others = _trailing_zeros(x), _trailing_zeros(y)
    x, y = shr_logical(x, twos), shr_logical(y, others)
    for _ in range(2 * (8 * a.element.size - 1)):
        apart = where(x < y, y - x, x - y)
        even = where(eq(apart, 0), x, apart)
        x, y = shr_logical(even, _trailing_zeros(even)), where(x < y, x, y)
    return where(eq(a, 0), b, where(eq(b, 0), a, y << where(twos < others, twos, others)))


def least_multiple(a: Expr, b: Expr) -> Expr:
    """The lcm of two integers, not negative; 0 if one is 0."""
    divisor = greatest_divisor(a, b)
    return quotient(absolute(a), where(eq(divisor, 0), 1, divisor)) * absolute(b)


def _trailing_zeros(x: Expr) -> Expr:
    """How many zeros stand after the last one of an integer that is not 0."""
    return popcount(~x & (x - 1))
