"""Exponentials and logarithms.

exp(x) = 2^k exp(r), k the integer nearest to x / ln 2, and exp(r) = 1 + r + r² p(r). log(2^k (1 + f)) = k ln 2 + f - f²/2 + R(f). Each
function has one arrangement; the element chooses the coefficients.
"""

from __future__ import annotations

import operator
from math import inf, nan

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Number
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.pieces import (
    LN2,
    bits_of,
    by_element,
    choose,
    fast_two_sum,
    format_of,
    nearest,
    parts,
    polynomial,
    power_of_two,
    ratio,
    to_bits,
    two_product,
)
from baracuda_kernels.formula.operations import (
    absolute,
    bitcast,
    convert,
    eq,
    exp2_roughly,
    fma,
    log2_roughly,
    reciprocal,
    where,
)

__all__ = [
    "exp", "exp2", "exp_nonpositive", "expm1", "log", "log1p", "log1p_nonnegative", "log1pexp", "log2", "log10",
    "log_normal", "sigmoid",
]  # fmt: skip

LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)

# p, |r| <= ln 2 / 2, by the relative error of exp(r) - 1.
_EXP = (
    (0.49999997, 0.166665435, 0.0416675471, 0.00836658478, 0.00138606888),
    (0.5, 0.16666666666666677, 0.04166666666666663, 0.008333333333321398, 0.0013888888888912046, 0.00019841269886769564,
     2.4801587260889283e-05, 2.7557243504193785e-06, 2.7557333248795015e-07, 2.5109302424773395e-08, 2.0895458084927254e-09),
)  # fmt: skip
_EXP_ROUGH = (0.500051749, 0.167540155, 0.0412755456)
EXPM1_ROUGH = (1.0, 0.499992818, 0.166664481, 0.0418910123, 0.00837596506)  # (exp(x) - 1) / x, |x| <= 0.36
# F32: R(f) / f³, 1 + f from 2/3 to 4/3. F64: of z = s², s = f / (2 + f), R(f) = s (f²/2 + z times it), 1 + f from √½ to √2.
_LOG = (
    (0.333332151, -0.249998018, 0.200104356, -0.166802555, 0.140055895, -0.121877946, 0.139851525, -0.128755823),
    (0.6666666666666735, 0.3999999999940994, 0.28571428743373334, 0.22222198479049463, 0.18183568924295895, 0.15313938677919736,
     0.1479702481967621),
)  # fmt: skip
LOG1P = (-0.5, *_LOG[0])  # (log(1 + f) - f) / f² of F32, in the same range
_LOG1P_ROUGH = (0.999991596, -0.499361277, 0.325205982, -0.210046753, 0.101220086, -0.0238682758)  # log(1 + e) / e, 0 <= e <= 1
_LOG1P_FRACTION = (  # (log(1 + e) - e) / e² of F32
    -0.499999315, 0.333304703, -0.24958156, 0.196931824, -0.153490216, 0.106697984, -0.0575585775, 0.0201483499, -0.00330601609,
)  # fmt: skip
LEAST = (2 / 3, 0.5**0.5)  # of 1 + f


def between(x: Expr, least: Number, most: Number) -> Expr:
    """Written so that NaN passes."""
    return where(x > most, most, where(x < least, least, x))


def exp_reduced(x: Expr, parts_of_ln2: int = 2) -> tuple[Expr, Expr, Expr]:
    """k as a float and as bits, and r."""
    k, n = nearest(x, LOG2_E[0])
    r = x
    for part in parts(LN2, x, parts_of_ln2):
        r = fma(k, -part, r)
    return k, n, r


def exp_series(r: Expr) -> Expr:
    return polynomial(r, (1.0, 1.0, *by_element(r, *_EXP)))


def expm1_series(r: Expr) -> Expr:
    """exp(r) - 1."""
    return fma(r * r, polynomial(r, by_element(r, *_EXP)), r)


def scaled(p: Expr, n: Expr) -> Expr:
    """2^n p, in two factors, as one may overflow or be subnormal where the result is right."""
    half = n >> 1
    return p * power_of_two(half, p) * power_of_two(n - half, p)


@function(lambda d, y, x: d * y)
def exp(x: Expr) -> Expr:
    _, n, r = exp_reduced(between(x, *by_element(x, (-104.0, 89.0), (-746.0, 710.0))))
    return scaled(exp_series(r), n)


def exp2_by_operations(x: Expr) -> Expr:
    """What `exp2_roughly` comes to on a machine without such an instruction."""
    bounded = between(x, -127.0, 128.0)
    k, n = nearest(bounded, 1.0)
    powers = (LN2[0] ** power for power in range(5))
    p = polynomial(bounded - k, tuple(map(operator.mul, powers, (1.0, 1.0, *_EXP_ROUGH))))
    return p * power_of_two(n, x)


@exp.roughly
def _exp_roughly(x: Expr) -> Expr:
    """In two factors, so that neither overflows or is subnormal."""
    root = exp2_roughly(x * (LOG2_E[0] / 2))
    return root * root


@function(lambda d, y, x: d * y)
def exp_nonpositive(x: Expr) -> Expr:
    """exp(x) for x <= 0 or NaN, cheaper."""
    least = by_element(x, -104.0, -746.0)
    _, n, r = exp_reduced(where(x < least, least, x))
    return exp_series(r) * power_of_two(n + 64, x) * 2.0**-64


exp_nonpositive.roughly(_exp_roughly)


@function(lambda d, y, x, top: (d * y, -(d * y)))
def exp_below(x: Expr, top: Expr) -> Expr:
    """exp(x - top) for a finite `top` and x up to it, off by three quarters of a unit in the last place of 1, not of itself: what is added to a sum that
    has the 1. Of an infinite x it is very large."""
    distance = between(x - top, *by_element(x, (-87.0, 88.0), (-708.0, 709.0)))
    _, n, r = exp_reduced(distance, by_element(x, 1, 2))
    return exp_series(r) * power_of_two(n, x)


@exp_below.roughly
def _exp_below_roughly(x: Expr, top: Expr) -> Expr:
    return exp2_roughly(fma(x, LOG2_E[0], top * -LOG2_E[0]))


@function(lambda d, y, x: d * (y * LN2[0]))
def exp2(x: Expr) -> Expr:
    x = between(x, *by_element(x, (-152.0, 129.0), (-1080.0, 1025.0)))
    k, n = nearest(x, 1.0)
    return scaled(exp_series((x - k) * LN2[0]), n)


@exp2.roughly
def _exp2_roughly(x: Expr) -> Expr:
    root = exp2_roughly(x * 0.5)
    return root * root


def exp2_nonpositive(x: Expr) -> Expr:
    least = by_element(x, -152.0, -1080.0)
    x = where(x < least, least, x)
    k, n = nearest(x, 1.0)
    return exp_series((x - k) * LN2[0]) * power_of_two(n + 64, x) * 2.0**-64


@function(lambda d, y, x: d * exp(x))
def expm1(x: Expr) -> Expr:
    _, n, r = exp_reduced(between(x, -60.0, by_element(x, 89.0, 710.0)))
    p = expm1_series(r)
    half = power_of_two(n - 1, x)  # of 2^k, which may overflow
    return where(absolute(x) < 1e-20, x, fma(p, half, half - 0.5) * 2.0)  # for the sign of zero, and the digits of subnormals


@expm1.roughly
def _expm1_roughly(x: Expr) -> Expr:
    """Near zero the difference would lose digits."""
    return where(absolute(x) < 0.36, x * polynomial(x, EXPM1_ROUGH), exp(x) - 1.0)


def exponent_of(y: Expr, least: float) -> Expr:
    """k of a normal number, 1 + f being at least that."""
    return (to_bits(y) - bits_of(least, y)) >> format_of(y).digits


def _counted(k: Expr, like: Expr, scaled: Expr, by: int) -> Expr:
    """k as a float, and more of it where the number was scaled."""
    magic = format_of(like).magic
    return bitcast(k + bits_of(magic, like), like.element) - choose(scaled, magic - by, magic, like.element)


def log_reduced(x: Expr, least: float) -> tuple[Expr, Expr]:
    """k as a float, and f."""
    layout = format_of(x)
    subnormal = x < 2.0 ** (1 - layout.bias)
    y = where(subnormal, x * 2.0**64, x)
    k = exponent_of(y, least)
    return _counted(k, x, subnormal, -64), bitcast(to_bits(y) - (k << layout.digits), x.element) - 1.0


def _log_rest(f: Expr) -> tuple[Expr, Expr]:
    """f²/2 and R(f)."""
    half_square = f * f * 0.5
    if by_element(f, True, False):
        return half_square, f * f * f * polynomial(f, _LOG[0])
    s = f / (f + 2.0)  # F32 would lose more by the division than by the longer polynomial
    z = s * s
    return half_square, s * fma(z, polynomial(z, _LOG[1]), half_square)


def _log_sum(k: Expr, f: Expr) -> Expr:
    high, low = parts(LN2, f, 2)
    half_square, rest = _log_rest(f)
    return fma(k, high, f - (half_square - fma(k, low, rest)))


def _log_ends(x: Expr, result: Expr) -> Expr:
    return where(x > 0, where(x < inf, result, x), choose(eq(x, 0), -inf, nan, x.element))


@function(lambda d, y, x: d / x)
def log(x: Expr) -> Expr:
    return _log_ends(x, _log_sum(*log_reduced(x, by_element(x, *LEAST))))


@function(lambda d, y, x: d / (x + 1.0))
def log1p(x: Expr) -> Expr:
    layout = format_of(x)
    large = x > by_element(x, 2.0**100, 2.0**200)  # 1 + x is x, and 2^-k would be subnormal
    y = where(large, x * 2.0**-64, x)
    whole = y + 1.0
    k = exponent_of(whole, by_element(x, *LEAST))
    scale = bitcast(bits_of(1.0, x) - (k << layout.digits), x.element)
    result = _log_sum(_counted(k, x, large, 64), fma(y, scale, scale - 1.0))
    return where(eq(x, 0), x, _log_ends(whole, result))


@function(lambda d, y, x: d / (x + 1.0))
def log1p_nonnegative(x: Expr) -> Expr:
    """log(1 + x) for 0 <= x < 2^100, cheaper."""
    if x.element is ElementKind.F64:
        return log1p(x)
    k, scale = exponent_in_place(x + 1.0)
    return log_short(k, fma(x, scale, scale - 1.0))


def exponent_in_place(x: Expr) -> tuple[Expr, Expr]:
    """The exponent k of an f32, times 2^23 as an integer, and 2^-k."""
    k = (to_bits(x) - bits_of(LEAST[0], x)) & -(1 << format_of(x).digits)
    return k, bitcast(bits_of(1.0, x) - k, x.element)


def log_short(k: Expr, f: Expr) -> Expr:
    """log(2^k (1 + f)) of F32, from a k in its place: cheaper where f has all its digits."""
    return fma(convert(k, f.element), LN2[0] * 2.0 ** -format_of(f).digits, fma(f * f, polynomial(f, LOG1P), f))


@function(lambda d, y, x: d / x)
def log_normal(x: Expr) -> Expr:
    """log(x) for 2^-126 <= x <= 2^126 or NaN, cheaper."""
    if x.element is ElementKind.F64:
        return log(x)
    k, scale = exponent_in_place(x)
    return log_short(k, fma(x, scale, -1.0))


def _log_to_base(x: Expr, scale: tuple[float, ...], of_two: tuple[float, ...]) -> Expr:
    """log(1 + f) and its product with the scale are held in two numbers."""
    k, f = log_reduced(x, by_element(x, *LEAST))
    half_square, rest = _log_rest(f)
    first = f - half_square
    second = ((f - first) - half_square) + rest
    high, low = parts(scale, x, 2)
    product, error = two_product(first, high)
    below = fma(first, low, fma(second, high, error))
    if of_two != (1.0,):
        two_high, two_low = parts(of_two, x, 2)
        below = fma(k, two_low, below)
        k, error = two_product(k, two_high)
        below = below + error
    total, error = fast_two_sum(k, product)
    return _log_ends(x, total + (error + below))


@function(lambda d, y, x: d / (x * LN2[0]))
def log2(x: Expr) -> Expr:
    return _log_to_base(x, LOG2_E, (1.0,))


@function(lambda d, y, x: d / (x * 2.302585092994046))
def log10(x: Expr) -> Expr:
    return _log_to_base(x, LOG10_E, LOG10_2)


def log2_by_operations(x: Expr) -> Expr:
    """What `log2_roughly` comes to on a machine without such an instruction."""
    k, f = log_reduced(x, LEAST[0])
    half_square, rest = _log_rest(f)
    return _log_ends(x, fma(f - (half_square - rest), LOG2_E[0], k))


def log1p_roughly(f: Expr, whole: Expr, scale: float = 1.0) -> Expr:
    """That of f + 1, which is also given, for 16-bit floats, and times a scale. Near 1 digits would be lost."""
    near = f * polynomial(f, (scale, -0.5 * scale, scale / 3))
    return where(absolute(f) < 2.0**-6, near, log2_roughly(whole) * (scale * LN2[0]))


log.roughly(lambda x: log1p_roughly(x - 1.0, x))
log_normal.roughly(lambda x: log1p_roughly(x - 1.0, x))
log2.roughly(lambda x: log1p_roughly(x - 1.0, x, LOG2_E[0]))
log10.roughly(lambda x: log1p_roughly(x - 1.0, x, LOG10_E[0]))
log1p.roughly(lambda x: log1p_roughly(x, x + 1.0))
log1p_nonnegative.roughly(lambda x: log1p_roughly(x, x + 1.0))


def log1p_of_fraction(e: Expr) -> Expr:
    """log(1 + e), 0 <= e <= 1: in F32 one polynomial, in F64 k is 0 or 1."""
    if e.element is ElementKind.F32:
        return fma(e * e, polynomial(e, _LOG1P_FRACTION), e)
    over = e > 2**0.5 - 1
    high, low = parts(LN2, e, 2)
    f = where(over, fma(e, 0.5, -0.5), e)
    half_square, rest = _log_rest(f)
    return choose(over, high, 0.0, e.element) + (f - (half_square - (rest + choose(over, low, 0.0, e.element))))


def _sigmoid_slope(x: Expr) -> Expr:
    e = exp_nonpositive(-absolute(x))
    return ratio(e, (e + 1.0) * (e + 1.0))


@function(lambda d, y, x: d * _sigmoid_slope(x))
def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)): what is taken from 1, or from e far below zero, is small there, and so is its error."""
    e = exp_nonpositive(-absolute(x))
    most = where(x < 0, e, 1.0)
    return fma(-most, ratio(e, e + 1.0), most)


@sigmoid.roughly
def _sigmoid_roughly(x: Expr) -> Expr:
    e = exp_nonpositive(-absolute(x))
    return where(x < 0, e, 1.0) * reciprocal(e + 1.0)


@function(lambda d, y, x: d * sigmoid(x))
def log1pexp(x: Expr) -> Expr:
    """log(1 + exp(x))."""
    return where(x > 0, x, 0.0) + log1p_of_fraction(exp_nonpositive(-absolute(x)))


@log1pexp.roughly
def _log1pexp_roughly(x: Expr) -> Expr:
    e = exp_nonpositive(-absolute(x))
    return fma(e, polynomial(e, _LOG1P_ROUGH), where(x > 0, x, 0.0))
