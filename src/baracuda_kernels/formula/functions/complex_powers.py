"""Exponentials, logarithms, roots and powers of complex numbers, with the special values and branch cuts of the C standard's annex G."""

from __future__ import annotations

from math import exp as exp_of
from math import inf

from baracuda_kernels.formula.complex import IN_PARTS, conj, imag, joined, real
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.elementary import exp, exp2, expm1, log, log1p, log2, log10, sigmoid
from baracuda_kernels.formula.functions.pieces import LN2, by_element, choose, sign_bit, with_sign
from baracuda_kernels.formula.functions.powers import hypot, pow, rsqrt
from baracuda_kernels.formula.functions.trigonometry import atan2, cos, sin
from baracuda_kernels.formula.operations import absolute, eq, sqrt, where

__all__ = ["FAR", "LARGEST", "NAMES", "complex_sqrt", "copysign", "either", "is_finite", "sign_is_minus", "turned"]

NAMES = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow", "sigmoid")  # what it makes of them
FAR = 64.0  # how far exponents are moved that are too large, so that what is infinite is so only after the product
LARGEST = (88.0, 709.0)  # exponents that are not


def is_finite(x: Expr) -> Expr:
    return absolute(x) < inf


def copysign(x: Expr, y: Expr) -> Expr:
    return with_sign(absolute(x), sign_bit(y))


def either(*cases: tuple[Expr, Expr | float], otherwise: Expr) -> Expr:
    """What stands beside the first condition that holds."""
    for condition, value in reversed(cases):
        otherwise = where(condition, value, otherwise)
    return otherwise


def turned(exponent: Expr, angle: Expr, power: Expr, cosine: Expr, sine: Expr) -> Expr:
    """A power, of which that is the exponent, in the direction of an angle. At minus infinity it is 0, and at infinity it is infinite,
    whatever the angle; an angle of 0 has no other part."""
    known = is_finite(angle)
    re = either((known, power * cosine), (eq(exponent, -inf), 0.0), (eq(exponent, inf), inf), otherwise=angle - angle)
    im = either((eq(angle, 0), angle), (known, power * sine), (eq(exponent, -inf), 0.0), otherwise=angle - angle)
    return joined(re, im)


@exp.of_complex()
def _exp(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    large = x > by_element(x, *LARGEST)
    power, grown = exp(where(large, x - FAR, x)), choose(large, exp_of(FAR), 1.0, x.element)
    return turned(x, y, power, cos(y) * grown, sin(y) * grown)


@exp2.of_complex()
def _exp2(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    large, angle = x > by_element(x, 127.0, 1023.0), y * LN2[0]
    power, grown = exp2(where(large, x - FAR, x)), choose(large, 2.0**FAR, 1.0, x.element)
    return turned(x, angle, power, cos(angle) * grown, sin(angle) * grown)


@expm1.of_complex()
def _expm1(z: Expr) -> Expr:
    """exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y / 2)²."""
    x, y = real(z), imag(z)
    power, half = exp(z), sin(y * 0.5)
    near = is_finite(y) & (x < 1.0) & (x > -1.0)
    return joined(where(near, expm1(x) * cos(y) - half * half * 2.0, real(power) - 1.0), imag(power))


def _log_of_size(x: Expr, y: Expr) -> Expr:
    """log |z|: near 1 by what |z|² is more than 1; what would overflow is halved."""
    a, b = absolute(x), absolute(y)
    most, least = where(a > b, a, b), where(a > b, b, a)
    large = most > by_element(x, 2.0**126, 2.0**1022)
    scale = choose(large, 0.5, 1.0, x.element)
    size = hypot(a * scale, b * scale)
    near = log1p((most - 1.0) * (most + 1.0) + least * least) * 0.5
    return where((size > 0.5) & (size < 2.0), near, log(size) + choose(large, LN2[0], 0.0, x.element))


@log.of_complex()
def _log(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    return joined(_log_of_size(x, y), atan2(y, x))


@log2.of_complex()
def _log2(z: Expr) -> Expr:
    return log(z) * 1.4426950408889634


@log10.of_complex()
def _log10(z: Expr) -> Expr:
    return log(z) * 0.4342944819032518


@log1p.of_complex()
def _log1p(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    whole = x + 1.0
    near = (absolute(x) < 0.5) & (absolute(y) < 0.5)
    return joined(where(near, log1p(x * (x + 2.0) + y * y) * 0.5, _log_of_size(whole, y)), atan2(y, whole))


def complex_sqrt(z: Expr) -> Expr:
    """By the root of the larger part of it; what would overflow, or has few digits, is scaled."""
    x, y = real(z), imag(z)
    a, b = absolute(x), absolute(y)
    most = where(a > b, a, b)
    large, small = most > by_element(x, 2.0**120, 2.0**1000), most < by_element(x, 2.0**-80, 2.0**-900)
    down = where(large, by_element(x, 2.0**-20, 2.0**-200), choose(small, by_element(x, 2.0**40, 2.0**200), 1.0, x.element))
    up = where(large, by_element(x, 2.0**10, 2.0**100), choose(small, by_element(x, 2.0**-20, 2.0**-100), 1.0, x.element))
    a, b = a * down, b * down
    root = sqrt((a + hypot(a, b)) * 0.5)
    other = where(eq(root, 0), b, b / (root + root))
    left = sign_is_minus(x)
    re, im = where(left, other, root) * up, where(left, root, other) * up
    endless = eq(absolute(y), inf)
    return joined(where(endless, inf, re), where(endless, y, copysign(im, y)))


def sign_is_minus(x: Expr) -> Expr:
    """Of zeros too."""
    return sign_bit(x) < 0


@rsqrt.of_complex()
def _rsqrt(z: Expr) -> Expr:
    return 1.0 / sqrt(z)


def _power_gradient(d: Expr, y: Expr, z: Expr, w: Expr) -> tuple[Expr, Expr]:
    """As in PyTorch: none of what is to the power of 0, none of the power of 0."""
    of_base = where(eq(w, 0), 0.0, conj(w * pow(z, w - 1.0)))
    of_power = where(eq(z, 0) & (real(w) >= 0.0), 0.0, conj(y * log(z)))
    return d * of_base, d * of_power


@pow.of_complex(_power_gradient)
def _pow(z: Expr, w: Expr) -> Expr:
    """exp(w log z). Squares and the number itself are products; 0 to the power of what is right of 0 is 0, anything to the power of 0 is 1."""
    found = either(
        (eq(imag(w), 0) & eq(real(w), 1.0), z), (eq(imag(w), 0) & eq(real(w), 2.0), z * z), (eq(imag(w), 0) & eq(real(w), -1.0), 1.0 / z),
        (eq(imag(w), 0) & eq(real(w), 0.5), sqrt(z)),
        otherwise=exp(w * log(z)),
    )  # fmt: skip
    return either((eq(w, 0), 1.0), (eq(z, 0) & (real(w) > 0.0), 0.0), otherwise=found)


@sigmoid.of_complex(lambda d, y, z: d * conj(sigmoid(z) * sigmoid(-z)))
def _sigmoid(z: Expr) -> Expr:
    """1 / (1 + exp(-z)), by whichever power is not large."""
    left = real(z) < 0
    power = exp(where(left, z, -z))
    return where(left, power, constant(1.0, power.element)) / (power + 1.0)


IN_PARTS["absolute"] = lambda z: hypot(real(z), imag(z))
IN_PARTS["sqrt"] = complex_sqrt
