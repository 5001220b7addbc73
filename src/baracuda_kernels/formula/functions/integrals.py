"""Dawson's function, the dilogarithm, and exponential, trigonometric and Fresnel integrals.

Near zero they are polynomials or fractions, beside a logarithm where there is one; farther away those of 1 / x, times the exponential, the
sine or the cosine. Of F32 they are computed in F64.
"""

from __future__ import annotations

from math import inf, nan, pi

from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions import integral_fits as fits
from baracuda_kernels.formula.functions.bessel_waves import spherical_bessel_j0
from baracuda_kernels.formula.functions.elementary import exp, log, log1p
from baracuda_kernels.formula.functions.fits import Fraction, at_most, beside_square, fraction, in_f64, log_beside
from baracuda_kernels.formula.functions.pieces import polynomial, two_product
from baracuda_kernels.formula.functions.trigonometry import cos, cospi, sin, sinpi
from baracuda_kernels.formula.operations import absolute, eq, fma, rint, where

__all__ = ["cosine_integral", "dawsn", "exp1", "expi", "fresnel_c", "fresnel_s", "sine_integral", "spence"]

EULER = 0.5772156649015329
EXPI_ZERO, COSINE_ZERO = (0.3725074107813666, 1.3140183414386028e-17), (0.6165054856207163, -4.209920321433186e-17)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _either(x: Expr, is_far: Expr, near: Fraction, far: Fraction) -> Expr:
    return where(is_far, fraction(x, far), fraction(x, near))


# --- Dawson's function ---------------------------------------------------------------------------------------------------------------


def _dawsn(x: Expr) -> Expr:
    size, v = absolute(x), 1 / x
    middle = polynomial(fma(size, 0.8, -3.0), fits.DAWSON_MIDDLE)
    far = polynomial(v * v * 25, fits.DAWSON_FAR)
    return where(size <= 2.5, x * fraction(x * x, fits.DAWSON_NEAR), where(size <= 5, middle, far) * v)


def _dawsn_slope(x: Expr) -> Expr:
    v = 1 / x
    square = v * v
    return where(absolute(x) <= 5, fma(x * -2, _dawsn(x), 1.0), square * polynomial(square * 25, fits.DAWSON_SLOPE))


def _dawsn_slope_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * fma(x * -2, y, dawsn(x) * -2)


@function(_dawsn_slope_gradient)
def dawsn_slope(x: Expr) -> Expr:
    """1 - 2 x dawsn(x), whose terms cancel far from zero."""
    return in_f64(_dawsn_slope, x)


@function(lambda d, y, x: d * dawsn_slope(x))
def dawsn(x: Expr) -> Expr:
    """exp(-x²) times the integral of exp(t²) from 0 to x."""
    return in_f64(_dawsn, x)


# --- exponential integrals -----------------------------------------------------------------------------------------------------------


def _exp1(x: Expr) -> Expr:
    v = 1 / x
    near = fma(x, polynomial(x, fits.EXP1_NEAR), -(log(x) + EULER))
    return where(x <= 1, near, exp(-x) * (v * _either(v, x > 4, fits.EXP1_MIDDLE, fits.EXP1_FAR)))


def _expi(x: Expr) -> Expr:
    """To the right; exp is taken in two factors, as it is infinite before the function is."""
    near = fma((x - EXPI_ZERO[0]) - EXPI_ZERO[1], polynomial(x, fits.EXPI_NEAR), log_beside(x, EXPI_ZERO))
    bounded = at_most(x, 1500.0)
    v, half = 1 / bounded, exp(bounded * 0.5)
    middle, far = polynomial(fma(v, 24.0, -3.0), fits.EXPI_MIDDLE), polynomial(fma(v, 40.0, -7 / 3), fits.EXPI_FAR)
    farthest = polynomial(fma(v, 60.0, -1.0), fits.EXPI_FARTHEST)
    part = where(x <= 12, middle, where(x <= 30, far, farthest))
    return where(x <= 6, near, half * (v * part) * half)


def _expi_anywhere(x: Expr) -> Expr:
    return where(x < 0, -_exp1(-x), _expi(x))


@function(lambda d, y, x: -(d * (exp(-x) / x)))
def exp1(x: Expr) -> Expr:
    """The integral of exp(-t) / t from x to infinity; NaN below 0."""
    return in_f64(_exp1, x)


@function(lambda d, y, x: d * (exp(x) / x))
def expi(x: Expr) -> Expr:
    """The integral of exp(t) / t from minus infinity to x."""
    return in_f64(_expi_anywhere, x)


# --- the dilogarithm -----------------------------------------------------------------------------------------------------------------


def _series(u: Expr) -> Expr:
    """That of 1 - exp(-u), |u| <= log 2: the sum of Bernoulli's numbers times u^(k + 1) / (k + 1)!."""
    scale, terms = 1.0, [1.0]
    for k, each in enumerate(BERNOULLI, 1):
        scale *= 2 * k * (2 * k + 1)
        terms.append(each / scale)
    return fma(u * u, -0.25, u * polynomial(u * u, tuple(terms)))


def _spence(x: Expr) -> Expr:
    """Outside of 1/2 .. 2 by its reflection, of x or of 1 / x."""
    right = x > 2
    logarithm, y = log(x), where(right, 1 / x, x)
    is_middle = (x > 0.5) & ~right
    rest = log1p(-y)
    series = _series(where(is_middle, -logarithm, -rest))
    reflected = pi**2 / 6 - fma(where(right, -logarithm, logarithm), rest, series)
    outside = where(right, -fma(logarithm * 0.5, logarithm, reflected), where(eq(x, 0), pi**2 / 6, reflected))
    return where(is_middle, series, outside)


@function(lambda d, y, x: d * where(eq(x, 1), -1.0, log(x) / where(eq(x, 1), 1.0, 1 - x)))
def spence(x: Expr) -> Expr:
    """The integral of log(t) / (1 - t) from 1 to x; NaN below 0."""
    return in_f64(_spence, x)


# --- sine and cosine integrals -------------------------------------------------------------------------------------------------------


def _integral_waves(size: Expr) -> tuple[Expr, Expr]:
    """Far from zero, π/2 less the sine integral, and the cosine integral."""
    angle, v = where(eq(size, inf), 0.0, size), 1 / size
    square, is_far = v * v, size > 8
    f = v * _either(square, is_far, fits.SICI_F_MIDDLE, fits.SICI_F_FAR)
    g = square * _either(square, is_far, fits.SICI_G_MIDDLE, fits.SICI_G_FAR)
    sine, cosine = sin(angle), cos(angle)
    return fma(f, cosine, g * sine), fma(f, sine, -(g * cosine))


def _si(x: Expr) -> Expr:
    far = pi / 2 - _integral_waves(absolute(x))[0]
    near = x * polynomial(fma(x * x, 1 / 8, -1.0), fits.SI_NEAR)
    return where(absolute(x) <= 4, near, where(x < 0, -far, far))


def _ci(x: Expr) -> Expr:
    size = absolute(x)
    near = fma(beside_square(size, COSINE_ZERO), polynomial(fma(x * x, 1 / 8, -1.0), fits.CI_NEAR), log_beside(size, COSINE_ZERO))
    return where(eq(x, -inf), nan, where(size <= 4, near, _integral_waves(size)[1]))


@function(lambda d, y, x: d * spherical_bessel_j0(x))
def sine_integral(x: Expr) -> Expr:
    """The integral of sin(t) / t from 0 to x."""
    return in_f64(_si, x)


@function(lambda d, y, x: d * (cos(x) / x))
def cosine_integral(x: Expr) -> Expr:
    """Minus the integral of cos(t) / t from |x| to infinity."""
    return in_f64(_ci, x)


# --- Fresnel's integrals -------------------------------------------------------------------------------------------------------------

_FRESNEL_NEAR = 1.5


def _half_turns(x: Expr) -> Expr:
    """x² / 2, less whole turns: the square is exact before they are taken away. From 2^60 on nothing of it matters."""
    bounded = at_most(absolute(x), 2.0**60)
    square, low = two_product(bounded, bounded)
    high, rest = (fma(rint(part * 0.25), -2.0, part * 0.5) for part in (square, low))
    return high + rest


def _fresnel_waves(size: Expr) -> tuple[Expr, Expr]:
    """Far from zero, what 1/2 lacks of both integrals."""
    turns, v = _half_turns(size), 1 / size
    square, is_far = v * v, size > 2.25
    f = v * (1 / pi) * _either(square * square, is_far, fits.FRESNEL_F_MIDDLE, fits.FRESNEL_F_FAR)
    g = v * square * (1 / pi**2) * _either(square * square, is_far, fits.FRESNEL_G_MIDDLE, fits.FRESNEL_G_FAR)
    sine, cosine = sinpi(turns), cospi(turns)
    return fma(f, cosine, g * sine), fma(g, cosine, -(f * sine))


def _fresnel(x: Expr, near: Expr, missing: Expr) -> Expr:
    far = 0.5 - missing
    return where(absolute(x) <= _FRESNEL_NEAR, x * near, where(x < 0, -far, far))


def _fourth_power(x: Expr) -> Expr:
    square = x * x
    return fma(square * square, 2 / _FRESNEL_NEAR**4, -1.0)


def _fresnel_s(x: Expr) -> Expr:
    return _fresnel(x, x * x * polynomial(_fourth_power(x), fits.FRESNEL_S), _fresnel_waves(absolute(x))[0])


def _fresnel_c(x: Expr) -> Expr:
    return _fresnel(x, polynomial(_fourth_power(x), fits.FRESNEL_C), _fresnel_waves(absolute(x))[1])


@function(lambda d, y, x: d * sinpi(_half_turns(x)))
def fresnel_s(x: Expr) -> Expr:
    """The integral of sin(π t² / 2) from 0 to x."""
    return in_f64(_fresnel_s, x)


@function(lambda d, y, x: d * cospi(_half_turns(x)))
def fresnel_c(x: Expr) -> Expr:
    """The integral of cos(π t² / 2) from 0 to x."""
    return in_f64(_fresnel_c, x)


# For 16-bit floats f32 has digits to spare.
dawsn.roughly(_dawsn)
exp1.roughly(_exp1)
spence.roughly(_spence)
fresnel_s.roughly(_fresnel_s)
fresnel_c.roughly(_fresnel_c)
