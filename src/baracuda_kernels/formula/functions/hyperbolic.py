"""Hyperbolic functions and their inverses.

With x = k ln 2 + r, sinh(x) = cosh(k ln 2) sinh(r) + sinh(k ln 2) cosh(r), and cosh(x) the other way round: no quotient, and no loss near
zero. The inverses are logarithms of 1 + t, with t computed so that nothing cancels.
"""

from __future__ import annotations

from math import factorial

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import LOG2_E, exp_nonpositive, exp_reduced, exp_series, log1p, log1p_nonnegative
from baracuda_kernels.formula.functions.pieces import (
    LN2,
    by_element,
    choose,
    polynomial,
    power_of_two,
    ratio,
    root_roughly,
    sign_bit,
    with_sign,
)
from baracuda_kernels.formula.functions.powers import hypot
from baracuda_kernels.formula.operations import (
    absolute,
    exp2_roughly,
    fma,
    log2_roughly,
    rarely,
    reciprocal,
    rsqrt_roughly,
    sqrt,
    where,
)

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

# (tanh(x) - x) / x³ of x², |x| <= 0.55.
_TANH = (
    (-0.333333194, 0.133326381, -0.0538570806, 0.0210894216, -0.00629735505),
    (-0.3333333333333235, 0.1333333333317374, -0.053968253878410394, 0.021869486027208854, -0.00886319516845458, 0.0035917247777793814,
     -0.001453240674741925, 0.0005792048438782702, -0.00021040866468534624, 5.1092129622828406e-05),
)  # fmt: skip
_TANH_ROUGH = (-0.333245143, 0.131523567, -0.0430996508)
_SINH_ROUGH = (0.166582137, 0.00861061458)  # (sinh(x) / x - 1) / x² of x², |x| <= 1


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


def _halves_roughly(x: Expr) -> tuple[Expr, Expr]:
    """The root of exp(x) / 2, which does not overflow before the result does, and exp(-x) / 2."""
    root = exp2_roughly(fma(x, LOG2_E[0] / 2, -0.5))
    inverse = reciprocal(root)
    return root, inverse * 0.25 * inverse


@sinh.roughly
def _sinh_roughly(x: Expr) -> Expr:
    root, rest = _halves_roughly(x)
    return where(absolute(x) < 1.0, x * polynomial(x * x, (1.0, *_SINH_ROUGH)), fma(root, root, -rest))


@cosh.roughly
def _cosh_roughly(x: Expr) -> Expr:
    root, rest = _halves_roughly(x)
    return fma(root, root, rest)


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


def _root(x: Expr) -> Expr:
    """sqrt(x) to an f32's last digit, where `root_roughly` is good."""
    near = root_roughly(x)
    return fma(fma(-near, near, x), rsqrt_roughly(x + 2.0**-100) * 0.5, near)  # one step of Newton's


def _log_of_double(a: Expr) -> Expr:
    """log(2 a) of a number so large that a² - 1 and a² + 1 are a²."""
    return log1p(a) + LN2[0]


def _log_of_sum_roughly(a: Expr, root: Expr) -> Expr:
    """log(a + root), the root being that of a² + 1 or a² - 1, which may overflow."""
    large = a > 2.0**60
    return fma(log2_roughly(where(large, a, a + root)), LN2[0], choose(large, LN2[0], 0.0, a.element))


def _odd_roughly(x: Expr, coefficient: float, of_size: Expr) -> Expr:
    """An odd function of x from that of |x|; near zero, where logarithms are off by too much, x + coefficient x³."""
    return where(absolute(x) < 0.1, x * fma(x * x, coefficient, 1.0), with_sign(of_size, sign_bit(x)))


@function(lambda d, y, x: d / hypot(x, 1.0))
def asinh(x: Expr) -> Expr:
    """log(a + sqrt(a² + 1)), a = |x|."""
    a = absolute(x)
    square = a * a
    if x.element is ElementKind.F32:
        t = fma(square, reciprocal(_root(fma(a, a, 1.0)) + 1.0), a)
        return with_sign(rarely(~(a < 2.0**60), _log_of_double(a), log1p_nonnegative(t)), sign_bit(x))
    large = a > 1e18
    t = where(large, a, a + square / (sqrt(square + 1.0) + 1.0))
    return with_sign(log1p(t) + choose(large, LN2[0], 0.0, x.element), sign_bit(x))


@asinh.roughly
def _asinh_roughly(x: Expr) -> Expr:
    return _odd_roughly(x, -0.166048616, _log_of_sum_roughly(absolute(x), root_roughly(fma(x, x, 1.0))))


@function(lambda d, y, x: d / (sqrt(x - 1.0) * sqrt(x + 1.0)))
def acosh(x: Expr) -> Expr:
    """log(x + sqrt(x² - 1))."""
    if x.element is ElementKind.F32:
        return rarely(~(absolute(x) < 2.0**60), _log_of_double(x), log1p_nonnegative((x - 1.0) + _root(_square_less_one(x))))
    large, t = x > 1e18, x - 1.0
    return log1p(where(large, x, t + sqrt(_square_less_one(x)))) + choose(large, LN2[0], 0.0, x.element)


def _square_less_one(x: Expr) -> Expr:
    """x² - 1, but negative for all x < 1, so that its root is NaN."""
    t = x - 1.0
    return where(t < 0, t, t * (x + 1.0))


@acosh.roughly
def _acosh_roughly(x: Expr) -> Expr:
    return _log_of_sum_roughly(x, root_roughly(_square_less_one(x)))


@function(lambda d, y, x: d / ((1.0 - x) * (x + 1.0)))
def atanh(x: Expr) -> Expr:
    """log((1 + a) / (1 - a)) / 2, a = |x|."""
    a = absolute(x)
    double, below = a + a, 1.0 - a
    if x.element is ElementKind.F32:
        root = rsqrt_roughly(below)  # infinite or NaN where the result is
        inverse = root * root
        near = double * inverse
        t = fma(fma(-near, below, double), inverse, near)
        return with_sign(where(a < 1.0, log1p_nonnegative(t) * 0.5, root), sign_bit(x))
    return with_sign(log1p(double / below) * 0.5, sign_bit(x))


@atanh.roughly
def _atanh_roughly(x: Expr) -> Expr:
    a = absolute(x)
    return _odd_roughly(x, 0.335000604, (log2_roughly(a + 1.0) - log2_roughly(1.0 - a)) * (LN2[0] / 2))
