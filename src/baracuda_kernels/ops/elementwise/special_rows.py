"""Ops of one operand that are needed less often: special functions, and a few of numbers and bits."""

from __future__ import annotations

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.bessel_decay import (
    airy_ai,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
)
from baracuda_kernels.formula.functions.bessel_waves import bessel_j0, bessel_j1, bessel_y0, bessel_y1, spherical_bessel_j0
from baracuda_kernels.formula.functions.gamma import factorial
from baracuda_kernels.formula.functions.integrals import dawsn, exp1, expi, spence
from baracuda_kernels.formula.operations import eq, floor, is_nan, popcount, rint, where
from baracuda_kernels.ops.elementwise.arithmetic import NAN, is_negative
from baracuda_kernels.ops.elementwise.formats import spacing
from baracuda_kernels.ops.elementwise.rows import INTEGERS, NUMBERS, ElementwiseRow

__all__ = ["ROWS"]

F32 = ElementKind.F32


def _sparse_plus(x: Expr) -> Expr:
    """A parabola between two lines. Its gradient is zero at the left end, and one at the right."""
    return where(x <= -1, 0, where(x >= 1, x, (x + 1) * (x + 1) * 0.25))


def _sparse_sigmoid(x: Expr) -> Expr:
    return where(x <= -1, 0, where(x >= 1, 1, x * 0.5 + 0.5))


def _gammasgn(x: Expr) -> Expr:
    whole = floor(x)
    is_odd = ~eq(rint(whole * 0.5) * 2, whole)
    has_none = is_nan(x) | ((x < 0) & eq(whole, x))
    return where(has_none, NAN, where(((x < 0) & is_odd) | (eq(x, 0) & is_negative(x)), -1, constant(1, x.element)))


POSITIVE = ((0.05, 20.0),)
NUMERIC = (
    ElementwiseRow("cube", lambda x: x * x * x, "x³; integers wrap around.", NUMBERS),
    ElementwiseRow("ctz", lambda x: popcount(~x & (x - 1)), "The number of trailing zero bits.", INTEGERS, differentiable=False),
    ElementwiseRow("spacing", spacing(F32), "The distance to the next number away from zero, with the sign of x.", by_element=spacing,
        differentiable=False),
    ElementwiseRow("sparse_plus", _sparse_plus, "(x + 1)² / 4 between -1 and 1; 0 below, x above."),
    ElementwiseRow("sparse_sigmoid", _sparse_sigmoid, "(x + 1) / 2 between -1 and 1; 0 below, 1 above."),
    ElementwiseRow("gammasgn", _gammasgn, "The sign of gamma(x): 1 or -1; NaN at its poles below zero.", differentiable=False),
    ElementwiseRow("factorial", factorial, "gamma(x + 1), rounded to an integer where x is one; 0 where x is negative.", domain=((0.1, 8.0),)),
)  # fmt: skip
BESSEL = (
    ElementwiseRow("bessel_j0", bessel_j0, "The Bessel function of the first kind of order 0.", domain=((-2.0, 2.0),)),
    ElementwiseRow("bessel_j1", bessel_j1, "The Bessel function of the first kind of order 1.", domain=((-3.5, 3.5),)),
    ElementwiseRow("bessel_y0", bessel_y0, "The Bessel function of the second kind of order 0; NaN where x is negative.", domain=((0.1, 0.8),)),
    ElementwiseRow("bessel_y1", bessel_y1, "The Bessel function of the second kind of order 1; NaN where x is negative.", domain=((0.1, 2.0),)),
    ElementwiseRow("modified_bessel_k0", modified_bessel_k0,
        "The modified Bessel function of the second kind of order 0; NaN where x is negative.", domain=POSITIVE),
    ElementwiseRow("modified_bessel_k1", modified_bessel_k1,
        "The modified Bessel function of the second kind of order 1; NaN where x is negative.", domain=POSITIVE),
    ElementwiseRow("scaled_modified_bessel_k0", scaled_modified_bessel_k0, "exp(x) modified_bessel_k0(x).", domain=POSITIVE),
    ElementwiseRow("scaled_modified_bessel_k1", scaled_modified_bessel_k1, "exp(x) modified_bessel_k1(x).", domain=POSITIVE),
    ElementwiseRow("spherical_bessel_j0", spherical_bessel_j0, "sin(x) / x, 1 at 0.", domain=((-3.0, 3.0),)),
    ElementwiseRow("airy_ai", airy_ai, "Airy's function Ai; NaN left of -2^20, where no digit of its phase is known.", domain=((-2.0, 8.0),)),
)  # fmt: skip
INTEGRALS = (
    ElementwiseRow("dawsn", dawsn, "Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x."),
    ElementwiseRow("exp1", exp1, "The integral of exp(-t) / t from x to infinity; NaN where x is negative.", domain=POSITIVE),
    ElementwiseRow("expi", expi, "The integral of exp(t) / t from minus infinity to x, its principal value where x is positive.",
        domain=((0.5, 20.0),)),
    ElementwiseRow("spence", spence, "The dilogarithm of 1 - x: the integral of log(t) / (1 - t) from 1 to x; NaN where x is negative.",
        domain=((0.05, 0.9),)),
)  # fmt: skip
ROWS = (*NUMERIC, *BESSEL, *INTEGRALS)
