"""Orthogonal polynomials as PyTorch has them: of order n, a float that is truncated to a whole number; of a negative one they are 0.

They are recurrences of |x|, one step for every order, in which near 1 the differences are what is added up, so that no digits are lost
there. Those of Chebyshev have closed forms too, for orders of which steps would be many: sines and cosines of angles, off by n units in
the last place of 1. Where PyTorch's recurrence overflows it ends in NaN; here that is infinite where the sign is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan
from math import sqrt as root

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function, no_derivative
from baracuda_kernels.formula.functions.fits import at_most, in_f64
from baracuda_kernels.formula.functions.hyperbolic import asinh, cosh, sinh
from baracuda_kernels.formula.functions.pieces import by_element, choose
from baracuda_kernels.formula.functions.trigonometry import asin, cos, sin
from baracuda_kernels.formula.loops import repeated
from baracuda_kernels.formula.operations import absolute, eq, fma, is_nan, less, rarely, rint, sqrt, trunc, where

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
]  # fmt: skip

FEW = 32  # orders up to which those of Chebyshev take steps
STEEP = 1.5  # from where on they take steps of any order: they are infinite after 776 at most
MOST_STEPS = 2.0**24  # of higher orders the others are NaN: there would be no digit left, and no end
HERMITE_ORDERS = (128.0, 512.0)  # in f32 and f64, beyond which PyTorch's are NaN


def _order(n: Expr) -> Expr:
    """The order as PyTorch takes it: what is no 64-bit number is negative."""
    whole = trunc(n)
    return where(absolute(whole) < 2.0**63, whole, -1.0)


def _is_odd(n: Expr) -> Expr:
    return ~eq(rint(n * 0.5) * 2, n)


def _is_finite(x: Expr) -> Expr:
    return absolute(x) < inf


def _reached(recurrence: Callable[..., tuple[Expr, Expr]], until: Expr, first: Expr, beside: Expr, *given: Expr) -> Expr:
    """The polynomial of order `until`, from `first`, that of order 1. The recurrence takes an order, the polynomial of that order, what it
    keeps beside it, and what is `given`, and gives the first two for the next order."""

    def goes_on(now: Expr, beside: Expr, k: Expr, until: Expr, *given: Expr) -> Expr:
        return less(k, until) & _is_finite(now)

    def step(now: Expr, beside: Expr, k: Expr, until: Expr, *given: Expr) -> Sequence[Expr]:
        return *recurrence(k, now, beside, *given), k + 1, until, *given

    found = repeated(goes_on, step, first, beside, constant(1.0, until.element), at_most(until, MOST_STEPS), *given)
    return where((until > MOST_STEPS) & _is_finite(found), nan, found)


def _for_order(n: Expr, found: Expr) -> Expr:
    """Of order 0 it is 1 and of a negative one 0, whatever x is."""
    return where(n < 0, 0.0, where(n < 1, 1.0, found))


# --- Chebyshev -------------------------------------------------------------------------------------------------------------------


def _chebyshev(kind: str, x: Expr, n: Expr, below: Expr) -> Expr:
    """`below` is 1 - |x|, which may be known to more digits than x."""
    order, size, left = _order(n), absolute(x), x < 0
    # Those of the third kind are those of the fourth, mirrored.
    third = left if kind == "w" else ~left
    found = rarely(
        (order > FEW) & (size < STEEP),
        _chebyshev_at_once(kind, order, size, below, third),
        _chebyshev_in_steps(kind, order, size, below, third),
    )
    return _for_order(order, where(left & _is_odd(order), -found, found))


def _chebyshev_in_steps(kind: str, n: Expr, x: Expr, below: Expr, third: Expr) -> Expr:
    def recurrence(k: Expr, now: Expr, change: Expr, x: Expr, below: Expr) -> tuple[Expr, Expr]:
        return _advanced(x, now, fma(below * -2.0, now, change), fma(x + x, now, change - now))

    change = {"t": -below, "u": x + x - 1}.get(kind)
    if change is None:
        change = where(third, below * -2.0, x + x)
    steps = where((n > FEW) & (x < STEEP), 0.0, n)
    return _reached(recurrence, steps, x if kind == "t" else change + 1, change, x, below)


def _advanced(x: Expr, now: Expr, near: Expr, far: Expr) -> tuple[Expr, Expr]:
    """The next polynomial, and its change: near 1 that is what is computed, elsewhere it would lose digits."""
    following = where(x > 0.5, now + near, far)
    return following, where(x > 0.5, near, following - now)


def _chebyshev_at_once(kind: str, n: Expr, x: Expr, below: Expr, third: Expr) -> Expr:
    """With x = cos(2 h), or cosh(2 h), where sin(h), or sinh(h), is the root of |1 - x| / 2."""
    inside = below >= 0
    sine, cosine = sqrt(absolute(below) * 0.5), sqrt(fma(x, 0.5, 0.5))
    times = {"t": n + n, "u": n + n + 2}.get(kind, n + n + 1)
    angle = times * where(inside, asin(sine), asinh(sine))

    def even() -> Expr:
        return where(inside, cos(angle), cosh(angle))

    def odd() -> Expr:
        return where(inside, sin(angle), sinh(angle))

    if kind == "t":
        return even()
    if kind == "u":
        return where(eq(below, 0), n + 1, odd() / (2 * sine * cosine))
    return where(third, even() / cosine, where(eq(below, 0), times, odd() / sine))


def _plain(kind: str) -> Callable[[Expr, Expr], Expr]:
    return lambda x, n: in_f64(lambda x, n: _chebyshev(kind, x, n, 1 - absolute(x)), x, n)


def _shifted(kind: str) -> Callable[[Expr, Expr], Expr]:
    """Those of 2 x - 1."""
    return lambda x, n: in_f64(lambda x, n: _chebyshev(kind, x + x - 1, n, 2 * where(x < 0.5, x, 1 - x)), x, n)


@function(no_derivative)
def chebyshev_polynomial_t(x: Expr, n: Expr) -> Expr:
    """cos(n θ) of x = cos(θ)."""
    return _plain("t")(x, n)


@function(no_derivative)
def chebyshev_polynomial_u(x: Expr, n: Expr) -> Expr:
    """sin((n + 1) θ) / sin(θ) of x = cos(θ)."""
    return _plain("u")(x, n)


@function(no_derivative)
def chebyshev_polynomial_v(x: Expr, n: Expr) -> Expr:
    """cos((n + 1/2) θ) / cos(θ / 2) of x = cos(θ)."""
    return _plain("v")(x, n)


@function(no_derivative)
def chebyshev_polynomial_w(x: Expr, n: Expr) -> Expr:
    """sin((n + 1/2) θ) / sin(θ / 2) of x = cos(θ)."""
    return _plain("w")(x, n)


@function(no_derivative)
def shifted_chebyshev_polynomial_t(x: Expr, n: Expr) -> Expr:
    return _shifted("t")(x, n)


@function(no_derivative)
def shifted_chebyshev_polynomial_u(x: Expr, n: Expr) -> Expr:
    return _shifted("u")(x, n)


@function(no_derivative)
def shifted_chebyshev_polynomial_v(x: Expr, n: Expr) -> Expr:
    return _shifted("v")(x, n)


@function(no_derivative)
def shifted_chebyshev_polynomial_w(x: Expr, n: Expr) -> Expr:
    return _shifted("w")(x, n)


# --- the others ------------------------------------------------------------------------------------------------------------------


def _hermite(x: Expr, n: Expr, most: float, scale: float) -> Expr:
    """Beyond its zeros a polynomial that overflows is positive; among them its sign is not known."""
    order, size = _order(n), absolute(x)

    def recurrence(k: Expr, now: Expr, before: Expr, x: Expr) -> tuple[Expr, Expr]:
        return scale * fma(x, now, -(k * before)), now

    found = _reached(recurrence, where(order > most, 0.0, order), size * scale, constant(1.0, x.element), size)
    large = choose(size * (root(scale) / 2) > sqrt(order + 0.5), inf, nan, x.element)
    found = where(order <= most, where(_is_finite(found), found, large), nan)
    return _for_order(order, where((x < 0) & _is_odd(order), -found, found))


@function(no_derivative)
def hermite_polynomial_h(x: Expr, n: Expr) -> Expr:
    """The physicist's; NaN from order 129 on in f32, 513 in f64, where PyTorch's are."""
    most = by_element(x, *HERMITE_ORDERS)
    return in_f64(lambda x, n: _hermite(x, n, most, 2.0), x, n)


@function(no_derivative)
def hermite_polynomial_he(x: Expr, n: Expr) -> Expr:
    """The probabilist's; NaN from order 129 on in f32, 513 in f64, where PyTorch's are."""
    most = by_element(x, *HERMITE_ORDERS)
    return in_f64(lambda x, n: _hermite(x, n, most, 1.0), x, n)


@function(no_derivative)
def laguerre_polynomial_l(x: Expr, n: Expr) -> Expr:
    return in_f64(_laguerre, x, n)


def _laguerre(x: Expr, n: Expr) -> Expr:
    order = _order(n)

    def recurrence(k: Expr, now: Expr, change: Expr, x: Expr) -> tuple[Expr, Expr]:
        change = fma(k, change, -(x * now)) / (k + 1)
        return now + change, change

    found = _reached(recurrence, order, 1 - x, -x, x)
    beyond = where(x > fma(order, 4.0, 2.0), choose(_is_odd(order), -inf, inf, x.element), nan)  # all zeros
    return _for_order(order, where(_is_finite(found) | is_nan(found) | (x < 0), found, beyond))


@function(no_derivative)
def legendre_polynomial_p(x: Expr, n: Expr) -> Expr:
    return in_f64(_legendre, x, n)


def _legendre(x: Expr, n: Expr) -> Expr:
    order, size = _order(n), absolute(x)

    def recurrence(k: Expr, now: Expr, change: Expr, x: Expr) -> tuple[Expr, Expr]:
        odd = k + k + 1
        near, far = fma(odd * (x - 1), now, k * change), fma(odd * x, now, k * (change - now))
        return _advanced(x, now, near / (k + 1), far / (k + 1))

    found = where(eq(size, 1), 1.0, _reached(recurrence, where(eq(size, 1), 0.0, order), size, size - 1, size))
    return _for_order(order, where((x < 0) & _is_odd(order), -found, found))
