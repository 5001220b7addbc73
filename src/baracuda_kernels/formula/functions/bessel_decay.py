"""Modified Bessel functions of the second kind, and Airy's function.

Up to x = 1 those of Bessel are power series, which have a logarithm; beyond that exp(-x) / sqrt(x) times a fraction of 1 / x. Airy's is the same
of ζ = 2/3 x^(3/2) to the right, polynomials of x around zero, and a wave of phase ζ to the left.
"""

from __future__ import annotations

from math import factorial, fsum, inf, nan, pi
from math import log as log_of
from math import sqrt as root

from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions import bessel_fits as fits
from baracuda_kernels.formula.functions.elementary import exp, log
from baracuda_kernels.formula.functions.fits import Coefficients, Fraction, at_most, fraction, in_f64
from baracuda_kernels.formula.functions.pieces import polynomial, two_product
from baracuda_kernels.formula.functions.trigonometry import cos, sin
from baracuda_kernels.formula.operations import eq, fma, sqrt, where

__all__ = ["airy_ai", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"]

EULER = 0.5772156649015329
_TERMS = range(10)
# Series of x² / 4: those of i0 and of 2 i1 / x, and what they leave of k0 and of (k1 - 1 / x) 4 / x beside the logarithm.
_I0 = tuple(1 / factorial(k) ** 2 for k in _TERMS)
_I1 = tuple(1 / (factorial(k) * factorial(k + 1)) for k in _TERMS)


def _digamma(k: int) -> float:
    """Of an integer, and log 2."""
    return fsum([log_of(2), -EULER, *(1 / j for j in range(1, k))])


_K0 = tuple(_digamma(k + 1) * each for k, each in zip(_TERMS, _I0, strict=True))
_K1 = tuple((_digamma(k + 1) + _digamma(k + 2)) * each for k, each in zip(_TERMS, _I1, strict=True))
_DISTANT = 500.0  # from where the difference of both scaled ones is a series


def _k0_near(x: Expr) -> Expr:
    z = x * x * 0.25
    return fma(-log(x), polynomial(z, _I0), polynomial(z, _K0))


def _k1_near(x: Expr) -> Expr:
    z = x * x * 0.25
    rest = fma(log(x) * 0.5, polynomial(z, _I1), polynomial(z, _K1) * -0.25)
    return where(eq(x, 0), inf, fma(x, rest, 1 / x))


def _decaying(x: Expr, near: Expr, fit: Fraction, is_scaled: bool) -> Expr:
    far = fraction(1 / x, fit) / sqrt(x)
    return where(x <= 1, near * exp(x) if is_scaled else near, far if is_scaled else exp(-x) * far)


def _k0(x: Expr, is_scaled: bool = False) -> Expr:
    return _decaying(x, _k0_near(x), fits.K0_FAR, is_scaled)


def _k1(x: Expr, is_scaled: bool = False) -> Expr:
    return _decaying(x, _k1_near(x), fits.K1_FAR, is_scaled)


def _k0_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return -(d * modified_bessel_k1(x))


@function(_k0_gradient)
def modified_bessel_k0(x: Expr) -> Expr:
    """The modified Bessel function of the second kind of order 0; NaN below 0."""
    return in_f64(_k0, x)


@function(lambda d, y, x: -(d * (modified_bessel_k0(x) + y / x)))
def modified_bessel_k1(x: Expr) -> Expr:
    """The modified Bessel function of the second kind of order 1; NaN below 0."""
    return in_f64(_k1, x)


def _excess(x: Expr) -> Expr:
    t = 1 / x
    distant = _k0(x, True) * (t * polynomial(t, (1 / 2, -1 / 8, 1 / 8, -25 / 128, 13 / 32, -1073 / 1024)))
    return where(x > _DISTANT, distant, _k1(x, True) - _k0(x, True))


def _excess_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * fma(y, 2.0, -(scaled_modified_bessel_k1(x) / x))


@function(_excess_gradient)
def scaled_excess(x: Expr) -> Expr:
    """exp(x) (k1(x) - k0(x)), whose terms cancel far from zero."""
    return in_f64(_excess, x)


@function(lambda d, y, x: -(d * scaled_excess(x)))
def scaled_modified_bessel_k0(x: Expr) -> Expr:
    """exp(x) modified_bessel_k0(x)."""
    return in_f64(lambda x: _k0(x, True), x)


@function(lambda d, y, x: d * (scaled_excess(x) - y / x))
def scaled_modified_bessel_k1(x: Expr) -> Expr:
    """exp(x) modified_bessel_k1(x)."""
    return in_f64(lambda x: _k1(x, True), x)


# --- Airy's function -----------------------------------------------------------------------------------------------------------------

_RIGHTMOST, _LEFTMOST = 128.0, -(2.0**20)  # beyond which it is 0, and beyond which no digit of the phase is known from x
_TWO_THIRDS = (2 / 3, 3.700743415417188e-17)  # as a sum


def _zeta(a: Expr) -> tuple[Expr, Expr]:
    """2/3 a^(3/2) as a sum."""
    near = sqrt(a)
    lost = fma(-near, near, a) / (near + near)
    power, low = two_product(a, near)
    zeta, rest = two_product(power, _TWO_THIRDS[0])
    return zeta, rest + fma(power, _TWO_THIRDS[1], fma(a, lost, low) * _TWO_THIRDS[0])


def _airy(x: Expr, right: Fraction, near: Coefficients, left: Coefficients, waves: tuple[Fraction, Fraction], order: int) -> Expr:
    """Airy's function, or its derivative, of order 1."""
    a = where(x < 0, -x, at_most(x, _RIGHTMOST))
    zeta, low = _zeta(a)
    inverse, fourth = 1 / zeta, sqrt(sqrt(a))
    size = exp(-zeta)
    decaying = fma(-low, size, size) * fraction(inverse, right)
    in_phase, behind = (fraction(inverse * inverse, fit) for fit in waves)
    behind = behind * inverse
    sine, cosine = sin(zeta), cos(zeta)
    sine, cosine = fma(low, cosine, sine), fma(-low, sine, cosine)
    one, other = in_phase + behind, in_phase - behind
    if order == 0:
        wave, decaying = fma(one, sine, other * cosine) / fourth, decaying / fourth
    else:
        wave, decaying = fma(other, sine, -(one * cosine)) * fourth, decaying * fourth
    wave = where(x < _LEFTMOST, nan, wave * (1 / root(2 * pi)))
    middle = where(x < -2, polynomial(fma(x, 0.8, 2.6), left), polynomial(fma(x, 2 / 3, 1 / 3), near))
    return where(x < -4.5, wave, where(x <= 1, middle, decaying))


def _airy_slope_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * x * airy_ai(x)


@function(_airy_slope_gradient)
def airy_slope(x: Expr) -> Expr:
    """The derivative of Airy's function."""
    waves = (fits.SLOPE_P, fits.SLOPE_Q)
    return in_f64(lambda x: _airy(x, fits.SLOPE_RIGHT, fits.SLOPE_NEAR, fits.SLOPE_LEFT, waves, 1), x)


@function(lambda d, y, x: d * airy_slope(x))
def airy_ai(x: Expr) -> Expr:
    """Airy's function Ai; NaN left of -2^20."""
    waves = (fits.AIRY_P, fits.AIRY_Q)
    return in_f64(lambda x: _airy(x, fits.AIRY_RIGHT, fits.AIRY_NEAR, fits.AIRY_LEFT, waves, 0), x)


# For 16-bit floats f32 has digits to spare.
modified_bessel_k0.roughly(_k0)
modified_bessel_k1.roughly(_k1)
scaled_modified_bessel_k0.roughly(lambda x: _k0(x, True))
scaled_modified_bessel_k1.roughly(lambda x: _k1(x, True))
