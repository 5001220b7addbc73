"""How the incomplete gamma function changes with its order: the derivative, and how a gamma variable does (what PyTorch samples by).

Both are the change per density: below the order from the series of positive terms, beyond it from the continued fraction and its derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function, no_derivative
from baracuda_kernels.formula.functions.elementary import exp, log
from baracuda_kernels.formula.functions.fits import in_f64
from baracuda_kernels.formula.functions.gamma import digamma, lgamma
from baracuda_kernels.formula.loops import repeated
from baracuda_kernels.formula.operations import absolute, eq, fma, less, where

__all__ = ["igamma_grad_a", "random_gamma_grad"]

PART = 2.0**-56
MOST_TERMS = 65536.0  # enough for orders up to 1e8
BIG = 2.0**52


@function(no_derivative)
def igamma_grad_a(a: Expr, x: Expr) -> Expr:
    """The derivative of igamma(a, x) along a."""
    return in_f64(_slope, a, x)


def _slope(a: Expr, x: Expr) -> Expr:
    change = _change(a, x) * exp(fma(a - 1, log(x), -x) - lgamma(a))
    change = where(eq(x, 0) | eq(x, inf), 0.0, change)
    return where((a > 0) & (x >= 0), change, nan)


@function(no_derivative)
def random_gamma_grad(a: Expr, sample: Expr) -> Expr:
    """How a gamma variable of order a that is at `sample` changes with a."""
    return in_f64(lambda a, x: where((a > 0) & (x >= 0), where(eq(x, 0), 0.0, -_change(a, x)), nan), a, sample)


def _change(a: Expr, x: Expr) -> Expr:
    """The derivative of igamma along a, divided by that along x."""
    far, apart = x > a + 1, log(x) - digamma(a)
    return x * where(far, -_fraction(a, x, apart, far), _series(a, x, apart, far))


def _series(a: Expr, x: Expr, apart: Expr, far: Expr) -> Expr:
    """The sum over k of x^k Γ(a) / Γ(a + k + 1) times log(x) - digamma(a + k + 1)."""

    def goes_on(total: Expr, k: Expr, term: Expr, apart: Expr, a: Expr, x: Expr) -> Expr:
        return (absolute(term * apart) > absolute(total) * PART) & less(k, MOST_TERMS)

    def step(total: Expr, k: Expr, term: Expr, apart: Expr, a: Expr, x: Expr) -> Sequence[Expr]:
        apart = apart - 1 / (a + k)
        total = fma(term, apart, total)
        return total, k + 1, term * (x / (a + (k + 1))), apart, a, x

    zero = constant(0.0, x.element)
    return repeated(goes_on, step, zero, zero, where(far, 0.0, 1 / a), apart, a, x)


def _fraction(a: Expr, x: Expr, apart: Expr, far: Expr) -> Expr:
    """The continued fraction of the complement, times `apart`, plus its derivative. Each level is p / q, of which the last two are kept, with
    derivatives; all are scaled when they are large."""

    def goes_on(found: Expr, change: Expr, c: Expr, *state: Expr) -> Expr:
        return (change > absolute(found) * PART) & less(c, MOST_TERMS)

    def step(found: Expr, change: Expr, c: Expr, *state: Expr) -> Sequence[Expr]:
        p2, q2, p1, q1, dp2, dq2, dp1, dq1, a, x, apart = state
        c = c + 1
        y, z = c + 1 - a, x + (c + c + 1) + (1 - a)
        part = y * c
        p, q = fma(p1, z, -(p2 * part)), fma(q1, z, -(q2 * part))
        dp, dq = fma(dp1, z, -p1) - fma(dp2, part, -(p2 * c)), fma(dq1, z, -q1) - fma(dq2, part, -(q2 * c))
        value = p / q
        following = fma(value, apart, (dp - value * dq) / q)
        scale = where(absolute(q) > BIG, 1 / BIG, constant(1.0, x.element))
        kept = (each * scale for each in (p1, q1, p, q, dp1, dq1, dp, dq))
        return following, absolute(following - found), c, *kept, a, x, apart

    one, zero = constant(1.0, x.element), constant(0.0, x.element)
    z = x + 2 - a
    value = (x + 1) / (z * x)
    # With z = x + 1 - a + 1: of the second level only q changes with a.
    begun = fma(value, apart, value / z)
    state = (one, x, x + 1, z * x, zero, zero, zero, -x, a, x, apart)
    return repeated(goes_on, step, begun, where(far, constant(inf, x.element), 0.0), zero, *state)
