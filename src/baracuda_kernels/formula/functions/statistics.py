"""Functions of statistics: divergence, the Box-Cox transformations, Owen's T."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, inf, pi
from math import sqrt as root

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function, no_derivative
from baracuda_kernels.formula.functions.elementary import exp, expm1, log, log1p
from baracuda_kernels.formula.functions.fits import at_most, in_f64
from baracuda_kernels.formula.functions.log_sums import log_ratio
from baracuda_kernels.formula.functions.normal import erf, ndtr
from baracuda_kernels.formula.functions.pieces import polynomial, sign_bit, two_product, with_sign
from baracuda_kernels.formula.loops import repeated
from baracuda_kernels.formula.operations import absolute, eq, fma, is_nan, where

__all__ = ["boxcox", "boxcox1p", "kl_div", "owens_t"]

POWERS = 15  # of s², s up to 0.3: what is left is less than a rounding
SLOPE = tuple(k / factorial(k + 1) for k in range(1, 20))  # of (exp(t) - 1) / t, for |t| ≤ 1
BEND = tuple(k * (k - 1) / factorial(k + 1) for k in range(2, 21))


def _kl_div_gradient(d: Expr, r: Expr, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return d * log_ratio(x, y), d * ((y - x) / y)


@function(_kl_div_gradient)
def kl_div(x: Expr, y: Expr) -> Expr:
    """x log(x / y) - x + y; y where x is 0, infinite where one of the two is negative or only y is 0. It is right to the last digits where
    they are alike and the three terms cancel."""
    return in_f64(_kl_div, x, y)


def _kl_div(x: Expr, y: Expr) -> Expr:
    more = (y - x) / x
    s = more / (more + 2)
    square = s * s
    # more - log(1 + more), whose logarithm is 2 artanh(s)
    near = s * fma(square, -2 * polynomial(square, tuple(1 / (2 * k + 3) for k in range(POWERS))), more)
    found = where(absolute(s) < 0.3, x * near, fma(x, log_ratio(x, y), y - x))
    return where((x > 0) & (y > 0), found, where(is_nan(x) | is_nan(y), x + y, where(eq(x, 0) & (y >= 0), y, inf)))


@function(no_derivative)
def power_bend(logarithm: Expr, exponent: Expr) -> Expr:
    """The derivative of `power_slope` along the exponent."""
    t = logarithm * exponent
    far = fma(t * exp(t), t - 2, 2 * expm1(t)) / (t * t * t)
    return logarithm * logarithm * logarithm * where(absolute(t) < 1, polynomial(t, BEND), far)


@function(lambda d, y, logarithm, exponent: (d * logarithm * exp(logarithm * exponent), d * power_bend(logarithm, exponent)))
def power_slope(logarithm: Expr, exponent: Expr) -> Expr:
    """The derivative of `power_less_one` along the exponent."""
    t = logarithm * exponent
    near = polynomial(t, SLOPE)
    far = fma(t, exp(t), -expm1(t)) / (t * t)
    return logarithm * logarithm * where(absolute(t) < 1, near, far)


@function(lambda d, y, logarithm, exponent: (d * exp(logarithm * exponent), d * power_slope(logarithm, exponent)))
def power_less_one(logarithm: Expr, exponent: Expr) -> Expr:
    """(exp(logarithm exponent) - 1) / exponent, and the logarithm itself where the exponent is 0."""
    t = logarithm * exponent
    half = exp(t * 0.5)  # the power may be infinite where the quotient is not
    far = half * (half / exponent) - 1 / exponent
    return where(eq(exponent, 0), logarithm, where(t < 700, expm1(t) / exponent, far))


def _boxcox_gradient(d: Expr, y: Expr, x: Expr, exponent: Expr) -> tuple[Expr, Expr]:
    return d * exp((exponent - 1) * log(x)), d * power_slope(log(x), exponent)


@function(_boxcox_gradient)
def boxcox(x: Expr, exponent: Expr) -> Expr:
    """(x^exponent - 1) / exponent; log(x) for an exponent of 0."""
    return in_f64(lambda x, exponent: power_less_one(log(x), exponent), x, exponent)


def _boxcox1p_gradient(d: Expr, y: Expr, x: Expr, exponent: Expr) -> tuple[Expr, Expr]:
    return d * exp((exponent - 1) * log1p(x)), d * power_slope(log1p(x), exponent)


@function(_boxcox1p_gradient)
def boxcox1p(x: Expr, exponent: Expr) -> Expr:
    """((1 + x)^exponent - 1) / exponent; log(1 + x) for an exponent of 0."""
    return in_f64(lambda x, exponent: power_less_one(log1p(x), exponent), x, exponent)


def _owens_t_gradient(d: Expr, y: Expr, h: Expr, a: Expr) -> tuple[Expr, Expr]:
    bell, both = exp(h * h * -0.5), fma(a, a, 1.0)
    return -(d * bell * erf(a * h * root(0.5)) * (0.5 / root(2 * pi))), d * exp(both * (h * h) * -0.5) / both * (0.5 / pi)


@function(_owens_t_gradient)
def owens_t(h: Expr, a: Expr) -> Expr:
    """Owen's T: the integral of exp(-h² (1 + t²) / 2) / (1 + t²) from 0 to a, divided by 2 π."""
    return in_f64(_owens_t, h, a)


def _owens_t(h: Expr, a: Expr) -> Expr:
    """Of a > 1 it is what T(h a, 1 / a) is missing. In 1 - t² the integrand's series has positive terms only."""
    height, slope = at_most(absolute(h), 1e150), at_most(absolute(a), 1e150)
    steep = slope > 1
    product, lost = two_product(height, slope)
    x, y = where(steep, product, height), where(steep, height, product)  # T(x, y / x)
    share = where(steep, 1 / slope, slope)
    # exp(-(x² + y²) / 2), with what rounding takes from the squares and the product
    square, rest = two_product(x, x)
    other, other_rest = two_product(y, y)
    missing = fma(product, -lost, (rest + other_rest) * -0.5)
    bell = exp(square * -0.5)
    both = bell * exp(other * -0.5)
    both = fma(both, missing, both)
    near = at_most(y, 9.0)
    inside = (
        share
        * (0.5 / pi)
        / fma(share, share, 1.0)
        * both
        * _owens_series(share * share / fma(share, share, 1.0), near * near * 0.5)
    )
    left, right = ndtr(-height), ndtr(-product)
    inside = where(y > 9, where(steep, right, left) * 0.5, inside)  # the rest of the integral is nothing
    found = where(steep, fma(left + right, 0.5, -(left * right)) - inside, inside)
    return with_sign(where(is_nan(h), h, found), sign_bit(a))


def _owens_series(q: Expr, s: Expr) -> Expr:
    """The sum over j of β_j times the sum of q^(j - i) s^i / i! over i ≤ j, with β_j the integral of (1 - t²)^j from 0 to 1."""

    def goes_on(total: Expr, k: Expr, inner: Expr, power: Expr, beta: Expr, q: Expr, s: Expr) -> Expr:
        return beta * inner > total * 2.0**-55

    def step(total: Expr, k: Expr, inner: Expr, power: Expr, beta: Expr, q: Expr, s: Expr) -> Sequence[Expr]:
        power = power * s / k
        inner, beta = fma(q, inner, power), beta * (2 * k) / fma(k, 2.0, 1.0)
        return fma(beta, inner, total), k + 1, inner, power, beta, q, s

    one = constant(1.0, q.element)
    return repeated(goes_on, step, one, one, one, one, one, q, s)
