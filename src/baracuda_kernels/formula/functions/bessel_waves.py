"""Bessel functions that oscillate.

Up to x = 6 they are polynomials of x², those of the first kind beside factors that are zero where the function is; beyond that sines and cosines
of x, reduced exactly, times fractions of 1 / x². All is computed in F64, also for smaller floats, of which some are close to zeros.
"""

from __future__ import annotations

from math import factorial, inf, pi

from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions import bessel_fits as fits
from baracuda_kernels.formula.functions.fits import beside_square, fraction, in_f64, log_beside
from baracuda_kernels.formula.functions.pieces import polynomial
from baracuda_kernels.formula.functions.trigonometry import cos, sin
from baracuda_kernels.formula.operations import absolute, eq, fma, sqrt, where

__all__ = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"]

NEAR = 6.0
J0_ZEROS = ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17))  # each as a sum
J1_ZERO, Y0_ZERO = (3.8317059702075125, -1.5269184090088067e-16), (0.8935769662791675, 2.6596231539720385e-17)
Y1_ZERO = (2.197141326031017, -4.8259835876454966e-17)
J1_PHASE = ((fits.P0, fits.Q0), (fits.P1, fits.Q1))


def _scaled(x: Expr) -> Expr:
    return fma(x * x, 2 / NEAR**2, -1.0)


def _wave(size: Expr, order: int, lags: bool) -> Expr:
    """Far from zero: the function of that order, of the first kind, or of the second, which lags by a right angle."""
    v = 1 / size
    in_phase, behind = (fraction(v * v, fit) for fit in J1_PHASE[order])
    behind = behind * v
    one, other = in_phase + behind, in_phase - behind
    sine, cosine, turns = sin(size), cos(size), order + lags
    if turns == 0:
        found = fma(one, cosine, other * sine)
    else:
        found = fma(one, sine, -(other * cosine)) if turns == 1 else -fma(one, cosine, other * sine)
    return found * sqrt(v * (1 / pi))


def _j0_near(x: Expr) -> Expr:
    first, second = (beside_square(absolute(x), zero) for zero in J0_ZEROS)
    return first * second * polynomial(_scaled(x), fits.J0_NEAR)


def _j1_near(x: Expr) -> Expr:
    return x * (beside_square(absolute(x), J1_ZERO) * polynomial(_scaled(x), fits.J1_NEAR))


def _j0(x: Expr) -> Expr:
    size = absolute(x)
    return where(size <= NEAR, _j0_near(x), _wave(size, 0, False))


def _j1(x: Expr) -> Expr:
    size = absolute(x)
    far = _wave(size, 1, False)
    return where(size <= NEAR, _j1_near(x), where(x < 0, -far, far))


def _y0(x: Expr) -> Expr:
    near = fma(log_beside(x, Y0_ZERO) * (2 / pi), _j0_near(x), beside_square(x, Y0_ZERO) * polynomial(_scaled(x), fits.Y0_NEAR))
    return where(x <= NEAR, near, _wave(x, 0, True))


def _y1(x: Expr) -> Expr:
    rest = beside_square(x, Y1_ZERO) * polynomial(_scaled(x), fits.Y1_NEAR) / x
    near = fma(log_beside(x, Y1_ZERO) * (2 / pi), _j1_near(x), rest)
    return where(eq(x, 0), -inf, where(x <= NEAR, near, _wave(x, 1, True)))


def _j0_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return -(d * bessel_j1(x))


@function(_j0_gradient)
def bessel_j0(x: Expr) -> Expr:
    """The Bessel function of the first kind of order 0."""
    return in_f64(_j0, x)


@function(lambda d, y, x: d * where(eq(x, 0), 0.5, bessel_j0(x) - y / where(eq(x, 0), 1.0, x)))
def bessel_j1(x: Expr) -> Expr:
    """The Bessel function of the first kind of order 1."""
    return in_f64(_j1, x)


def _y0_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return -(d * bessel_y1(x))


@function(_y0_gradient)
def bessel_y0(x: Expr) -> Expr:
    """The Bessel function of the second kind of order 0; NaN below 0."""
    return in_f64(_y0, x)


@function(lambda d, y, x: d * (bessel_y0(x) - y / x))
def bessel_y1(x: Expr) -> Expr:
    """The Bessel function of the second kind of order 1; NaN below 0."""
    return in_f64(_y1, x)


# (cos(x) - sin(x) / x) / x² of x², |x| <= 1: the terms of the series.
_SLOPE = tuple((-1) ** (k + 1) * (2 * k + 2) / factorial(2 * k + 3) for k in range(9))


def _spherical_slope_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return -(d * where(eq(x, 0), 1 / 3, fma(y / where(eq(x, 0), 1.0, x), 2.0, spherical_bessel_j0(x))))


@function(_spherical_slope_gradient)
def spherical_slope(x: Expr) -> Expr:
    """(cos(x) - sin(x) / x) / x, whose terms cancel near zero."""
    return where(absolute(x) <= 1, x * polynomial(x * x, _SLOPE), (cos(x) - sin(x) / x) / x)


@function(lambda d, y, x: d * spherical_slope(x))
def spherical_bessel_j0(x: Expr) -> Expr:
    """sin(x) / x."""
    return where(eq(x, 0), 1.0, where(eq(absolute(x), inf), 0.0, sin(x) / x))
