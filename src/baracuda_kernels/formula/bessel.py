"""Modified Bessel functions of the first kind.

Near zero they are power series; beyond that exp(x) / sqrt(x) times a polynomial of 1 / x, which is scaled to -1 .. 1. F32 is
computed in F64 with shorter polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.formula.elementary import exp
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.fits import Coefficients, at_most, in_f64
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.operations import absolute, eq, rarely, sqrt, where
from baracuda_kernels.formula.pieces import by_element, polynomial

__all__ = ["i0", "i0e", "i1", "i1e"]


class _Fits(NamedTuple):
    """Coefficients of minimax polynomials, for the orders 0 and 1."""

    near: float  # up to where the first ones hold
    series: tuple[Coefficients, Coefficients]  # of x² / 4; that of order 1 is multiplied by x
    decay: tuple[Coefficients, Coefficients]  # of 2 near / x - 1


_LONG = _Fits(
    9.0,
    (
        (
            1.0, 1.000000000000001, 0.24999999999999273, 0.027777777777795977, 0.0017361111110884295, 6.944444446079423e-05,
            1.929012338227271e-06, 3.936760116440554e-08, 6.151182512374197e-10, 7.59413086823628e-12, 7.593275278740995e-14,
            6.282167817260522e-16, 4.3247883663963975e-18, 2.706867015966815e-20, 9.995846303314158e-23, 1.0283731585728299e-24,
        ),
        (
            0.5, 0.25000000000000006, 0.04166666666666622, 0.00347222222222321, 0.0001736111111099947, 5.787037037777836e-06,
            1.3778659580542158e-07, 2.4604750209382527e-09, 3.4173244811258e-11, 3.7970552211904034e-13, 3.4515749968658593e-15,
            2.6170545451016024e-17, 1.6655078704613012e-19, 9.60970760094289e-22, 3.4242533675237145e-24, 3.147595594465858e-26,
        ),
    ),
    (
        (
            0.40180478139600334, 0.00296061024544472, 0.00010477649805018043, 7.387137133484077e-06, 8.324360910411179e-07,
            1.3702123531645881e-07, 3.1860111088996323e-08, 1.0540217015819583e-08, 4.975980317725968e-09, 2.860772705691639e-09,
            1.0504719994961755e-09, -9.482221176814578e-10, -1.7449586221086788e-09, -5.306592958879482e-10, 7.81513942783348e-10,
            5.057525784323172e-10, -2.06885289046033e-10, -1.900816182217366e-10, 2.6922883894553697e-11, 3.027539206086726e-11,
        ),
        (
            0.39047905912136743, -0.008623471382762675, -0.0001693663364430744, -1.0017717286526259e-05, -1.0351077779149294e-06,
            -1.616382828513228e-07, -3.623420982905718e-08, -1.1654788043181367e-08, -5.387836613032424e-09,
            -3.070800251979828e-09, -1.1583456993231788e-09, 9.467916212773337e-10, 1.825982062252152e-09, 5.918226008917176e-10,
            -7.993111312142535e-10, -5.405666748231414e-10, 2.0777783209876924e-10, 2.0080394213545388e-10,
            -2.6649958607948076e-11, -3.181067287671911e-11,
        ),
    ),
)  # fmt: skip
_SHORT = _Fits(
    7.0,
    (
        (
            0.999999999055, 1.00000002785, 0.249999879473, 0.0277779626614, 0.00173597681758, 6.94974381364e-05,
            1.91685549178e-06, 4.10240676174e-08, 4.84450153434e-10, 1.29502913659e-11,
        ),
        (
            0.4999999999, 0.250000002418, 0.0416666576739, 0.0034722344744, 0.000173603013354, 5.78999786272e-06,
            1.37148430143e-07, 2.54307543205e-09, 2.79271366037e-11, 6.27304658207e-13,
        ),
    ),
    (
        (
            0.402659401742, 0.00388591451539, 0.000184389671378, 1.79479806009e-05, 2.9993580194e-06, 9.16368532493e-07,
            2.69208192969e-07,
        ),
        (
            0.388001143047, -0.0112150445223, -0.000295062087744, -2.40693001437e-05, -3.66719514407e-06, -1.06089032957e-06,
            -3.08946148543e-07,
        ),
    ),
)  # fmt: skip


def _parts(wide: Expr, size: Expr, order: int, fits: _Fits) -> tuple[Expr, Expr]:
    """The function if x is near zero, and exp(-|x|) times it if not."""
    near = polynomial(wide * wide * 0.25, fits.series[order])
    far = polynomial(2 * fits.near / size - 1, fits.decay[order]) / sqrt(size)
    return (wide * near, where(wide < 0, -far, far)) if order == 1 else (near, far)


def _whole(wide: Expr, order: int, fits: _Fits) -> Expr:
    size = at_most(absolute(wide), 1440.0)
    near, far = _parts(wide, size, order, fits)
    root = exp(size * 0.5)  # half of it, as exp(x) is infinite before the function is
    return rarely(~(size <= fits.near), root * far * root, near)


def _scaled(wide: Expr, order: int, fits: _Fits) -> Expr:
    size = absolute(wide)
    near, far = _parts(wide, size, order, fits)
    return where(size <= fits.near, exp(-size) * near, far)


def _computed(formula: Callable[[Expr, int, _Fits], Expr], x: Expr, order: int) -> Expr:
    return in_f64(lambda wide: formula(wide, order, by_element(x, _SHORT, _LONG)), x)


def _sign(x: Expr) -> Expr:
    return where(x < 0, -1.0, where(x > 0, 1.0, x))


def _slope(x: Expr, y: Expr, even: Expr) -> Expr:
    """Of i1, from it and i0: i0 - i1 / x, which is 1/2 at zero."""
    at_zero = eq(x, 0)
    return where(at_zero, 0.5, even - y / where(at_zero, 1.0, x))


def _i0_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * i1(x)


@function(_i0_gradient)
def i0(x: Expr) -> Expr:
    """Of order 0."""
    return _computed(_whole, x, 0)


@function(lambda d, y, x: d * _slope(x, y, i0(x)))
def i1(x: Expr) -> Expr:
    """Of order 1."""
    return _computed(_whole, x, 1)


def _i0e_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * (i1e(x) - _sign(x) * y)


@function(_i0e_gradient)
def i0e(x: Expr) -> Expr:
    """exp(-|x|) i0(x)."""
    return _computed(_scaled, x, 0)


@function(lambda d, y, x: d * (_slope(x, y, i0e(x)) - _sign(x) * y))
def i1e(x: Expr) -> Expr:
    """exp(-|x|) i1(x)."""
    return _computed(_scaled, x, 1)


# For halves f32 has digits to spare.
i0.roughly(lambda x: _whole(x, 0, _SHORT))
i1.roughly(lambda x: _whole(x, 1, _SHORT))
i0e.roughly(lambda x: _scaled(x, 0, _SHORT))
i1e.roughly(lambda x: _scaled(x, 1, _SHORT))
