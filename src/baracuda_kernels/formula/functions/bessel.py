"""Modified Bessel functions of the first kind.

Near zero they are power series; beyond that exp(x) / sqrt(x) times a polynomial of 1 / x, which is scaled to -1 .. 1. Of F32 only
what is far and grows is computed in F64.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import exp
from baracuda_kernels.formula.functions.fits import Coefficients, at_most, in_f64
from baracuda_kernels.formula.functions.pieces import by_element, polynomial
from baracuda_kernels.formula.operations import absolute, eq, fma, rarely, reciprocal, rsqrt_roughly, sqrt, where

__all__ = ["i0", "i0e", "i1", "i1e"]


class _Fits(NamedTuple):
    """Coefficients of minimax polynomials, for the orders 0 and 1."""

    near: float  # up to where the first ones hold
    series: tuple[Coefficients, Coefficients]  # of x² / 4; that of order 1 is multiplied by x
    decay: tuple[Coefficients, Coefficients]  # of 2 near / x - 1
    direct: tuple[tuple[float, Coefficients], ...] = ()  # exp(-|x|) times the function, of |x| less that number, where it is near


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
    4.5,
    (
        (
            1.0, 1.0, 0.24999985, 0.02777827, 0.0017355335, 6.976514e-05, 1.8382435e-06, 5.1850648e-08,
        ),
        (
            0.5, 0.25, 0.041666657, 0.0034722532, 0.00017357625, 5.8057603e-06, 1.3262063e-07, 3.158032e-09,
        ),
    ),
    (
        (
            0.4048786, 0.006393269, 0.0005365, 0.000108061024, 4.2167547e-05, 1.1489977e-05, -7.74849e-06, -5.583544e-06,
        ),
        (
            0.38167495, -0.017995039, -0.0008327043, -0.00013911938, -4.9933387e-05, -1.39009e-05, 8.053076e-06, 6.137572e-06,
        ),
    ),
    (
        (
            1.9375,
            (
                0.31449378, -0.09836143, 0.042585425, -0.017659826, 0.006507541, -0.0020996723, 0.00059571443, -0.00015007106,
                3.3695087e-05, -6.73244e-06, 1.2593326e-06, -2.4230138e-07, 4.033588e-08, -3.4432297e-09,
            ),
        ),
        (
            2.203125,
            (
                0.09624239, -0.051494468, 0.021027783, -0.0072667664, 0.0021887603, -0.00058335485, 0.00013906625, -2.9961428e-05,
                5.893487e-06, -1.0493753e-06, 1.6634448e-07, -2.7099222e-08, 5.0189786e-09, -5.627423e-10,
            ),
        ),
    ),
)  # fmt: skip
_ROUGH = _Fits(
    4.5,
    (
        (
            1.0, 1.0000731, 0.24971348, 0.028108355, 0.0015814551, 0.00010002655,
        ),
        (
            0.5, 0.25000742, 0.041641075, 0.0034991913, 0.00016178806, 8.020181e-06,
        ),
    ),
    _SHORT.decay,
    (
        (
            2.25,
            (
                0.28743666, -0.076209016, 0.029227076, -0.011269581, 0.0040449845, -0.0012382953, 0.00029603482, -8.198161e-05,
                2.985816e-05, -5.221496e-06,
            ),
        ),
        (
            2.25,
            (
                0.09387467, -0.049566884, 0.020025956, -0.006877412, 0.0020720214, -0.00054049335, 0.00012005631, -2.8455295e-05,
                7.697448e-06, -1.1260065e-06,
            ),
        ),
    ),
)  # fmt: skip


# Slopes for 16-bit floats, of exp(-|x|) times the function: near zero, of |x| - 9/4, that of order 1 divided by |x| less where it is 0; beyond that
# |x|^(3/2) times it, of 9 / |x| - 1.
_SLOPE_ZERO = 1.545127257992542686
_DISTANT = 500.0
_SLOPES: tuple[tuple[Coefficients, Coefficients], ...] = (
    (
        (
            -0.0762165636, 0.0585582592, -0.0337559655, 0.0158215929, -0.00622858107, 0.00209378824, -0.000583712128, 0.000138180301,
            -3.71404312e-05, 1.03666143e-05, -1.42666534e-06,
        ),
        (-0.208830148, -0.0106578888, -0.00171223341, -0.00058417418, -0.00011702787, 5.62577661e-05),
    ),
    (
        (
            -0.0250525679, 0.0227926262, -0.0128439665, 0.0055019916, -0.00193303218, 0.000577247527, -0.000146024468, 3.21417829e-05,
            -7.57338876e-06, 1.81125336e-06, -2.27491043e-07,
        ),
        (-0.172844931, 0.028649088, 0.00254859739, 0.000741862052, 0.000155747475, -6.38668207e-05),
    ),
)  # fmt: skip


def _series(x: Expr, order: int, fits: _Fits) -> Expr:
    """Near zero: a polynomial in x²."""
    even = polynomial(x * x * 0.25, fits.series[order])
    return x * even if order == 1 else even


def _far(x: Expr, size: Expr, order: int, fits: _Fits) -> Expr:
    """exp(-|x|) times it if x is not near zero."""
    if x.element is ElementKind.F32:
        root = rsqrt_roughly(size)
        if fits is _SHORT:
            root = where(eq(size, inf), 0, fma(root * 0.5, fma(-(size * root), root, 1), root))
        far = polynomial(fma(reciprocal(size), 2 * fits.near, -1), fits.decay[order]) * root
    else:
        far = polynomial(2 * fits.near / size - 1, fits.decay[order]) / sqrt(size)
    return where(x < 0, -far, far) if order == 1 else far


def _grown(x: Expr, order: int, fits: _Fits) -> Expr:
    """The function away from zero, where it grows like exp(|x|) / sqrt(|x|); exp is taken in two factors, which do not overflow before it does."""
    size = at_most(absolute(x), 1440.0)
    root = exp(size * 0.5)  # half of it, as exp(x) is infinite before the function is
    return root * _far(x, size, order, fits) * root


def _whole(x: Expr, order: int) -> Expr:
    fits = by_element(x, _SHORT, _LONG)
    far = in_f64(lambda wide: _grown(wide, order, fits), x)
    return rarely(~(absolute(x) <= fits.near), far, _series(x, order, fits))


def _whole_roughly(x: Expr, order: int) -> Expr:
    return rarely(~(absolute(x) <= _ROUGH.near), _grown(x, order, _ROUGH), _series(x, order, _ROUGH))


def _scaled(x: Expr, order: int) -> Expr:
    if x.element is ElementKind.F32:
        return _scaled_directly(x, order, _SHORT)
    size = absolute(x)
    return where(size <= _LONG.near, exp(-size) * _series(x, order, _LONG), _far(x, size, order, _LONG))


def _scaled_directly(x: Expr, order: int, fits: _Fits) -> Expr:
    """Near zero one polynomial is cheaper than two with an exponential."""
    size, (middle, fit) = absolute(x), fits.direct[order]
    even = polynomial(size - middle, fit)
    return where(size <= fits.near, x * even if order == 1 else even, _far(x, size, order, fits))


def _sign(x: Expr) -> Expr:
    return where(x < 0, -1.0, where(x > 0, 1.0, x))


def _slope(x: Expr, y: Expr, even: Expr) -> Expr:
    """The derivative of i1, from it and i0: i0 - i1 / x, which is 1/2 at zero."""
    at_zero = eq(x, 0)
    return where(at_zero, 0.5, even - y / where(at_zero, 1.0, x))


def _i0_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * i1(x)


@function(_i0_gradient)
def i0(x: Expr) -> Expr:
    """The modified Bessel function of order 0."""
    return _whole(x, 0)


@function(lambda d, y, x: d * _slope(x, y, i0(x)))
def i1(x: Expr) -> Expr:
    """The modified Bessel function of order 1."""
    return _whole(x, 1)


def _slope_of_i0e_slope(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * (i1e_slope(x) - _sign(x) * y)


@function(_slope_of_i0e_slope)
def i0e_slope(x: Expr) -> Expr:
    """i1e(x) - i0e(x) for x > 0, whose terms cancel far from zero."""
    if x.element is ElementKind.F32:
        return in_f64(i0e_slope, x)
    return where(absolute(x) > _DISTANT, -_sign(x) * i0e(x) * _missing(1 / absolute(x)), i1e(x) - _sign(x) * i0e(x))


def _slope_of_i1e_slope(d: Expr, y: Expr, x: Expr) -> Expr:
    """i1e(x) / x is 1/2 at zero, with a kink there."""
    at_zero = eq(x, 0)
    share = where(at_zero, 1.0, x)
    return d * (i0e_slope(x) - where(at_zero, 0.0, (y - i1e(x) / share) / share) - _sign(x) * y)


@function(_slope_of_i1e_slope)
def i1e_slope(x: Expr) -> Expr:
    """i0e(x) - i1e(x) (1 + 1 / x) for x > 0, likewise."""
    if x.element is ElementKind.F32:
        return in_f64(i1e_slope, x)
    t = 1 / absolute(x)
    distant = i0e(x) * fma(_missing(t), t + 1, -t)
    return where(absolute(x) > _DISTANT, distant, _slope(x, i1e(x), i0e(x)) - _sign(x) * i1e(x))


def _missing(t: Expr) -> Expr:
    """1 - i1e(x) / i0e(x) for t = 1 / x, in F64 beyond _DISTANT."""
    return t * polynomial(t, (1 / 2, 1 / 8, 1 / 8, 25 / 128, 13 / 32, 1073 / 1024))


def _slope_roughly(x: Expr, order: int) -> Expr:
    size, (near, far) = absolute(x), _SLOPES[order]
    root = rsqrt_roughly(size)
    inverse = root * root
    found = polynomial(size - 2.25, near)
    if order == 1:
        found = found * (size - _SLOPE_ZERO)
    found = where(size <= 4.5, found, polynomial(fma(inverse, 9.0, -1.0), far) * (root * inverse))
    return found if order == 1 else where(x < 0, -found, where(x > 0, found, x))


i0e_slope.roughly(lambda x: _slope_roughly(x, 0))
i1e_slope.roughly(lambda x: _slope_roughly(x, 1))


@function(lambda d, y, x: d * i0e_slope(x))
def i0e(x: Expr) -> Expr:
    """exp(-|x|) i0(x)."""
    return _scaled(x, 0)


@function(lambda d, y, x: d * i1e_slope(x))
def i1e(x: Expr) -> Expr:
    """exp(-|x|) i1(x)."""
    return _scaled(x, 1)


# For 16-bit floats f32 has digits to spare.
i0.roughly(lambda x: _whole_roughly(x, 0))
i1.roughly(lambda x: _whole_roughly(x, 1))
i0e.roughly(lambda x: _scaled_directly(x, 0, _ROUGH))
i1e.roughly(lambda x: _scaled_directly(x, 1, _ROUGH))
