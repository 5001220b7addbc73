"""The beta function, and the incomplete gamma and beta functions.

Sums and continued fractions have as many terms as the range that is written down with each needs.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import NamedTuple

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions import gamma_fits as fits
from baracuda_kernels.formula.functions.elementary import exp, log, log1p
from baracuda_kernels.formula.functions.fits import Coefficients, at_most, in_f64
from baracuda_kernels.formula.functions.gamma import digamma, lgamma, scaled
from baracuda_kernels.formula.functions.normal import erfcx_right
from baracuda_kernels.formula.functions.pieces import by_element, polynomial
from baracuda_kernels.formula.operations import absolute, eq, fma, rarely, sqrt, where

__all__ = ["beta", "betainc", "betaln", "igamma", "igammac"]

TEMME_FROM = 20
BETA_LEVELS = 35


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
    (scale, y), (scale_more, y_more), (scale_both, y_both) = scaled(less), scaled(more), scaled(less + more)
    factor = (1 / absolute(a) + 1 / absolute(b)) * (scale * (scale_more / scale_both)) * sqrt(y_more / y_both * y * (1 / e))
    exponent = fma(more, log1p(-less / y_both), less * log(y / y_both))
    return where(less < 0, nan, factor), where(eq(most, inf), -inf, exponent)


def _beta(a: Expr, b: Expr) -> Expr:
    factor, exponent = _beta_parts(a, b)
    return factor * exp(exponent)


def _betaln(a: Expr, b: Expr) -> Expr:
    factor, exponent = _beta_parts(a, b)
    return log(factor) + exponent


Level = tuple[Expr, Expr]


def _continued(last: Expr, levels: list[Level]) -> Level:
    """What is above and below in a continued fraction: a level is its first number plus its second divided by the level before.
    Nothing is divided here, so numbers have to be scaled such that products of all levels are neither too large nor too small."""
    above, below = last, constant(1.0, last.element)
    for whole, part in levels:
        above, below = fma(whole, above, part * below), above
    return above, below


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
    (scale_p, y_p), (scale_q, y_q), (scale_both, y_both) = scaled(p), scaled(q), scaled(both)
    factor = p * q / both * (scale_both / (scale_p * scale_q)) * sqrt(y_both / y_p / y_q * e)
    exponent = fma(p, log(t * y_both / y_p), q * log1p(fma(-t, y_both, p) / y_q))  # the latter is of (1 - t) y_both / y_q
    scale = 1 / (p + BETA_LEVELS)
    start, square = p * scale, scale * scale
    rest, first, second, third = t * square, t * q * square, t * p * scale * (both * scale), t * (p + both) * square
    levels: list[Level] = []
    for m in range(BETA_LEVELS, 0, -1):
        levels.append((fma(scale, 2 * m - 1, start), fma(rest, -m * m, first * m)))
        levels.append((fma(scale, 2 * m - 2, start), -fma(rest, (m - 1) ** 2, fma(third, m - 1, second))))
    above, below = _continued(fma(scale, 2 * BETA_LEVELS, start), levels)
    part = factor * exp(exponent) * (scale * below / above)
    return where((a > 0) & (b > 0), where(other, 1 - part, part), nan)


class _Terms(NamedTuple):
    """How many terms each expansion of the incomplete gamma function takes."""

    series: int
    levels: int  # of the continued fraction
    temme: tuple[Coefficients, ...]


_LONG = _Terms(46, 28, fits.TEMME)
# For an error of 2e-9.
_SHORT = _Terms(33, 14, tuple(row[:length] for row, length in zip(fits.TEMME, (11, 9, 6, 4, 2), strict=False)))


@function(lambda d, y, a, x: (None, d * _gamma_density(a, x)))
def igamma(a: Expr, x: Expr) -> Expr:
    """The integral of exp(-t) t^(a - 1) from 0 to x, divided by Γ(a). The relative error is 1e-13, of large a 1e-16 sqrt(a)."""
    terms = by_element(a, _SHORT, _LONG)
    return in_f64(lambda a, x: _igamma(a, x, True, terms), a, x)


@function(lambda d, y, a, x: (None, -d * _gamma_density(a, x)))
def igammac(a: Expr, x: Expr) -> Expr:
    """1 - igamma(a, x). The error is 1e-15 of 1 and not of the result where x < 3 and a is near zero."""
    terms = by_element(a, _SHORT, _LONG)
    return in_f64(lambda a, x: _igamma(a, x, False, terms), a, x)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return exp(fma(a - 1, log(x), -x) - lgamma(a))


def _igamma(a: Expr, x: Expr, lower: bool, terms: _Terms) -> Expr:
    """The lower part from a series where x < a or x < 3, else the upper one from a continued fraction; either of them from Temme's
    expansion where a is large and x near it. So there are enough terms for all a and x."""
    order, at = at_most(a, 1e300), at_most(x, 1e300)
    below = (at < where(order < 3, 3.0, order)) & (order > 0)

    series_above, series_below = constant(1.0, a.element), constant(1.0, a.element)
    scale = 1 / (order + terms.series // 2)  # which keeps the products in range
    start, step = order * scale, at * scale
    for k in range(terms.series, 0, -1):
        series_below = series_below * fma(scale, k, start)
        series_above = fma(step, series_above, series_below)
    difference = at - order
    scale = 1 / (difference + terms.levels)
    start, square = difference * scale, scale * scale
    part = order * scale * scale
    levels = [(fma(scale, 2 * k - 1, start), fma(part, k, square * (-k * k))) for k in range(terms.levels, 0, -1)]
    level_above, level_below = _continued(fma(scale, 2 * terms.levels + 1, start), levels)
    stirling, y = scaled(order)
    usual = where(below, series_above, order * scale * level_below) / (where(below, series_below, level_above) * stirling)
    usual = usual * sqrt(e / y)

    distance = difference / order
    excess = absolute(distance - log1p(distance))  # which rounding may make negative
    near = (order >= TEMME_FROM) & (distance > -0.5) & (distance < 0.6)
    eta = sqrt(excess + excess)
    eta = where(below, -eta, eta)
    inverse = 1 / order
    temme: Expr | float = 0.0
    for coefficients in reversed(terms.temme):
        temme = fma(temme, inverse, polynomial(eta, coefficients))
    temme = temme * sqrt(inverse * (0.5 / pi))
    uniform = fma(erfcx_right(sqrt(order * excess)), 0.5, where(below, -temme, temme))

    exponent = rarely(near, -order * excess, fma(order, log(at / y), -difference))
    part = exp(exponent) * rarely(near, uniform, usual)
    valid = (a >= 0) & (x >= 0) & ~(eq(a, x) & (eq(a, 0) | eq(a, inf)))
    return where(valid, where(below, part, 1 - part) if lower else where(below, 1 - part, part), nan)
