"""The error function, the normal distribution, and what belongs to them.

Far from zero everything here is exp(-x²) times the scaled complement erfcx, which is one polynomial of (x - 3) / (x + 3) for x ≥ 0.
What rounding takes from the square is put back, as the exponential would magnify it. F32 has polynomials of its own.
"""

from __future__ import annotations

from math import inf, pi
from math import sqrt as root
from operator import mul
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import LOG1P, LOG2_E, exp, exp_reduced, exp_series, exponent_in_place, log, log1p
from baracuda_kernels.formula.functions.fits import Coefficients, Fraction, at_most, fraction, in_f64
from baracuda_kernels.formula.functions.pieces import LN2, by_element, choose, polynomial, power_of_two, two_product
from baracuda_kernels.formula.operations import (
    absolute,
    convert,
    eq,
    exp2_roughly,
    fma,
    log2_roughly,
    ne,
    rarely,
    reciprocal,
    rsqrt_roughly,
    sqrt,
    where,
)

__all__ = ["erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

# Coefficients of minimax polynomials: erf(x) / x - 1, of x² where |x| ≤ near.
_NEAR = (1.15625, 1.0)
_ERF = (
    (0.128379158, -0.37612572, 0.112830032, -0.0268308461, 0.00514738911, -0.000767371141, 6.81540993e-05),
    (
        0.12837916709551256, -0.3761263890318352, 0.112837916709442, -0.026866170643113394, 0.005223977606130813,
        -0.0008548325929766059, 0.00012055293586936385, -1.4924712439533532e-05, 1.6447132699784248e-06, -1.6206318752965553e-07,
        1.371098870418608e-08, -7.779462971758347e-10,
    ),
)  # fmt: skip

# Of F64: (x + 1/2) erfcx(x), of (x - 3) / (x + 3) where x ≥ 0.
_ERFCX: Coefficients = (
    0.6265040291348648, -0.0678105530622906, -0.023781147176710087, 0.06482257935138096, -0.059636831708385414,
    0.03415401367198811, -0.0118852574456642, 0.0012646959078812094, 0.0009443450479508816, -0.00038991613407153976,
    -5.257915172437605e-05, 6.254966460415666e-05, 2.4720471186918576e-06, -1.0050245536639517e-05, -3.593640994903547e-07,
    1.7361288755427542e-06, 1.6831073184563233e-07, -3.08224502656547e-07, -6.024081998153293e-08, 5.085657050587105e-08,
    1.390881811051543e-08, -6.628879134139538e-09, -1.5882026578491844e-09, 4.878582300452003e-10,
)  # fmt: skip
# ndtri(1/2 + q) / q, of 0.425² - q² where |q| ≤ 0.425.
_QUANTILE: Fraction = (
    (
        3.3871328727963665, 132.78401566908957, 1959.9675884123928, 13597.948869379345, 45263.806755453676, 65936.8549435417,
        32560.249556682717, 2426.013763176355,
    ),
    (
        1.0, 42.20773926597466, 683.4380554162611, 5345.772423186345, 20934.66123623838, 38597.34589584903,
        28046.572323825418, 5068.996083460132,
    ),
)  # fmt: skip
# -ndtri(p), of sqrt(-log p) - 1.6 where p ≤ 0.075.
_FAR_QUANTILE: Fraction = (
    (
        1.4234371107496837, 4.907907163541795, 6.713905452963095, 4.9072379130903325, 2.1456443242915277, 0.5880114240729979,
        0.10153334326268508, 0.010713478011901355, 0.0006474211420130171, 2.021851790729803e-05, 2.7598679591852554e-07,
        1.1528550264844213e-09,
    ),
    (
        1.0, 2.2481909808692015, 2.105907381814622, 1.0760653253878538, 0.3289736950357565, 0.061637907039420216,
        0.006912805331222795, 0.0004359947475348238, 1.398958723916134e-05, 1.9384875917601978e-07, 8.151907434373741e-10,
    ),
)  # fmt: skip

# Of F32: the eighth root of erfc(x) where 1.15625 ≤ x ≤ 4, after which erf is 1.
_ERFC_ROOT = (1.0013447, -0.146940889, -0.0585878915, -0.0136173105, 0.0139046651, -0.002692995, 0.000170640212)


class _Decay(NamedTuple):
    """(x + 2) times a function that falls like 1 / x, of x / (x + 2) - middle where x ≥ 0."""

    middle: float
    fit: Coefficients


_ERFCX_DECAY = _Decay(
    0.5,
    (
        1.0215827, -1.3743213, 1.1178852, -0.29154402, -0.34404013, 0.20754752, 0.19564237, -0.1100893, -0.15298957, 0.037209634,
        0.08599664,
    ),
)  # fmt: skip
_MILLS_DECAY = _Decay(  # of exp(x² / 2) ndtr(-x)
    0.4609375,
    (
        0.69845724, -0.670464, 0.08081868, 0.2917891, 0.031613916, -0.18330835, -0.14667988, 0.040515173, 0.19622363, 0.13017394,
        -0.15684772, -0.15945464, 0.09312783,
    ),
)  # fmt: skip
# erfinv(x) / x, of w - 4.5, w = -log(1 - x²) where 1 - x² ≥ least, as of nearly all random numbers.
_MIDDLE, _LEAST = 4.5, 2.0**-14
_ERFINV = (
    1.9711326, 0.22103532, -0.0073674535, -3.4123643e-06, 8.249154e-05, -1.3359614e-05, 9.1100145e-07, 6.567386e-08, -2.5172126e-08,
    2.3365276e-09, 1.2771183e-10, -3.7847437e-11, 9.656391e-13, 1.1950898e-13,
)  # fmt: skip
# sqrt(2) s + ndtri(p), of 1 / s - 1/4, s = sqrt(-log p), where 1 - x² is less.
_FAR = (
    0.47951305, 1.2611483, -1.2135241, 1.8532002, -3.7328713, 10.387389, -30.19617, -139.60448, -1320.3909,
)  # fmt: skip

# For 16-bit floats: (x + 2.5) erfcx(x), of 1 / (x + 2.5) where x ≥ 0; the others as above.
_ERFCX_ROUGH = (0.5641923, 1.4103595, 3.2334762, 7.1149597, 6.6456647, 45.61422, -58.173912)
_LOG1P_ROUGH = (-0.5000468, 0.33228424, -0.24761353, 0.22631802, -0.19960439)
_ERFINV_ROUGH = (
    1.9711798, 0.22103918, -0.007429577, -7.001964e-06, 9.56433e-05, -1.3147452e-05, -4.0810537e-08, 9.5969874e-08,
)  # fmt: skip


def _erf_near(x: Expr) -> Expr:
    """Where it is near zero."""
    return fma(x, polynomial(x * x, by_element(x, *_ERF)), x)


def erfcx_right(x: Expr) -> Expr:
    """Where x ≥ 0, infinity too, in F64."""
    bounded = at_most(x, 1e17)
    inverse = 1 / (bounded + 3)
    t = (bounded - 3) * inverse
    lost = fma(-t, bounded, fma(t + 1, -3, bounded))  # by rounding, of (x - 3) - t (x + 3)
    return polynomial(fma(inverse, lost, t), _ERFCX) / (x + 0.5)


def _decaying(x: Expr, decay: _Decay) -> tuple[Expr, Expr]:
    """In two factors, where 0 ≤ x ≤ 1e15, in F32."""
    inverse = reciprocal(x + 2)
    inverse = fma(inverse, fma(-inverse, x, fma(inverse, -2, 1)), inverse)
    return polynomial(fma(x, inverse, -decay.middle), decay.fit), inverse


def _erfcx_roughly(x: Expr) -> Expr:
    """Where x ≥ 0."""
    inverse = reciprocal(x + 2.5)
    return polynomial(inverse, _ERFCX_ROUGH) * inverse


def _mills_roughly(x: Expr) -> Expr:
    """erfcx(x / sqrt(2)) / 2."""
    inverse = reciprocal(fma(x, root(0.5), 2.5))
    return polynomial(inverse, tuple(0.5 * each for each in _ERFCX_ROUGH)) * inverse


def _exp_product(a: Expr, b: Expr, shift: int = 64) -> Expr:
    """exp(a b) as if the product were exact; in F32 for products up to 0, or with a shift of -1 for those from 0 on."""
    product, lost = two_product(a, b)
    if a.element is ElementKind.F64:
        return exp(product) * (1 + lost)
    _, n, r = exp_reduced(product)
    return exp_series(r + lost) * power_of_two(n + shift, a) * 2.0**-shift


def _exp_square_roughly(x: Expr, scale: float, factor: Expr | float) -> Expr:
    """exp(scale x²) times a factor, for a 16-bit float, whose square is exact. In two factors, so that neither is 0 or infinite too early."""
    half = exp2_roughly(x * x * (0.5 * scale * LOG2_E[0]))
    return half * factor * half


@function(lambda d, y, x: d * exp(-x * x) * (2 / root(pi)))
def erf(x: Expr) -> Expr:
    """2 / sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    size = absolute(x)
    if x.element is ElementKind.F32:
        low = polynomial(at_most(size, 4.0), _ERFC_ROOT)
        low = low * low
        low = low * low
        far = fma(-low, low, 1)
    else:
        bounded = at_most(size, 6.0)  # from where it is 1
        far = 1 - _exp_product(-bounded, bounded) * erfcx_right(bounded)
    return where(size < by_element(x, *_NEAR), _erf_near(x), where(x < 0, -far, far))


@function(lambda d, y, x: d * exp(-x * x) * (-2 / root(pi)))
def erfc(x: Expr) -> Expr:
    """1 - erf(x), as precise where that is small."""
    size = at_most(absolute(x), by_element(x, 10.25, 28.0))  # from where it is 0
    if x.element is ElementKind.F32:
        tail = _exp_product(-size, size) * mul(*_decaying(size, _ERFCX_DECAY))
        return where(x < 0, 2 - tail, tail)
    tail = _exp_product(-size, size) * erfcx_right(size)
    return where(size < 0.5, 1 - _erf_near(x), where(x < 0, 2 - tail, tail))


@erfc.roughly
def _erfc_of_half(x: Expr) -> Expr:
    tail = _exp_square_roughly(x, -1.0, _erfcx_roughly(absolute(x)))
    return where(x < 0, 2 - tail, tail)


def _slope_of_erfcx_slope(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * (2 * (erfcx(x) + x * y))


@function(_slope_of_erfcx_slope)
def erfcx_slope(x: Expr) -> Expr:
    """2 x erfcx(x) - 2 / sqrt(pi), whose terms cancel to the right: there it is a series of 1 / x²."""
    if x.element is ElementKind.F32:
        return in_f64(erfcx_slope, x)
    return where(x > 50, _erfcx_slope_far(1 / x), 2 * x * erfcx(x) - 2 / root(pi))


@erfcx_slope.roughly
def _erfcx_slope_roughly(x: Expr) -> Expr:
    """By an erfcx that is not rough."""
    return where(x > 5, _erfcx_slope_far(reciprocal(x)), fma(2 * x, erfcx.expansion(x), -2 / root(pi)))


def _erfcx_slope_far(inverse: Expr) -> Expr:
    t = 0.5 * inverse * inverse
    return t * polynomial(t, tuple(2 / root(pi) * each for each in (-1, 3, -15, 105, -945, 10395)))


@function(lambda d, y, x: d * erfcx_slope(x))
def erfcx(x: Expr) -> Expr:
    """exp(x²) erfc(x)."""
    size = absolute(x)
    bounded = at_most(size, by_element(x, 9.4, 28.0))  # from where it is infinite to the left
    right = _erfcx_far(size, mul(*_decaying(size, _ERFCX_DECAY))) if x.element is ElementKind.F32 else erfcx_right(size)
    return where(x < 0, 2 * _exp_product(bounded, bounded, -1) - right, right)


def _erfcx_far(size: Expr, near: Expr) -> Expr:
    """Out there `reciprocal` is not good."""
    return rarely(size > 1e15, (1 / root(pi)) / size, near)


@erfcx.roughly
def _erfcx_of_half(x: Expr) -> Expr:
    right = _erfcx_far(absolute(x), _erfcx_roughly(absolute(x)))
    return where(x < 0, _exp_square_roughly(x, 1.0, 2.0) - right, right)


@function(lambda d, y, x: d * exp(x * x * -0.5) * (1 / root(2 * pi)))
def ndtr(x: Expr) -> Expr:
    """How much of the normal distribution is below x."""
    size = at_most(absolute(x), by_element(x, 14.5, 40.0))
    if x.element is ElementKind.F32:
        tail = _exp_product(-0.5 * size, size) * mul(*_decaying(size, _MILLS_DECAY))
        return where(x < 0, tail, 1 - tail)
    tail = _exp_product(-0.5 * size, size) * erfcx_right(size * root(0.5)) * 0.5
    near = fma(_erf_near(x * root(0.5)), 0.5, 0.5)
    return where(size < 0.7, near, where(x < 0, tail, 1 - tail))


@ndtr.roughly
def _ndtr_of_half(x: Expr) -> Expr:
    tail = _exp_square_roughly(x, -0.5, _mills_roughly(absolute(x)))
    return where(x < 0, tail, 1 - tail)


def _log_reduced(x: Expr) -> tuple[Expr, Expr]:
    """k ln 2 and 2^-k, where 2^-k x is from 2/3 to 4/3, of an F32 from 2^-60 to 1."""
    k, scale = exponent_in_place(x)
    return convert(k, x.element) * (LN2[0] * 2.0**-23), scale


@function(lambda d, y, x: -(d * y * (x + y)))
def log_ndtr_slope(x: Expr) -> Expr:
    """The exponential in it would magnify the rounding of what it is of."""
    return in_f64(log_ndtr_slope, x) if x.element is ElementKind.F32 else root(2 / pi) / erfcx(x * -root(0.5))


@log_ndtr_slope.roughly
def _log_ndtr_slope_of_half(x: Expr) -> Expr:
    left = x < 0
    scaled, bell = _mills_roughly(at_most(absolute(x), 1024.0)), _exp_square_roughly(x, -0.5, 1.0)
    share = where(left, root(0.5 / pi), root(0.5 / pi) * bell)
    found = share * reciprocal(where(left, scaled, fma(-bell, scaled, 1)))
    return where(x < -1024, -x, found)


@function(lambda d, y, x: d * log_ndtr_slope(x))
def log_ndtr(x: Expr) -> Expr:
    """The logarithm of `ndtr`, right where that is 0 or 1."""
    size = absolute(x)
    if x.element is ElementKind.F32:
        bounded = at_most(size, 14.5)
        scaled, lost = two_product(*_decaying(at_most(size, 1e15), _MILLS_DECAY))
        return _log_ndtr(x, scaled, _exp_product(-0.5 * bounded, bounded), LOG1P, lost)
    scaled = erfcx_right(size * root(0.5)) * 0.5
    bounded = at_most(x, 40.0)
    above = _exp_product(-0.5 * bounded, bounded) * scaled
    return where(x < 0, fma(-0.5 * x, x, log(scaled)), log1p(-above))


def _log_ndtr(x: Expr, scaled: Expr, bell: Expr, log1p_fit: Coefficients, lost: Expr | None = None) -> Expr:
    """In F32: log(scaled) - x²/2 to the left of 0, log(1 - bell scaled) to the right. What was lost of `scaled` and f is put back."""
    left = x < 0
    base, share = choose(left, 0.0, 1.0, x.element), where(left, 1.0, -bell)
    of_two, scale = _log_reduced(fma(share, scaled, base))
    part, rest = scaled * scale, fma(base, scale, -1)
    f = fma(share, part, rest)
    if lost is None:
        result = fma(f, polynomial(f, (1.0, *log1p_fit)), of_two)
    else:
        low = fma(share, lost * scale, fma(share, part, rest - f))
        result = of_two + (f + fma(f * f, polynomial(f, log1p_fit), low))
    return where(left, fma(-0.5 * x, x, result), result)


@log_ndtr.roughly
def _log_ndtr_of_half(x: Expr) -> Expr:
    scaled = _mills_roughly(at_most(absolute(x), 1e15))
    return _log_ndtr(x, scaled, _exp_square_roughly(x, -0.5, 1.0), _LOG1P_ROUGH)


def _quantile(q: Expr, tail: Expr) -> Expr:
    """Below which 1/2 + q of the normal distribution is, and the `tail` beyond it if that is less."""
    far = where(eq(tail, 0), inf, fraction(sqrt(-log(tail)) - 1.6, _FAR_QUANTILE))
    return where(absolute(q) <= 0.425, q * fraction(fma(-q, q, 0.425**2), _QUANTILE), where(q < 0, -far, far))


def _erfinv_near(x: Expr, rest: Expr) -> Expr:
    """In F32, where the rest, 1 - x², is not less than _LEAST. Of the logarithm a few digits less are enough."""
    return x * polynomial(_less_middle(rest), _ERFINV)


def _erfinv_near_roughly(x: Expr, rest: Expr) -> Expr:
    return x * polynomial(_less_middle(rest), _ERFINV_ROUGH)


def _less_middle(rest: Expr) -> Expr:
    return fma(log2_roughly(rest), -LN2[0], -_MIDDLE)


def _ndtri_far(tail: Expr, sign: Expr) -> Expr:
    """Beyond which that tail is, in F32, with that sign; infinite where the tail is 0."""
    s = sqrt(-log(tail))
    far = fma(s, root(2), -polynomial(1 / s - 0.25, _FAR))
    return where(sign < 0, -far, far)


@function(lambda d, y, x: d * exp(y * y) * (root(pi) / 2))
def erfinv(x: Expr) -> Expr:
    """The inverse of erf."""
    tail = (1 - absolute(x)) * 0.5
    if x.element is ElementKind.F64:
        return _quantile(x * 0.5, tail) * root(0.5)
    rest = fma(-x, x, 1)
    return rarely(~(rest >= _LEAST), _ndtri_far(tail, x) * root(0.5), _erfinv_near(x, rest))


@erfinv.roughly
def _erfinv_of_half(x: Expr) -> Expr:
    """The rest of a 16-bit float is 0, or not less than _LEAST."""
    rest = fma(-x, x, 1)
    return where(rest > 0, _erfinv_near_roughly(x, rest), x * rsqrt_roughly(rest))


@function(lambda d, y, x: d * exp(y * y * 0.5) * root(2 * pi))
def ndtri(x: Expr) -> Expr:
    """The inverse of ndtr."""
    tail = where(x < 0.5, x, 1 - x)
    if x.element is ElementKind.F64:
        return _quantile(x - 0.5, tail)
    twice, rest = fma(x, 2, -1), (1 - x) * x * 4
    return rarely(~(rest >= _LEAST), _ndtri_far(tail, twice), _erfinv_near(twice, rest) * root(2))


@ndtri.roughly
def _ndtri_of_half(x: Expr) -> Expr:
    """0 and 1 are not rare among 16-bit floats."""
    twice, rest = fma(x, 2, -1), (1 - x) * x * 4
    near = _erfinv_near_roughly(twice, rest) * root(2)
    far = _ndtri_far(where(x < 0.5, x, 1 - x), twice)
    return rarely(~(rest >= _LEAST) & ne(rest, 0), far, where(eq(rest, 0), twice * inf, near))
