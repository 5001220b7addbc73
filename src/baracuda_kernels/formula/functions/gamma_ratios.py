"""Ratios of gamma functions: Pochhammer's symbol and binomial coefficients.

Whole steps are factors, multiplied one by one: of integers the results are exact as long as they have digits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import e, inf, nan

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import exp, log1p
from baracuda_kernels.formula.functions.fits import at_most, in_f64
from baracuda_kernels.formula.functions.gamma import digamma, scaled
from baracuda_kernels.formula.functions.incomplete import beta
from baracuda_kernels.formula.functions.powers import pow
from baracuda_kernels.formula.functions.trigonometry import sinpi
from baracuda_kernels.formula.loops import repeated
from baracuda_kernels.formula.operations import absolute, eq, is_nan, less, ne, rint, trunc, where

__all__ = ["comb", "poch"]


@function(lambda d, y, z, m: (d * y * (digamma(z + m) - digamma(z)), d * y * digamma(z + m)))
def poch(z: Expr, m: Expr) -> Expr:
    """Γ(z + m) / Γ(z)."""
    return in_f64(_poch, z, m)


def _poch(z: Expr, m: Expr) -> Expr:
    whole = trunc(m)
    up = whole > 0
    factors = _factors(where(up, z, z + m), whole)
    start, rest = where(up, z + whole, z), m - whole
    found = where(eq(rest, 0), factors, factors * _ratio(start, rest, where(up, z + m, z + rest)))
    infinite = eq(absolute(factors), inf)
    ended = where(
        infinite & ~up, inf, where(infinite | eq(factors, 0), factors, found)
    )  # of a pole that is infinite, whatever its sign
    return where(is_nan(z + m), z + m, ended)


def _factors(z: Expr, steps: Expr) -> Expr:
    """z (z + 1) ... of so many factors, or one divided by that if there are fewer than none. Before there are many it is infinite or 0."""

    def goes_on(product: Expr, k: Expr, z: Expr, steps: Expr) -> Expr:
        return less(k, absolute(steps)) & ne(product, 0) & (absolute(product) < inf)

    def step(product: Expr, k: Expr, z: Expr, steps: Expr) -> Sequence[Expr]:
        return where(steps > 0, product * (z + k), product / (z + k)), k + 1, z, steps

    return repeated(goes_on, step, constant(1.0, z.element), constant(0.0, z.element), z, steps)


def _ratio(z: Expr, m: Expr, end: Expr) -> Expr:
    """Γ(z + m) / Γ(z) for |m| < 1, where `end` is z + m: left of 1/2 mirrored, and a step to the right where 1/2 lies between both."""
    left, across = (z < 0.5) & (end < 0.5), (z < 0.5) ^ (end < 0.5)
    moved = where(across, 1.0, constant(0.0, z.element))
    x, step = where(left, -z, z - 1 + moved), where(left, -m, m)
    (scale, _), (scale_end, y_end) = scaled(x), scaled(x + step)
    bounded = at_most(x, 1e300)
    grown = exp((bounded + 0.5) * log1p(step / (bounded + 4.5))) * pow(y_end * (1 / e), step) * (scale_end / scale)
    pole = sinpi(end)
    mirrored = where(eq(pole, 0), inf, sinpi(z) / pole / grown)
    return where(left, mirrored, where(across, grown * z / end, grown))


def _comb_gradient(d: Expr, y: Expr, n: Expr, k: Expr) -> tuple[Expr, Expr]:
    least, inside = digamma(n - k + 1), (k >= 0) & (k <= n)
    zero = constant(0.0, n.element)
    return where(inside, d * y * (digamma(n + 1) - least), zero), where(inside, d * y * (least - digamma(k + 1)), zero)


@function(_comb_gradient)
def comb(n: Expr, k: Expr) -> Expr:
    """How many ways there are to take k of n things; 0 where k is negative or more than n."""
    return in_f64(_comb, n, k)


def _comb(n: Expr, k: Expr) -> Expr:
    counts = eq(rint(k), k) | eq(rint(n - k), n - k)
    both = eq(rint(n), n)
    steps = where(counts & eq(rint(k), k) & ~(both & (k > n - k)), k, n - k)

    def goes_on(product: Expr, i: Expr, steps: Expr, base: Expr) -> Expr:
        return less(i, steps) & (product < inf)

    def step(product: Expr, i: Expr, steps: Expr, base: Expr) -> Sequence[Expr]:
        return product * (base + (i + 1)) / (i + 1), i + 1, steps, base

    one, zero = constant(1.0, n.element), constant(0.0, n.element)
    counted = repeated(goes_on, step, one, zero, where(counts, steps, 0.0), n - steps)
    found = where(counts, counted, 1 / ((n + 1) * beta(n - k + 1, k + 1)))
    return where(is_nan(n + k), nan, where((k >= 0) & (k <= n), found, 0.0))
