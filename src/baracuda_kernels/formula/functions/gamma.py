"""The gamma function and what belongs to it.

Computed in F64, below 1/2 the functions of one number are those of 1 - x, and a sine or cotangent of π x corrects that. In F32 those that
have a short form for numbers of usual size step there from where a fit holds, factor by factor; the others are left to F64.
Sums have as many terms as the range that is written down with each needs.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import NamedTuple

from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions import gamma_fits as fits
from baracuda_kernels.formula.functions.elementary import exp, exponent_in_place, log, log_short
from baracuda_kernels.formula.functions.fits import Coefficients, at_most, fraction, in_f64
from baracuda_kernels.formula.functions.pieces import (
    by_element,
    choose,
    parts,
    polynomial,
    ratio,
    two_product,
)
from baracuda_kernels.formula.functions.powers import pow
from baracuda_kernels.formula.operations import absolute, eq, fma, is_nan, rarely, reciprocal, rint, sqrt, where

__all__ = ["digamma", "gamma", "lgamma", "polygamma", "trigamma", "zeta"]

DIGAMMA_ZERO = (0.46163214496836236, -1.5522348162858677e-17)  # less 1, as a sum
DIGAMMA_ZEROS = (-0.5040830082644554, -1.5734984731623905, -2.6107208684441446, -3.635293366436901)
FAR = 8  # from where the fits for large numbers hold
# As many terms as an error of 2e-9, for operands in F32, and of 1e-13 take wherever they are used.
ZETA = ((3, fits.EULER_MACLAURIN[:7]), (5, fits.EULER_MACLAURIN))  # of the sum itself, and what corrects the integral

Sums = tuple[int, Coefficients]


def _reflected(x: Expr, left: Expr) -> tuple[Expr, Expr]:
    """1 - x on the left of 1/2, else x; and the same less 1, which is not rounded there."""
    return where(left, 1 - x, x), where(left, -x, x - 1)


def _turn(x: Expr) -> Expr:
    """How far x is from an integer, with its sign."""
    return x - rint(x)


def _is_odd(x: Expr) -> Expr:
    return ~eq(rint(x * 0.5) * 2, x)


def _zeta_gradient(d: Expr, y: Expr, s: Expr, q: Expr) -> tuple[None, Expr]:
    return None, -d * s * zeta(s + 1, q)


@function(_zeta_gradient)
def zeta(s: Expr, q: Expr) -> Expr:
    """The sum of (q + k)^-s over k = 0, 1, 2 ... for s > 1 and q > 0. Zero and integers below it give infinity, other q < 0 NaN."""
    sums = by_element(s, *ZETA)
    return in_f64(lambda s, q: _zeta(s, q, sums), s, q)


def _zeta(s: Expr, q: Expr, sums: Sums) -> Expr:
    pole = eq(s, 1) | ((q <= 0) & eq(rint(q), q))
    return where(s < 1, nan, where(pole, inf, where(q < 0, nan, _hurwitz(at_most(s, 1e300), q, None, sums))))


def _hurwitz(s: Expr, q: Expr, scale: Expr | None, sums: Sums) -> Expr:
    """zeta(s, q) exp(scale) for q > 0: a few terms, and the integral of the others with Euler's and Maclaurin's corrections."""

    def power(base: Expr, exponent: Expr) -> Expr:
        product = exponent * log(base)
        return exp(product if scale is None else product + scale)

    terms, corrections = sums
    total = power(q, -s)
    for k in range(1, terms):
        total = total + power(q + k, -s)
    rest = q + terms
    inverse = 1 / rest
    square = inverse * inverse
    bounded = where(s > 100 * rest, 100 * rest, s)  # beyond that the first terms are all there is
    correction: Expr | float = corrections[-1]
    for j in range(len(corrections) - 1, 0, -1):
        rising = fma(bounded, bounded + (4 * j - 1), 2 * j * (2 * j - 1))  # (s + 2 j - 1) (s + 2 j)
        correction = fma(correction, rising * square, corrections[j - 1])
    tail = fma(square * bounded, correction, fma(inverse, 0.5, 1 / (s - 1)))
    return fma(power(rest, 1 - s), tail, total)


def _lgamma_right(y: Expr, less: Expr) -> Expr:
    """Where y ≥ 1/2; `less` is y - 1. Near its zeros 1 and 2 it is right to the last digits."""
    inverse = 1 / y
    near = fma(less, (less - 1) * fraction(less, fits.LGAMMA), 0.0)  # + 0 where it is -0
    stirling = fma(y - 0.5, log(y) - 1, 0.4189385332046727)  # log(2 π) / 2 - 1/2
    return where(y < FAR, near, stirling + inverse * polynomial(inverse * inverse, fits.LGAMMA_FAR))


def _polygamma_gradient(d: Expr, y: Expr, n: Expr, x: Expr) -> tuple[None, Expr]:
    return None, d * polygamma(n + 1, x)


@function(_polygamma_gradient)
def polygamma(n: Expr, x: Expr) -> Expr:
    """The derivative of digamma of order n = 1, 2, 3 ...; for x < 0 up to the fourth, NaN there of higher ones."""
    sums = by_element(x, *ZETA)
    return in_f64(lambda n, x: _polygamma(n, x, sums), n, x)


def _polygamma(n: Expr, x: Expr, sums: Sums) -> Expr:
    left, turn = (x < 0.5) & (n <= 4), _turn(x)
    y, _ = _reflected(x, left)
    size = _hurwitz(n + 1, y, _lgamma_right(n + 1, n), sums)
    # The derivatives of π cot(π x) are polynomials of it.
    cotangent = fraction(turn * turn, fits.COTANGENT) / turn
    square = cotangent * cotangent
    slope = square + pi**2
    third = 2 * slope * fma(square, 3.0, pi**2)
    fourth = -8 * cotangent * slope * fma(square, 3.0, 2 * pi**2)
    bent = where(eq(n, 1), slope, where(eq(n, 2), -2 * cotangent * slope, where(eq(n, 3), third, fourth)))
    right = where(_is_odd(n), size, -size)
    return where(n < 1, nan, where(left, bent - size, where(x < 0, nan, right)))


@function(lambda d, y, x: d * polygamma(2, x))
def trigamma(x: Expr) -> Expr:
    """The derivative of digamma."""
    return in_f64(_trigamma, x)


def _trigamma(x: Expr) -> Expr:
    left, turn = x < 0.5, _turn(x)
    y, less = _reflected(x, left)
    inverse = 1 / y
    square = inverse * inverse
    far = fma(square, fma(inverse, polynomial(square, fits.TRIGAMMA_FAR), 0.5), inverse)
    value = where(y < FAR, fraction(less, fits.TRIGAMMA), far)
    cosecant = 1 / (turn * polynomial(turn * turn, fits.SINE))
    return where(left, fma(cosecant, cosecant, -value), value)


@trigamma.roughly
def _trigamma_roughly(x: Expr) -> Expr:
    """Four terms of the sum of (y + k)^-2, by two quotients, and the integral of the others with its corrections."""
    left, turn = x < 0.5, _turn(x)
    y, _ = _reflected(x, left)
    bounded = at_most(y, 2.0**50)  # beyond which the terms are nothing
    sizes = fma(bounded, bounded, bounded), fma(bounded, bounded + 5, 6.0)
    first, second = ((inverse * inverse) * fma(size, 2.0, 1.0) for size, inverse in ((each, reciprocal(each)) for each in sizes))
    inverse = reciprocal(y + 4)
    square = inverse * inverse
    rest = fma(square, fma(inverse, polynomial(square, (1 / 6, -1 / 30, 1 / 42)), 0.5), inverse)
    cosecant = reciprocal(turn * polynomial(turn * turn, fits.SINE[:7]))
    value = first + (second + rest)
    return where(left, fma(cosecant, cosecant, -value), value)


@function(lambda d, y, x: d * trigamma(x))
def digamma(x: Expr) -> Expr:
    """The derivative of log Γ(x)."""
    return by_element(x, _digamma_short, _digamma)(x)


def _digamma_short(x: Expr) -> Expr:
    """In F32: left of 0 poles and zeros from -4 on are factors, so that nothing cancels; up to 1/2 it is that of x + 1 less 1 / x.
    From 6 on it has a logarithm."""
    left, leftmost, by_one = x < 0, x < -2, (x >= 0) & (x < 0.5)
    at, right = where(leftmost, x + 2, x), where(by_one, x + 1, x)
    first, second = (
        where(leftmost, _beyond(x, less), _beyond(x, more)) for less, more in zip(DIGAMMA_ZEROS[2:], DIGAMMA_ZEROS[:2], strict=True)
    )
    zeros, zeros_low = two_product(first, second)
    poles, poles_low = two_product(at + 1, at + 2)
    all_poles, lost = two_product(at, poles)
    inverse = reciprocal(where(left, all_poles, x))
    near = zeros * inverse
    missing = fma(-near, all_poles, zeros) + fma(-near, fma(at, poles_low, lost), zeros_low)
    top, bottom = (
        where(left, where(leftmost, polynomial(at + 0.625, less), polynomial(at + 1, more)), polynomial(right - 0.5, most))
        for less, more, most in zip(fits.DIGAMMA_LEFTMOST, fits.DIGAMMA_LEFT, fits.DIGAMMA_SHORT, strict=True)
    )
    base = where(left, choose(leftmost, -3.5, -3.0, x.element), 0.5)
    factor = where(left, fma(missing, inverse, near), _beyond(right, 1 + DIGAMMA_ZERO[0]))
    result = fma(factor, ratio(top, bottom) + base, where(by_one, -inverse, 0.0))
    small = reciprocal(x)
    square = small * small
    far = _log_of_size(x) - fma(square, polynomial(square, (1 / 12, -1 / 120, 1 / 252)), 0.5 * small)
    good = (x > -4) & (x < 1e37) & (absolute(inverse) < 2.0**100)
    return rarely(~good, in_f64(_digamma, x), where(x > 6, far, result))


def _digamma(x: Expr) -> Expr:
    left, turn = x < 0.5, _turn(x)
    y, less = _reflected(x, left)
    near = (less - DIGAMMA_ZERO[0] - DIGAMMA_ZERO[1]) * fraction(less, fits.DIGAMMA)
    inverse = 1 / y
    square = inverse * inverse
    far = log(y) - fma(square, polynomial(square, fits.DIGAMMA_FAR), 0.5 * inverse)
    value = where(y < FAR, near, far)
    pole = where(eq(x, 0), -1 / x, nan)
    return where(left, where(eq(turn, 0), pole, value - fraction(turn * turn, fits.COTANGENT) / turn), value)


@function(lambda d, y, x: d * digamma(x))
def lgamma(x: Expr) -> Expr:
    """The logarithm of |Γ(x)|."""
    return by_element(x, _lgamma_short, _lgamma)(x)


def _lgamma_short(x: Expr) -> Expr:
    result, usual = _lgamma_stepped(x)
    return rarely(~usual, in_f64(_lgamma, x), result)


@lgamma.roughly
def _lgamma_roughly(x: Expr) -> Expr:
    result, usual = _lgamma_stepped(x)
    return rarely(~usual, _lgamma_far_roughly(x), result)


def _lgamma_stepped(x: Expr) -> tuple[Expr, Expr]:
    """In F32: on the left of 1/2 log |Γ(x)| is that of x + 2 less log |x (x + 1)|, and from 5 on it is Stirling's formula; and where that
    holds, which is before the zeros on the left, near which the difference would lose digits."""
    left, far = x < 0.5, x > 5
    product = where(left, fma(x, x, x), x)
    logarithm = _log_of_size(product)
    less = x + choose(left, 1.0, -1.0, x.element)
    near = _lgamma_near(less, where(left, -logarithm, 0.0))
    return where(far, _stirling(x, logarithm), near), (x > -1.5) & (x < 1e37) & (absolute(product) > 2.0**-100)


def _lgamma_near(less: Expr, more: Expr) -> Expr:
    """log Γ(less + 1) + more in F32, less + 1 from 1/2 to 5."""
    top, bottom = (polynomial(less + 0.5, each) for each in fits.LGAMMA_SHORT)
    return fma(fma(less, less, -less), fma(top, reciprocal(bottom), 0.3), more)


def _stirling(x: Expr, logarithm: Expr) -> Expr:
    """log Γ(x) in F32, from 4 on."""
    inverse = reciprocal(x)
    rest = fma(inverse, polynomial(inverse * inverse, (1 / 12, -1 / 360, 1 / 1260)), 0.4189385332046727)  # log(2 π) / 2 - 1/2
    return fma(x - 0.5, logarithm - 1, rest)


def _lgamma_far_roughly(x: Expr) -> Expr:
    """In F32, where |x| is large or very small, or x is a pole, or around zeros: from -3 to -3/2, four steps from where it has none."""
    left, turn = x < 0, _turn(x)
    y = at_most(where(left, 1 - x, x), 1e37)
    stirling = where(absolute(x) < 1e37, _stirling(y, _log_of_size(y)), absolute(x))
    sine = absolute(turn) * polynomial(turn * turn, fits.SINE[:7])
    value = where(left, where(absolute(turn) > 0, -_log_of_size(sine) - stirling, inf), stirling)
    stepped = _lgamma_near(x + 3, -_log_of_size(fma(x, x, x) * fma(x, x + 5, 6.0)))
    value = where((x > -3) & (x < -1.5) & (absolute(turn) > 0), stepped, value)
    return where(absolute(x) < 0.5, -log(absolute(x)), where(absolute(x) < 1e37, value, where(is_nan(x), x, inf)))


def _beyond(x: Expr, zero: float) -> Expr:
    """How far an F32 is beyond a number with more digits."""
    high, low = parts((zero,), x, 2)
    return (x - high) - low


def _log_of_size(x: Expr) -> Expr:
    """log |x| of a normal number in F32: of 2^k (1 + f)."""
    size = absolute(x)
    k, scale = exponent_in_place(size)
    return log_short(k, fma(size, scale, -1.0))


def _lgamma(x: Expr) -> Expr:
    left = x < 0.5
    value = _lgamma_right(*_reflected(x, left))
    turn = _turn(x)
    reflected = -log(absolute(turn) * polynomial(turn * turn, fits.SINE)) - value
    return where(left, where(eq(rint(x), x), inf, reflected), value)


@function(lambda d, y, x: d * y * digamma(x))
def gamma(x: Expr) -> Expr:
    """Γ(x)."""
    return by_element(x, _gamma_short, _gamma)(x)


def _gamma_short(x: Expr) -> Expr:
    """In F32. What rounding takes from the two sides of the quotient is put back."""
    q = _gamma_quotient(x)
    below, lost = two_product(q.factors, q.divisor)
    inverse = reciprocal(below)
    near = q.above * inverse
    missing = fma(-near, fma(q.factors_low, q.divisor, lost), fma(-near, below, q.above) + q.above_low)
    return rarely(~q.usual, in_f64(_gamma, x), fma(missing, inverse, near))


class _Quotient(NamedTuple):
    """Γ(x) in F32: what is above, divided by the factors and the divisor, where `usual` holds."""

    above: Expr
    above_low: Expr
    factors: Expr
    factors_low: Expr
    divisor: Expr
    usual: Expr


def _gamma_quotient(x: Expr) -> _Quotient:
    """Of Γ(x + n), x + n from 1/2 to 5/2, and the factors between."""
    by_two, by_four, by_five = x < 0.5, x < -1.5, x < -3.5
    down = [x > bound for bound in (2.5, 4.5, 6.5)]
    two = fma(x, x, x)
    four, low = two_product(two * ((x + 2) * (x + 3)), where(by_five, x + 4, 1.0))
    factors = where(by_two, where(by_four, four, two), 1.0)
    upper = where(down[1], choose(down[2], -7.5, -5.5, x.element), choose(down[0], -3.5, -1.5, x.element))
    lower = where(by_four, choose(by_five, 3.5, 2.5, x.element), 0.5)
    divisor = polynomial(x + where(by_two, lower, upper), fits.INVERSE)
    first, second, third = (where(here, (x - k) * (x - (k + 1)), 1.0) for here, k in zip(down, (1, 3, 5), strict=True))
    first, (more, more_low) = first * fits.INVERSE_SCALE, two_product(second, third)
    above, lost = two_product(first, more)
    usual = (x > -4) & (x < 8.5) & (absolute(factors) > 2.0**-100)
    return _Quotient(above, fma(first, more_low, lost), factors, where(by_five, low, 0.0), divisor, usual)


@gamma.roughly
def _gamma_roughly(x: Expr) -> Expr:
    q, turn = _gamma_quotient(x), _turn(x)
    size = exp(_lgamma_far_roughly(x))
    signed = where((x < 0) & ~eq(_is_odd(rint(x)), turn < 0), -size, size)
    far = where(absolute(x) < 0.5, 1 / x, where((x < 0) & ~(absolute(turn) > 0), nan, signed))
    return rarely(~q.usual, far, q.above * reciprocal(q.factors * q.divisor))


def scaled(z: Expr) -> tuple[Expr, Expr]:
    """Γ(z + 1) is the first times (the second / e)^(z + 1/2), where z ≥ -1/2."""
    return fraction(at_most(z, 1e40), fits.SCALED), z + 4.5


def _gamma(x: Expr) -> Expr:
    left = x < 0.5
    _, z = _reflected(x, left)
    scale, y = scaled(z)
    base = y * (1 / e)
    power, rest = pow(base, z * 0.5), scale * sqrt(base)  # the square of that power may be infinite where the result is not
    turn = _turn(x)
    sine = where(_is_odd(rint(x)), -turn, turn) * polynomial(turn * turn, fits.SINE)
    pole = where(eq(x, 0), 1 / x, nan)
    return where(left, where(eq(turn, 0), pole, 1 / sine / (power * rest) / power), power * rest * power)
