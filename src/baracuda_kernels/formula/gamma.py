"""The gamma function and what belongs to it.

All is computed in F64. Below 1/2 the functions of one number are those of 1 - x, and a sine or cotangent of π x corrects that.
Sums and continued fractions have as many terms as the range that is written down with each needs.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from baracuda_kernels.formula import gamma_fits as fits
from baracuda_kernels.formula.elementary import exp, log, log1p, pow
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.fits import at_most, fraction, in_f64
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.normal import erfcx_right
from baracuda_kernels.formula.operations import absolute, eq, fma, rint, sqrt, where
from baracuda_kernels.formula.pieces import polynomial

__all__ = ["beta", "betainc", "betaln", "digamma", "gamma", "igamma", "igammac", "lgamma", "polygamma", "trigamma", "zeta"]

DIGAMMA_ZERO = (0.46163214496836236, -1.5522348162858677e-17)  # less 1, as a sum
FAR = 8  # from where the fits for large numbers hold
# As many terms as an error of 1e-13 takes wherever they are used.
ZETA_TERMS = 5
GAMMA_TERMS, GAMMA_LEVELS, TEMME_FROM = 46, 28, 20
BETA_LEVELS = 35


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
    return in_f64(_zeta, s, q)


def _zeta(s: Expr, q: Expr) -> Expr:
    pole = eq(s, 1) | ((q <= 0) & eq(rint(q), q))
    return where(s < 1, nan, where(pole, inf, where(q < 0, nan, _hurwitz(at_most(s, 1e300), q, None))))


def _hurwitz(s: Expr, q: Expr, scale: Expr | None) -> Expr:
    """zeta(s, q) exp(scale) for q > 0: a few terms, and the integral of the others with Euler's and Maclaurin's corrections."""

    def power(base: Expr, exponent: Expr) -> Expr:
        product = exponent * log(base)
        return exp(product if scale is None else product + scale)

    total = power(q, -s)
    for k in range(1, ZETA_TERMS):
        total = total + power(q + k, -s)
    rest = q + ZETA_TERMS
    inverse = 1 / rest
    square = inverse * inverse
    bounded = where(s > 100 * rest, 100 * rest, s)  # beyond that the first terms are all there is
    correction: Expr | float = fits.EULER_MACLAURIN[-1]
    for j in range(len(fits.EULER_MACLAURIN) - 1, 0, -1):
        rising = fma(bounded, bounded + (4 * j - 1), 2 * j * (2 * j - 1))  # (s + 2 j - 1) (s + 2 j)
        correction = fma(correction, rising * square, fits.EULER_MACLAURIN[j - 1])
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
    return in_f64(_polygamma, n, x)


def _polygamma(n: Expr, x: Expr) -> Expr:
    left, turn = (x < 0.5) & (n <= 4), _turn(x)
    y, _ = _reflected(x, left)
    size = _hurwitz(n + 1, y, _lgamma_right(n + 1, n))
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


@function(lambda d, y, x: d * trigamma(x))
def digamma(x: Expr) -> Expr:
    """The derivative of log Γ(x)."""
    return in_f64(_digamma, x)


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
    return in_f64(_lgamma, x)


def _lgamma(x: Expr) -> Expr:
    left = x < 0.5
    value = _lgamma_right(*_reflected(x, left))
    turn = _turn(x)
    reflected = -log(absolute(turn) * polynomial(turn * turn, fits.SINE)) - value
    return where(left, where(eq(rint(x), x), inf, reflected), value)


@function(lambda d, y, x: d * y * digamma(x))
def gamma(x: Expr) -> Expr:
    """Γ(x)."""
    return in_f64(_gamma, x)


def _scaled(z: Expr) -> tuple[Expr, Expr]:
    """Γ(z + 1) is the first times (the second / e)^(z + 1/2), where z ≥ -1/2."""
    return fraction(at_most(z, 1e40), fits.SCALED), z + 4.5


def _gamma(x: Expr) -> Expr:
    left = x < 0.5
    _, z = _reflected(x, left)
    scale, y = _scaled(z)
    base = y * (1 / e)
    power, rest = pow(base, z * 0.5), scale * sqrt(base)  # the square of that power may be infinite where the result is not
    turn = _turn(x)
    sine = where(_is_odd(rint(x)), -turn, turn) * polynomial(turn * turn, fits.SINE)
    pole = where(eq(x, 0), 1 / x, nan)
    return where(left, where(eq(turn, 0), pole, 1 / sine / (power * rest) / power), power * rest * power)


@function(lambda d, y, a, b: (d * y * (digamma(a) - digamma(a + b)), d * y * (digamma(b) - digamma(a + b))))
def beta(a: Expr, b: Expr) -> Expr:
    """Γ(a) Γ(b) / Γ(a + b) for a, b ≥ 0, else NaN."""
    return in_f64(_beta, a, b)


@function(lambda d, y, a, b: (d * (digamma(a) - digamma(a + b)), d * (digamma(b) - digamma(a + b))))
def betaln(a: Expr, b: Expr) -> Expr:
    """The logarithm of beta for a, b ≥ 0, else NaN."""
    return in_f64(_betaln, a, b)


def _beta_parts(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Beta is the first times exp(the second)."""
    less, most = where(a < b, a, b), where(a < b, b, a)
    more = at_most(most, 1e300)
    (scale, y), (scale_more, y_more), (scale_both, y_both) = _scaled(less), _scaled(more), _scaled(less + more)
    factor = (1 / absolute(a) + 1 / absolute(b)) * (scale * (scale_more / scale_both)) * sqrt(y_more / y_both * y * (1 / e))
    exponent = fma(more, log1p(-less / y_both), less * log(y / y_both))
    return where(less < 0, nan, factor), where(eq(most, inf), -inf, exponent)


def _beta(a: Expr, b: Expr) -> Expr:
    factor, exponent = _beta_parts(a, b)
    return factor * exp(exponent)


def _betaln(a: Expr, b: Expr) -> Expr:
    factor, exponent = _beta_parts(a, b)
    return log(factor) + exponent


@function(lambda d, y, a, b, x: (None, None, d * exp(fma(a - 1, log(x), fma(b - 1, log1p(-x), -betaln(a, b))))))
def betainc(a: Expr, b: Expr, x: Expr) -> Expr:
    """The integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, divided by that from 0 to 1, for 0 < a, b ≤ 300.

    Beyond that it loses digits: at 1000 it has 8, at 3000 4. Of a or b that is not positive it is NaN.
    """
    return in_f64(_betainc, a, b, x)


def _betainc(a: Expr, b: Expr, x: Expr) -> Expr:
    """A continued fraction, on the side where that is fast."""
    both = a + b
    few_a, few_b = a < 2, b < 2
    bound = where(few_a & ~few_b, 3.0, where(few_b & ~few_a, both - 1, a + 1))
    other = x * (both + 2) > bound
    p, q = where(other, b, a), where(other, a, b)
    t = where(other, 1 - x, x)
    (scale_p, y_p), (scale_q, y_q), (scale_both, y_both) = _scaled(p), _scaled(q), _scaled(both)
    factor = p * q / both * (scale_both / (scale_p * scale_q)) * sqrt(y_both / y_p / y_q * e)
    exponent = fma(p, log(t * y_both / y_p), q * log1p(fma(-t, y_both, p) / y_q))  # the latter is of (1 - t) y_both / y_q
    level = p + 2 * BETA_LEVELS
    first, second, third = t * q, t * p * (p + q), t * (p + p + q)
    for m in range(BETA_LEVELS, 0, -1):
        level = (p + (2 * m - 1)) + fma(t, -m * m, first * m) / level
        level = (p + (2 * m - 2)) - fma(t, (m - 1) ** 2, fma(third, m - 1, second)) / level
    part = factor * exp(exponent) / level
    return where((a > 0) & (b > 0), where(other, 1 - part, part), nan)


@function(lambda d, y, a, x: (None, d * _gamma_density(a, x)))
def igamma(a: Expr, x: Expr) -> Expr:
    """The integral of exp(-t) t^(a - 1) from 0 to x, divided by Γ(a). The relative error is 1e-13, of large a 1e-16 sqrt(a)."""
    return in_f64(lambda a, x: _igamma(a, x, True), a, x)


@function(lambda d, y, a, x: (None, -d * _gamma_density(a, x)))
def igammac(a: Expr, x: Expr) -> Expr:
    """1 - igamma(a, x). The error is 1e-15 of 1 and not of the result where x < 3 and a is near zero."""
    return in_f64(lambda a, x: _igamma(a, x, False), a, x)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return exp(fma(a - 1, log(x), -x) - lgamma(a))


def _igamma(a: Expr, x: Expr, lower: bool) -> Expr:
    """The lower part from a series where x < a or x < 3, else the upper one from a continued fraction; either of them from Temme's
    expansion where a is large and x near it. So there are enough terms for all a and x."""
    order, at = at_most(a, 1e300), at_most(x, 1e300)
    below = (at < where(order < 3, 3.0, order)) & (order > 0)

    series: Expr | float = 1.0
    for k in range(GAMMA_TERMS, 0, -1):
        series = fma(at / (order + k), series, 1)
    difference = at - order
    level = difference + (2 * GAMMA_LEVELS + 1)
    for k in range(GAMMA_LEVELS, 0, -1):
        level = difference + (2 * k - 1) - fma(order, -k, k * k) / level
    scale, y = _scaled(order)
    usual = where(below, series, order / level) * sqrt(e / y) / scale

    distance = difference / order
    excess = absolute(distance - log1p(distance))  # which rounding may make negative
    near = (order >= TEMME_FROM) & (distance > -0.5) & (distance < 0.6)
    eta = sqrt(excess + excess)
    eta = where(below, -eta, eta)
    inverse = 1 / order
    temme: Expr | float = 0.0
    for coefficients in reversed(fits.TEMME):
        temme = fma(temme, inverse, polynomial(eta, coefficients))
    temme = temme * sqrt(inverse * (0.5 / pi))
    uniform = fma(erfcx_right(sqrt(order * excess)), 0.5, where(below, -temme, temme))

    part = exp(where(near, -order * excess, fma(order, log(at / y), -difference))) * where(near, uniform, usual)
    valid = (a >= 0) & (x >= 0) & ~(eq(a, x) & (eq(a, 0) | eq(a, inf)))
    return where(valid, where(below, part, 1 - part) if lower else where(below, 1 - part, part), nan)
