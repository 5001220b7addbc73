"""Exponential integrals of any order, and hypergeometric functions: sums and continued fractions of as many terms as each element takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import exp, log
from baracuda_kernels.formula.functions.fits import at_most, in_f64
from baracuda_kernels.formula.functions.gamma import lgamma
from baracuda_kernels.formula.functions.pieces import fast_two_sum, two_product, two_sum
from baracuda_kernels.formula.loops import repeated
from baracuda_kernels.formula.operations import absolute, eq, floor, fma, is_nan, less, ne, rarely, rint, trunc, where

__all__ = ["expn", "hyp1f1"]


EULER_GAMMA = 0.5772156649015329
PART = 2.0**-58  # of a sum, that a term is too small to matter
MOST_TERMS = 4096.0


def _one(like: Expr) -> Expr:
    return constant(1.0, like.element)


def _zero(like: Expr) -> Expr:
    return constant(0.0, like.element)


# --- the exponential integral ------------------------------------------------------------------------------------------------------


def _expn_gradient(d: Expr, y: Expr, n: Expr, x: Expr) -> tuple[Expr, Expr]:
    """There is no formula for that of the order."""
    less_order = where(trunc(n) < 1, exp(-x) * (x + 1) / (x * x), expn(n - 1, x))
    return constant(nan, d.element), -(d * less_order)


@function(_expn_gradient)
def expn(n: Expr, x: Expr) -> Expr:
    """The integral of exp(-x t) / t^n from 1 on, of order n, which is truncated to an integer; NaN for n < 0 or x < 0."""
    return in_f64(_expn, n, x)


def _expn(n: Expr, x: Expr) -> Expr:
    order = at_most(trunc(n), 1e300)
    far = x > 1
    found = where(far, _expn_fraction(order, x, far), _expn_series(order, x, far))
    found = where(order < 1, exp(-x) / x, found)
    found = where(eq(x, 0), where(order < 2, inf, 1 / (order - 1)), found)
    return where((order >= 0) & (x >= 0), found, nan)


def _expn_series(n: Expr, x: Expr, far: Expr) -> Expr:
    """Of powers of -x, one of which has a logarithm in place of its quotient."""

    def goes_on(total: Expr, m: Expr, term: Expr, harmonic: Expr, n: Expr, x: Expr, logarithm: Expr) -> Expr:
        return absolute(term) > absolute(total) * (PART / 64)

    def step(total: Expr, m: Expr, term: Expr, harmonic: Expr, n: Expr, x: Expr, logarithm: Expr) -> Sequence[Expr]:
        before = n - 1 - m
        part = where(eq(before, 0), harmonic - logarithm, 1 / where(eq(before, 0), 1.0, before))
        return fma(term, part, total), m + 1, -(term * x) / (m + 1), harmonic + 1 / (m + 1), n, x, logarithm

    start = where(far, 0.0, _one(x))  # nothing to do
    return repeated(goes_on, step, _zero(x), _zero(x), start, constant(-EULER_GAMMA, x.element), n, x, log(x))


def _expn_fraction(n: Expr, x: Expr, far: Expr) -> Expr:
    """exp(-x) / (x + n - n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...))), by Lentz's method."""

    def goes_on(h: Expr, i: Expr, whole: Expr, c: Expr, d: Expr, change: Expr, n: Expr) -> Expr:
        return absolute(change - 1) > 2.0**-53

    def step(h: Expr, i: Expr, whole: Expr, c: Expr, d: Expr, change: Expr, n: Expr) -> Sequence[Expr]:
        part, whole = -(i * (n - 1 + i)), whole + 2
        c, d = whole + part / c, 1 / fma(part, d, whole)
        return h * (c * d), i + 1, whole, c, d, c * d, n

    whole = at_most(x, 1e6) + n
    change = where(far, constant(2.0, x.element), 1.0)
    inverse = 1 / whole
    found = repeated(goes_on, step, inverse, _one(x), whole, constant(1e300, x.element), inverse, change, n)
    return found * exp(-x)


# --- the confluent hypergeometric function -----------------------------------------------------------------------------------------


def _matters(term: Expr, total: Expr, k: Expr, growing: Expr) -> Expr:
    """Whether terms from this one on are part of the sum. Up to a place they may be `growing`."""
    larger = (absolute(term) > absolute(total) * PART) | (less(k, growing) & ne(term, 0))
    return larger & less(k, MOST_TERMS) & (absolute(total) < inf)


def _sum(ratio: Callable[..., Expr], start: Expr, *given: Expr) -> Expr:
    """The sum of terms, each of which is the one before times the ratio of its place and what is given."""

    def goes_on(total: Expr, k: Expr, term: Expr, *given: Expr) -> Expr:
        return _matters(term, total, k, given[-1])

    def step(total: Expr, k: Expr, term: Expr, *given: Expr) -> Sequence[Expr]:
        term = term * ratio(k, *given)
        return total + term, k + 1, term, *given

    return repeated(goes_on, step, start, _zero(start), start, *given)


def _hyp1f1_gradient(d: Expr, y: Expr, a: Expr, b: Expr, x: Expr) -> tuple[Expr, Expr, Expr]:
    return d * hyp1f1_slope_a(a, b, x), d * hyp1f1_slope_b(a, b, x), d * (a / b) * hyp1f1(a + 1, b + 1, x)


@function(_hyp1f1_gradient)
def hyp1f1(a: Expr, b: Expr, x: Expr) -> Expr:
    """Kummer's function: the sum over k of (a)_k x^k / (b)_k k!. Where terms of both signs cancel, as for large a < 0 < x or a > b
    with x < 0, it has twice the digits to lose."""
    return in_f64(_hyp1f1, a, b, x)


def _mirrored(a: Expr, b: Expr, x: Expr, left: Expr) -> tuple[Expr, Expr, Expr]:
    """Left of 0 it is exp(x) times that of b - a and -x: the first parameter, x, and that factor."""
    return where(left, b - a, a), where(left, -x, x), where(left, exp(x), 1.0)


def _is_pole(b: Expr) -> Expr:
    return (b <= 0) & eq(rint(b), b)


def _hyp1f1(a: Expr, b: Expr, x: Expr) -> Expr:
    left, ends = (x < 0) & ~_is_pole(a), _is_pole(a)
    first, size, scale = _mirrored(a, b, where(x > 1e300, 1e300, x), left)
    product, total = absolute(b - first) * absolute(1 - first), absolute(b - first) + absolute(1 - first)
    far = (size > 100) & (product + total < size * 0.5) & ~_is_pole(first)
    found = rarely(far, _hyp1f1_far(first, b, size, left), _hyp1f1_near(first, b, size, where(far, 0.0, scale)))
    found = where(_is_pole(b) & ~(ends & (a >= b)), inf, found)
    return where(is_nan(a + b + x), nan, where(eq(a, 0) | eq(x, 0), 1.0, found))


def _hyp1f1_near(a: Expr, b: Expr, x: Expr, scale: Expr) -> Expr:
    """The series times a number; where signs change, in numbers of twice the digits."""
    cancels = (a < 0) | (b < 0)
    plain = _sum(lambda k, a, b, x: (a + k) * x / ((b + k) * (k + 1)), where(cancels, 0.0, scale), a, b, x)
    return where(cancels, _sum_in_two(a, b, x, where(cancels, scale, 0.0)), plain)


def _sum_in_two(a: Expr, b: Expr, x: Expr, scale: Expr) -> Expr:
    """The same sum, where the total and each term are sums of two floats."""

    def goes_on(total: Expr, rest: Expr, k: Expr, term: Expr, low: Expr, a: Expr, b: Expr, x: Expr) -> Expr:
        return _matters(term, total, k, x)

    def step(total: Expr, rest: Expr, k: Expr, term: Expr, low: Expr, a: Expr, b: Expr, x: Expr) -> Sequence[Expr]:
        above, above_low = two_product_of_sum(a, k, x)
        below, below_low = two_product_of_sum(b, k, k + 1)
        product, lost = two_product(term, above)
        lost = lost + fma(term, above_low, low * above)
        quotient = product / below
        more = (fma(-quotient, below, product) + fma(-quotient, below_low, lost)) / below
        term, low = fast_two_sum(quotient, more)
        both, error = two_sum(total, term)
        total, rest = fast_two_sum(both, error + (rest + low))
        return total, rest, k + 1, term, low, a, b, x

    zero = _zero(x)
    return repeated(goes_on, step, scale, zero, zero, scale, zero, a, b, x)


def two_product_of_sum(a: Expr, k: Expr, x: Expr) -> tuple[Expr, Expr]:
    """(a + k) x as a sum of two floats."""
    both, lost = two_sum(a, k)
    product, error = two_product(both, x)
    return product, fma(lost, x, error)


def _hyp1f1_far(a: Expr, b: Expr, x: Expr, left: Expr) -> Expr:
    """Γ(b) / Γ(a) exp(x) x^(a - b) times a series in 1 / x, which would diverge in the end."""
    series = _sum(lambda k, c, e, inverse: (c + k) * (e + k) / (k + 1) * inverse, _one(x), b - a, 1 - a, 1 / x)
    exponent = fma(a - b, log(x), lgamma(b) - lgamma(a)) + where(left, 0.0, x)
    half = exp(exponent * 0.5)
    found = half * series * half
    return where(_is_negative_gamma(a) ^ _is_negative_gamma(b), -found, found)


def _is_negative_gamma(x: Expr) -> Expr:
    whole = floor(x)
    return (x < 0) & ~eq(rint(whole * 0.5) * 2, whole)


def _slope_sum(a: Expr, b: Expr, x: Expr, scale: Expr, of_a: Expr, of_b: Expr) -> Expr:
    """The derivative of the series along a times the one number, and along b times the other."""

    def goes_on(total: Expr, k: Expr, slope: Expr, term: Expr, a: Expr, b: Expr, x: Expr, of_a: Expr, of_b: Expr) -> Expr:
        return _matters(where(eq(k, 0), 1.0, slope), total, k, x)

    def step(total: Expr, k: Expr, slope: Expr, term: Expr, a: Expr, b: Expr, x: Expr, of_a: Expr, of_b: Expr) -> Sequence[Expr]:
        share = x / ((b + k) * (k + 1))
        ratio = (a + k) * share
        slope = fma(slope, ratio, term * (of_a * share - of_b * ratio / (b + k)))
        return total + slope, k + 1, slope, term * ratio, a, b, x, of_a, of_b

    zero = _zero(x)
    return repeated(goes_on, step, zero, zero, zero, scale, a, b, x, of_a, of_b)


def _unknown(d: Expr, y: Expr, *operands: Expr) -> tuple[Expr, ...]:
    """The second derivatives along a and b, for which there is no formula."""
    return (constant(nan, d.element),) * len(operands)


@function(_unknown)
def hyp1f1_slope_a(a: Expr, b: Expr, x: Expr) -> Expr:
    """The derivative of hyp1f1 along a."""

    def slope(a: Expr, b: Expr, x: Expr) -> Expr:
        first, size, scale = _mirrored(a, b, x, x < 0)
        return _slope_sum(first, b, size, scale, where(x < 0, -1.0, _one(x)), _zero(x))

    return in_f64(slope, a, b, x)


@function(_unknown)
def hyp1f1_slope_b(a: Expr, b: Expr, x: Expr) -> Expr:
    """The derivative of hyp1f1 along b."""

    def slope(a: Expr, b: Expr, x: Expr) -> Expr:
        first, size, scale = _mirrored(a, b, x, x < 0)
        return _slope_sum(first, b, size, scale, where(x < 0, _one(x), 0.0), _one(x))

    return in_f64(slope, a, b, x)
