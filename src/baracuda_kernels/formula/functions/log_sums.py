"""Logarithms of sums, differences and ratios, which lose no digits where these come close to 1."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf
from math import log as logarithm

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import (
    EXPM1_ROUGH,
    LOG2_E,
    exp,
    exp2_nonpositive,
    exp_nonpositive,
    exp_reduced,
    expm1,
    expm1_series,
    exponent_in_place,
    log,
    log1p,
    log1p_of_fraction,
    log1p_roughly,
    log_short,
    sigmoid,
)
from baracuda_kernels.formula.functions.fits import in_f64
from baracuda_kernels.formula.functions.pieces import LN2, choose, polynomial, power_of_two, ratio
from baracuda_kernels.formula.operations import absolute, convert, eq, fma, is_nan, rarely, reciprocal, where

__all__ = ["log1mexp", "logaddexp", "logaddexp2", "rel_entr"]


def _shares(d: Expr, difference: Expr, same: Expr) -> tuple[Expr, Expr]:
    """The shares of two summands in their sum, from the logarithm of their ratio; also of equal infinities."""
    difference = where(same, 0.0, difference)
    return d * sigmoid(difference), d * sigmoid(-difference)


@function(lambda d, y, a, b: _shares(d, a - b, eq(a, b)))
def logaddexp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b))."""
    return _unless_cancelled(_logaddexp, a, b)


def _logaddexp(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The larger summand, and what is added to it."""
    e = exp_nonpositive(-absolute(a - b))
    return where(a > b, a, b), where(eq(a, b), LN2[0], log1p_of_fraction(e))


def _unless_cancelled(compute: Callable[[Expr, Expr], tuple[Expr, Expr]], a: Expr, b: Expr) -> Expr:
    """The sum of two numbers, which may cancel as the second is positive: then F32 is computed in F64."""
    most, more = compute(a, b)
    total = most + more
    if a.element is ElementKind.F64:
        return total
    exact = operator.add(*compute(convert(a, ElementKind.F64), convert(b, ElementKind.F64)))
    return rarely((most < 0) & (absolute(total) < 0.5), convert(exact, a.element), total)


@function(lambda d, y, a, b: _shares(d, (a - b) * LN2[0], eq(a, b)))
def logaddexp2(a: Expr, b: Expr) -> Expr:
    """log2(2^a + 2^b)."""
    return _unless_cancelled(_logaddexp2, a, b)


def _logaddexp2(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    return where(a > b, a, b), where(eq(a, b), 1.0, log1p_of_fraction(exp2_nonpositive(-absolute(a - b))) * LOG2_E[0])


@logaddexp.roughly
def _logaddexp_of_halves(a: Expr, b: Expr) -> Expr:
    """By an exponential that is not rough, as the sum may cancel."""
    e = exp_nonpositive.expansion(-absolute(a - b))
    return where(a > b, a, b) + where(eq(a, b), LN2[0], log1p_roughly(e, e + 1.0))


@logaddexp2.roughly
def _logaddexp2_of_halves(a: Expr, b: Expr) -> Expr:
    e = exp2_nonpositive(-absolute(a - b))
    return where(a > b, a, b) + where(eq(a, b), 1.0, log1p_roughly(e, e + 1.0, LOG2_E[0]))


@function(lambda d, y, x: d / expm1(x))
def log1mexp(x: Expr) -> Expr:
    """log(1 - exp(-x))."""
    plain = where(x < logarithm(2), log(-expm1(-x)), log1p(-exp(-x)))
    return plain if x.element is ElementKind.F64 else rarely(~((x > 2.0**-100) & (x < 87)), plain, _log1mexp_short(x))


def _log1mexp_short(x: Expr) -> Expr:
    """By one exponential and one logarithm: near 1 that of a number less 1, which is known better."""
    _, n, r = exp_reduced(-x)
    power, p = power_of_two(n, x), expm1_series(r)
    rest = fma(-p, power, 1.0 - power)  # 1 - exp(-x)
    k, scale = exponent_in_place(rest)
    return log_short(k, where(eq(k, 0), fma(-p, power, -power), fma(rest, scale, -1.0)))


@log1mexp.roughly
def _log1mexp_roughly(x: Expr) -> Expr:
    e = exp_nonpositive(-x)
    rest = where(absolute(x) < 0.36, x * polynomial(-x, EXPM1_ROUGH), 1.0 - e)
    return log1p_roughly(-e, rest)


@function(lambda d, r, x, y: (d / x, -(d / y)))
def rel_entr_slope(x: Expr, y: Expr) -> Expr:
    """Along x: log(x / y) + 1, which may cancel."""
    return in_f64(rel_entr_slope, x, y) if x.element is ElementKind.F32 else _log_ratio(x, y) + 1


@rel_entr_slope.roughly
def _rel_entr_slope_roughly(x: Expr, y: Expr) -> Expr:
    inverse = reciprocal(y)
    quotient = x * inverse
    near = log1p_roughly((x - y) * inverse, quotient) + 1
    return rarely(~_is_usual(y, quotient), in_f64(rel_entr_slope, x, y), near)


@function(lambda d, r, x, y: (d * rel_entr_slope(x, y), -(d * (x / y))))
def rel_entr(x: Expr, y: Expr) -> Expr:
    """x log(x / y); 0 where x is 0, infinite where one of the two is negative."""
    if x.element is ElementKind.F64:
        found = where((x > 0) & (y > 0), x * _log_ratio(x, y), choose(eq(x, 0) & (y >= 0), 0.0, inf, x.element))
        return where(is_nan(x) | is_nan(y), x + y, found)
    quotient = x * reciprocal(y)
    k, scale = exponent_in_place(quotient)
    return _unless_extreme(x, y, quotient, log_short(k, ratio(fma(x, scale, -y), y)))


def _log_ratio(x: Expr, y: Expr) -> Expr:
    """log(x / y) of positive numbers; around 1 the logarithm is lost in the rounding of the ratio."""
    quotient = x / y
    apart = where((quotient > 1e-300) & (quotient < 1e300), log(quotient), log(x) - log(y))
    return where((0.5 * x < y) & (0.5 * y < x), log1p((x - y) / y), apart)


def _unless_extreme(x: Expr, y: Expr, quotient: Expr, log_ratio: Expr) -> Expr:
    is_zero = eq(x, 0)
    usual = _is_usual(y, where(is_zero, 1.0, quotient))
    return rarely(~usual, in_f64(rel_entr, x, y), where(is_zero, 0.0, x * log_ratio))


def _is_usual(y: Expr, quotient: Expr) -> Expr:
    """Whether a divisor and the quotient are of a size for which a reciprocal is good."""
    return (y > 2.0**-60) & (y < 2.0**60) & (quotient > 2.0**-60) & (quotient < 2.0**60)


@rel_entr.roughly
def _rel_entr_roughly(x: Expr, y: Expr) -> Expr:
    inverse = reciprocal(y)
    return _unless_extreme(x, y, x * inverse, log1p_roughly((x - y) * inverse, x * inverse))
