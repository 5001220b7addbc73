"""The error function, the normal distribution, and what belongs to them.

Far from zero everything here is exp(-x²) times the scaled complement erfcx, which is one polynomial of (x - 3) / (x + 3) for x ≥ 0.
What rounding takes from the square is put back, as the exponential would magnify it. F32 is computed in F64 with shorter
polynomials, all but erf, which has to be fast.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from math import sqrt as root
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.elementary import exp, log, log1p
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.fits import Coefficients, Fraction, at_most, fraction, in_f64
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.operations import absolute, eq, fma, sqrt, where
from baracuda_kernels.formula.pieces import by_element, polynomial, two_product

__all__ = ["erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]


class _Fits(NamedTuple):
    """Coefficients of minimax polynomials."""

    near: float
    erf: Coefficients  # erf(x) / x - 1, of x² where |x| ≤ near
    erfcx: Coefficients  # (x + 1/2) erfcx(x), of (x - 3) / (x + 3) where x ≥ 0
    centre: Fraction  # ndtri(1/2 + q) / q as a fraction, of 0.425² - q² where |q| ≤ 0.425
    tail: Fraction  # -ndtri(p) as a fraction, of sqrt(-log p) - 1.6 where p ≤ 0.075


_LONG = _Fits(
    1.0,
    (
        0.12837916709551256, -0.3761263890318352, 0.112837916709442, -0.026866170643113394, 0.005223977606130813,
        -0.0008548325929766059, 0.00012055293586936385, -1.4924712439533532e-05, 1.6447132699784248e-06, -1.6206318752965553e-07,
        1.371098870418608e-08, -7.779462971758347e-10,
    ),
    (
        0.6265040291348648, -0.0678105530622906, -0.023781147176710087, 0.06482257935138096, -0.059636831708385414,
        0.03415401367198811, -0.0118852574456642, 0.0012646959078812094, 0.0009443450479508816, -0.00038991613407153976,
        -5.257915172437605e-05, 6.254966460415666e-05, 2.4720471186918576e-06, -1.0050245536639517e-05, -3.593640994903547e-07,
        1.7361288755427542e-06, 1.6831073184563233e-07, -3.08224502656547e-07, -6.024081998153293e-08, 5.085657050587105e-08,
        1.390881811051543e-08, -6.628879134139538e-09, -1.5882026578491844e-09, 4.878582300452003e-10,
    ),
    (
        (
            3.3871328727963665, 132.78401566908957, 1959.9675884123928, 13597.948869379345, 45263.806755453676, 65936.8549435417,
            32560.249556682717, 2426.013763176355,
        ),
        (
            1.0, 42.20773926597466, 683.4380554162611, 5345.772423186345, 20934.66123623838, 38597.34589584903,
            28046.572323825418, 5068.996083460132,
        ),
    ),
    (
        (
            1.4234371107496837, 4.907907163541795, 6.713905452963095, 4.9072379130903325, 2.1456443242915277, 0.5880114240729979,
            0.10153334326268508, 0.010713478011901355, 0.0006474211420130171, 2.021851790729803e-05, 2.7598679591852554e-07,
            1.1528550264844213e-09,
        ),
        (
            1.0, 2.2481909808692015, 2.105907381814622, 1.0760653253878538, 0.3289736950357565, 0.061637907039420216,
            0.006912805331222795, 0.0004359947475348238, 1.398958723916134e-05, 1.9384875917601978e-07, 8.151907434373741e-10,
        ),
    ),
)  # fmt: skip
_SHORT = _Fits(
    1.15625,
    (0.128379158, -0.37612572, 0.112830032, -0.0268308461, 0.00514738911, -0.000767371141, 6.81540993e-05),
    (
        0.626504028417, -0.067810528912, -0.023781091942, 0.0648219280343, -0.0596375170146, 0.0341590702624, -0.0118821573901,
        0.00124763708414, 0.000937992852186, -0.000361198136186, -4.64648698936e-05, 3.78833374234e-05,
    ),
    (
        (3.3871328718, 71.181713045, 423.447203149, 697.585691045, 151.7681018),
        (1.0, 24.0205861036, 175.146605211, 410.744651958, 209.485239718),
    ),
    (
        (1.42343711111, 3.38712664441, 2.5259078529, 0.755594725585, 0.0883292306679, 0.00298967790878),
        (1.0, 1.17980483028, 0.445515936597, 0.0590949709002, 0.00211389499508),
    ),
)  # fmt: skip

# The eighth root of erfc(x) where 1.15625 ≤ x ≤ 4, after which erf is 1 in f32.
_ERFC_ROOT = (1.0013447, -0.146940889, -0.0585878915, -0.0136173105, 0.0139046651, -0.002692995, 0.000170640212)


def _computed(formula: Callable[[Expr, _Fits], Expr], x: Expr) -> Expr:
    return in_f64(lambda wide: formula(wide, by_element(x, _SHORT, _LONG)), x)


def _erf_near(x: Expr, fits: _Fits) -> Expr:
    """Where it is near zero."""
    return fma(x, polynomial(x * x, fits.erf), x)


def erfcx_right(x: Expr, fits: _Fits = _LONG) -> Expr:
    """Where x ≥ 0, infinity too."""
    bounded = at_most(x, 1e17)
    inverse = 1 / (bounded + 3)
    t = (bounded - 3) * inverse
    lost = fma(-t, bounded, fma(t + 1, -3, bounded))  # by rounding, of (x - 3) - t (x + 3)
    return polynomial(fma(inverse, lost, t), fits.erfcx) / (x + 0.5)


def _exp_product(a: Expr, b: Expr) -> Expr:
    """exp(a b) as if the product were exact."""
    product, lost = two_product(a, b)
    return exp(product) * (1 + lost)


@function(lambda d, y, x: d * exp(-x * x) * (2 / root(pi)))
def erf(x: Expr) -> Expr:
    """2 / sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    size, fits = absolute(x), by_element(x, _SHORT, _LONG)
    if x.element is ElementKind.F32:
        low = polynomial(at_most(size, 4.0), _ERFC_ROOT)
        low = low * low
        low = low * low
        far = fma(-low, low, 1)
    else:
        bounded = at_most(size, 6.0)  # from where it is 1
        far = 1 - _exp_product(-bounded, bounded) * erfcx_right(bounded, fits)
    return where(size < fits.near, _erf_near(x, fits), where(x < 0, -far, far))


@function(lambda d, y, x: d * exp(-x * x) * (-2 / root(pi)))
def erfc(x: Expr) -> Expr:
    """1 - erf(x), as precise where that is small."""
    return _computed(_erfc, x)


def _erfc(wide: Expr, fits: _Fits) -> Expr:
    size = at_most(absolute(wide), 28.0)
    tail = _exp_product(-size, size) * erfcx_right(size, fits)
    return where(size < 0.5, 1 - _erf_near(wide, fits), where(wide < 0, 2 - tail, tail))


@function(lambda d, y, x: d * (2 * x * y - 2 / root(pi)))
def erfcx(x: Expr) -> Expr:
    """exp(x²) erfc(x)."""
    return _computed(_erfcx, x)


def _erfcx(wide: Expr, fits: _Fits) -> Expr:
    size = absolute(wide)
    right, bounded = erfcx_right(size, fits), at_most(size, 28.0)
    return where(wide < 0, 2 * _exp_product(bounded, bounded) - right, right)


@function(lambda d, y, x: d * exp(x * x * -0.5) * (1 / root(2 * pi)))
def ndtr(x: Expr) -> Expr:
    """How much of the normal distribution is below x."""
    return _computed(_ndtr, x)


def _ndtr(wide: Expr, fits: _Fits) -> Expr:
    size = at_most(absolute(wide), 40.0)
    tail = _exp_product(-0.5 * size, size) * erfcx_right(size * root(0.5), fits) * 0.5
    near = fma(_erf_near(wide * root(0.5), fits), 0.5, 0.5)
    return where(size < 0.7, near, where(wide < 0, tail, 1 - tail))


@function(lambda d, y, x: d * root(2 / pi) / erfcx(x * -root(0.5)))
def log_ndtr(x: Expr) -> Expr:
    """The logarithm of `ndtr`, right where that is 0 or 1."""
    return _computed(_log_ndtr, x)


def _log_ndtr(wide: Expr, fits: _Fits) -> Expr:
    scaled = erfcx_right(absolute(wide) * root(0.5), fits) * 0.5
    bounded = at_most(wide, 40.0)
    above = _exp_product(-0.5 * bounded, bounded) * scaled
    return where(wide < 0, fma(-0.5 * wide, wide, log(scaled)), log1p(-above))


def _quantile(q: Expr, tail: Expr, fits: _Fits) -> Expr:
    """Below which 1/2 + q of the normal distribution is, and the `tail` beyond it if that is less."""
    far = where(eq(tail, 0), float("inf"), fraction(sqrt(-log(tail)) - 1.6, fits.tail))
    return where(absolute(q) <= 0.425, q * fraction(fma(-q, q, 0.425**2), fits.centre), where(q < 0, -far, far))


@function(lambda d, y, x: d * exp(y * y) * (root(pi) / 2))
def erfinv(x: Expr) -> Expr:
    """Of which x is erf."""
    return _computed(_erfinv, x)


def _erfinv(wide: Expr, fits: _Fits) -> Expr:
    return _quantile(wide * 0.5, (1 - absolute(wide)) * 0.5, fits) * root(0.5)


@function(lambda d, y, x: d * exp(y * y * 0.5) * root(2 * pi))
def ndtri(x: Expr) -> Expr:
    """Of which x is ndtr."""
    return _computed(_ndtri, x)


def _ndtri(wide: Expr, fits: _Fits) -> Expr:
    return _quantile(wide - 0.5, where(wide < 0.5, wide, 1 - wide), fits)


def _roughly(formula: Callable[[Expr, _Fits], Expr]) -> Callable[[Expr], Expr]:
    """For halves f32 has digits to spare."""
    return lambda x: formula(x, _SHORT)


for _function, _formula in (
    (erfc, _erfc),
    (erfcx, _erfcx),
    (ndtr, _ndtr),
    (log_ndtr, _log_ndtr),
    (erfinv, _erfinv),
    (ndtri, _ndtri),
):
    _function.roughly(_roughly(_formula))
