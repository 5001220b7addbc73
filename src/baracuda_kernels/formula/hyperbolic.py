"""Hyperbolic functions and their inverses.

With x = k ln 2 + r, sinh(x) = cosh(k ln 2) sinh(r) + sinh(k ln 2) cosh(r), and cosh(x) the other way round: no quotient, and no loss near
zero. The inverses are logarithms of 1 + t, with t computed so that nothing cancels.
"""

from __future__ import annotations

from math import factorial

from baracuda_kernels.formula.elementary import LOG2_E, exp_nonpositive, exp_reduced, exp_series, hypot, log1p
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.operations import absolute, exp2_roughly, fma, reciprocal, sqrt, where
from baracuda_kernels.formula.pieces import LN2, by_element, choose, polynomial, power_of_two, ratio, sign_bit, with_sign

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

# (tanh(x) - x) / x³ of x², |x| <= 0.55.
_TANH = (
    (-0.333333194, 0.133326381, -0.0538570806, 0.0210894216, -0.00629735505),
    (-0.3333333333333235, 0.1333333333317374, -0.053968253878410394, 0.021869486027208854, -0.00886319516845458, 0.0035917247777793814,
     -0.001453240674741925, 0.0005792048438782702, -0.00021040866468534624, 5.1092129622828406e-05),
)  # fmt: skip
_TANH_ROUGH = (-0.333245143, 0.131523567, -0.0430996508)


def _parts(a: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Of a >= 0: half of cosh(k ln 2) and of sinh(k ln 2), as they may overflow, and sinh(r) and cosh(r) - 1."""
    most = by_element(a, 89.6, 710.6)
    k, n, r = exp_reduced(where(a > most, most, a))
    up = power_of_two(n - 2, a)
    down = where(k < 64, power_of_two(-2 - n, a), 0.0)
    z = r * r
    odd = tuple(1 / factorial(2 * power + 1) for power in range(1, by_element(a, 4, 7)))
    even = tuple(1 / factorial(2 * power) for power in range(1, by_element(a, 5, 8)))
    return up + down, up - down, fma(z * r, polynomial(z, odd), r), z * polynomial(z, even)


def _sinh_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * cosh(x)


@function(_sinh_gradient)
def sinh(x: Expr) -> Expr:
    of_cosh, of_sinh, sine, rest = _parts(absolute(x))
    return with_sign((of_sinh + fma(of_cosh, sine, of_sinh * rest)) * 2.0, sign_bit(x))


@function(lambda d, y, x: d * sinh(x))
def cosh(x: Expr) -> Expr:
    of_cosh, of_sinh, sine, rest = _parts(absolute(x))
    return (of_cosh + fma(of_sinh, sine, of_cosh * rest)) * 2.0


def _tanh_slope(x: Expr) -> Expr:
    e = exp_nonpositive(absolute(x) * -2.0)
    return ratio(e * 4.0, (e + 1.0) * (e + 1.0))


@function(lambda d, y, x: d * _tanh_slope(x))
def tanh(x: Expr) -> Expr:
    """Up to 0.55 a polynomial, then 1 - 2 e / (1 + e), e = exp(-2 |x|), whose last digits are lost in the difference."""
    a = absolute(x)
    z = a * a
    near = fma(z * a, polynomial(z, by_element(x, *_TANH)), a)
    double = a * -2.0
    _, n, r = exp_reduced(where(double < -60.0, -60.0, double), 1)
    e = exp_series(r) * power_of_two(n + 1, x)
    return with_sign(where(a < 0.55, near, 1.0 - ratio(e, fma(e, 0.5, 1.0))), sign_bit(x))


@tanh.roughly
def _tanh_roughly(x: Expr) -> Expr:
    a = absolute(x)
    z = a * a
    near = fma(z * a, polynomial(z, _TANH_ROUGH), a)
    e = exp2_roughly(fma(a, -2 * LOG2_E[0], 1.0))
    return with_sign(where(a < 0.55, near, fma(-e, reciprocal(fma(e, 0.5, 1.0)), 1.0)), sign_bit(x))


@function(lambda d, y, x: d / hypot(x, 1.0))
def asinh(x: Expr) -> Expr:
    """log(a + sqrt(a² + 1)), a = |x|."""
    a = absolute(x)
    large, square = a > 1e18, a * a
    t = where(large, a, a + square / (sqrt(square + 1.0) + 1.0))
    return with_sign(log1p(t) + choose(large, LN2[0], 0.0, x.element), sign_bit(x))


@function(lambda d, y, x: d / (sqrt(x - 1.0) * sqrt(x + 1.0)))
def acosh(x: Expr) -> Expr:
    """log(x + sqrt(x² - 1))."""
    large, t = x > 1e18, x - 1.0
    product = where(t < 0, t, t * (x + 1.0))  # whose root is NaN for all x < 1
    return log1p(where(large, x, t + sqrt(product))) + choose(large, LN2[0], 0.0, x.element)


@function(lambda d, y, x: d / ((1.0 - x) * (x + 1.0)))
def atanh(x: Expr) -> Expr:
    """log((1 + a) / (1 - a)) / 2, a = |x|."""
    a = absolute(x)
    return with_sign(log1p((a + a) / (1.0 - a)) * 0.5, sign_bit(x))
