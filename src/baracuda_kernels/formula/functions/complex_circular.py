"""Hyperbolic and trigonometric functions of complex numbers and their inverses, with the special values and branch cuts of the C standard's
annex G.

sin z = -i sinh iz, cos z = cosh iz, tan z = -i tanh iz, and so their inverses. The inverses of sinh and cosh are made of roots of 1 + z and 1 - z
(Kahan, Branch cuts for complex elementary functions), that of tanh of a logarithm of 1 + 4 x / ((1 - x)² + y²).
"""

from __future__ import annotations

from math import exp as exp_of
from math import inf, nan, pi

from baracuda_kernels.formula.complex import conj, imag, joined, real, timed
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.complex_powers import FAR, LARGEST, copysign, either, is_finite, sign_is_minus
from baracuda_kernels.formula.functions.elementary import exp, log, log1p
from baracuda_kernels.formula.functions.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from baracuda_kernels.formula.functions.pieces import LN2, by_element, choose
from baracuda_kernels.formula.functions.powers import hypot
from baracuda_kernels.formula.functions.trigonometry import acos, asin, atan, atan2, cos, sin, sinc, tan
from baracuda_kernels.formula.operations import absolute, eq, is_nan, sqrt, where

__all__ = ["NAMES"]

NAMES = (
    "sinh",
    "cosh",
    "tanh",
    "sin",
    "cos",
    "tan",
    "sinc",
    "asinh",
    "acosh",
    "atanh",
    "asin",
    "acos",
    "atan",
)  # what it makes of them


def _both(x: Expr) -> tuple[Expr, Expr, Expr]:
    """cosh(x) and sinh(x), made small where they would overflow, and what makes them large again."""
    size = absolute(x)
    large = size > by_element(x, *LARGEST)
    half = exp(where(large, size - FAR, 0.0)) * 0.5
    usual = where(large, 0.0, x)
    grown = choose(large, exp_of(FAR), 1.0, x.element)
    return where(large, half, cosh(usual)), where(large, copysign(half, x), sinh(usual)), grown


@sinh.of_complex(lambda d, y, z: d * conj(cosh(z)))
def _sinh(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    even, odd, grown = _both(x)
    known, unknown = is_finite(y), y - y
    re = either((known, odd * (cos(y) * grown)), (eq(x, 0) | eq(absolute(x), inf), x), otherwise=unknown)
    return joined(re, either((eq(y, 0), y), (known, even * (sin(y) * grown)), otherwise=unknown))


@cosh.of_complex()
def _cosh(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    even, odd, grown = _both(x)
    known, unknown = is_finite(y), y - y
    re = either((known, even * (cos(y) * grown)), (eq(absolute(x), inf), inf), otherwise=unknown)
    im = either((eq(y, 0), where(sign_is_minus(x), -y, y)), (known, odd * (sin(y) * grown)), (eq(x, 0), x), otherwise=unknown)
    return joined(re, im)


@tanh.of_complex(lambda d, y, z: d * conj(1.0 - y * y))
def _tanh(z: Expr) -> Expr:
    """Kahan's, by tan(y) and sinh(x); far to either side 1 or -1, and by the power that is left."""
    x, y = real(z), imag(z)
    size = absolute(x)
    far, unknown = size > by_element(x, 9.0, 22.0), y - y
    slope, odd = tan(y), sinh(where(far, 0.0, x))
    even, stretch = sqrt(odd * odd + 1.0), slope * slope + 1.0
    whole = stretch * (odd * odd) + 1.0
    is_known = is_finite(y) | eq(size, inf)
    one = copysign(constant(1.0, x.element), x)
    re = either((far, where(is_known, one, unknown)), (eq(x, 0), x), otherwise=stretch * even * odd / whole)
    rest = sin(y) * cos(y) * exp(where(far, size, 0.0) * -2.0) * 4.0
    at_end = where(is_finite(y), copysign(constant(0.0, x.element), rest), copysign(constant(0.0, x.element), y))
    im = either((eq(y, 0), y), (eq(size, inf), at_end), (far, rest), otherwise=slope / whole)
    return joined(re, im)


@sin.of_complex()
def _sin(z: Expr) -> Expr:
    return timed(sinh(timed(z, 1)), -1)


@cos.of_complex()
def _cos(z: Expr) -> Expr:
    return cosh(timed(z, 1))


@tan.of_complex()
def _tan(z: Expr) -> Expr:
    return timed(tanh(timed(z, 1)), -1)


def _sinc_gradient(d: Expr, y: Expr, z: Expr) -> Expr:
    turn = z * pi
    return d * conj(where(eq(z, 0), 0.0, (cos(turn) * turn - sin(turn)) / (turn * z)))


@sinc.of_complex(_sinc_gradient)
def _sinc(z: Expr) -> Expr:
    turn = z * pi
    return where(eq(z, 0), 1.0, sin(turn) / turn)


# --- inverses ------------------------------------------------------------------------------------------------------------------


def _is_large(x: Expr, y: Expr) -> Expr:
    """Where 1 is nothing beside it; infinities are."""
    bound = by_element(x, 2.0**60, 2.0**500)
    return (absolute(x) > bound) | (absolute(y) > bound)


def _log_of_double(x: Expr, y: Expr) -> Expr:
    """log |2z| of what is large."""
    return log(hypot(x * 0.25, y * 0.25)) + LN2[0] * 3.0


def _roots(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Those of 1 - z and of 1 + z; of what is large those of something else."""
    large = _is_large(x, y)
    x, y = (where(large, 0.0, each) for each in (x, y))
    return sqrt(joined(1.0 - x, -y)), sqrt(joined(x + 1.0, y))


@acos.of_complex()
def _acos(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    less, more = _roots(x, y)
    large = _is_large(x, y)
    re = either((large, atan2(absolute(y), x)), (eq(x, 0) & is_nan(y), pi / 2), otherwise=atan2(real(less), real(more)) * 2.0)
    far = -copysign(_log_of_double(x, y), y)
    return joined(re, where(large, far, asinh(real(more) * imag(less) - imag(more) * real(less))))


@acosh.of_complex(lambda d, y, z: d * conj(1.0 / (sqrt(z - 1.0) * sqrt(z + 1.0))))
def _acosh(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    large = _is_large(x, y)
    near_x, near_y = (where(large, 0.0, each) for each in (x, y))
    less, more = sqrt(joined(near_x - 1.0, near_y)), sqrt(joined(near_x + 1.0, near_y))
    re = where(large, _log_of_double(x, y), asinh(real(less) * real(more) + imag(less) * imag(more)))
    im = either((large, atan2(y, x)), (eq(x, 0) & is_nan(y), pi / 2), otherwise=atan2(imag(less), real(more)) * 2.0)
    return joined(re, im)


@asinh.of_complex(lambda d, y, z: d * conj(1.0 / sqrt(z * z + 1.0)))
def _asinh(z: Expr) -> Expr:
    x, y = real(z), imag(z)
    large = _is_large(x, y)
    less, more = _roots(-y, x)  # of iz: 1 + y - ix, and 1 - y + ix
    re = where(large, copysign(_log_of_double(x, y), x), asinh(real(less) * imag(more) - real(more) * imag(less)))
    usual = atan2(y, real(less) * real(more) - imag(less) * imag(more))
    return joined(re, either((large, atan2(y, absolute(x))), (eq(y, 0), y), otherwise=usual))


@asin.of_complex()
def _asin(z: Expr) -> Expr:
    return timed(asinh(timed(z, 1)), -1)


@atanh.of_complex()
def _atanh(z: Expr) -> Expr:
    """Of the right half; the left one is its mirror."""
    x, y = absolute(real(z)), imag(z)
    size = absolute(y)
    bound, least = by_element(x, (2.0**60, 2.0**-60), (2.0**500, 2.0**-500))
    large = (x > bound) | (size > bound)
    on_pole = eq(x, 1.0) & (size < least)
    near_x, near_y = where(large, 0.0, x), where(large, 0.0, y)
    across = 1.0 - near_x
    usual = log1p(near_x * 4.0 / (across * across + near_y * near_y)) * 0.25
    half = hypot(x * 0.5, y * 0.5)
    far = where(eq(x, inf) | eq(size, inf), 0.0, x * 0.25 / half / half)
    pole = where(eq(size, 0), inf, -log(sqrt(size) / sqrt(hypot(size, constant(2.0, x.element)))))
    re = either((eq(x, 0), x), (large, far), (on_pole, pole), otherwise=usual)
    unknown = is_nan(y) | (is_nan(x) & is_finite(y))
    right_angle = copysign(choose(unknown, nan, pi / 2, x.element), y)
    of_pole = where(eq(size, 0), y, copysign(atan2(constant(2.0, x.element), -size) * 0.5, y))
    turn = atan2(near_y * 2.0, across * (near_x + 1.0) - near_y * near_y) * 0.5
    im = either((large, right_angle), (on_pole, of_pole), otherwise=turn)
    return joined(copysign(re, real(z)), im)


@atan.of_complex()
def _atan(z: Expr) -> Expr:
    return timed(atanh(timed(z, 1)), -1)
