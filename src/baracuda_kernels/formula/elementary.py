"""Exponentials, logarithms and powers.

exp(x) = 2^k exp(r), k the integer nearest to x / ln 2, and exp(r) = 1 + r + r² p(r). log(2^k (1 + f)) = k ln 2 + f - f²/2 + R(f). Each
function has one arrangement; the element chooses the coefficients.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf, nan

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Number, constant
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.operations import (
    absolute,
    bitcast,
    convert,
    eq,
    exp2_roughly,
    fma,
    is_nan,
    log2_roughly,
    mul_high,
    rarely,
    reciprocal,
    rsqrt_roughly,
    sqrt,
    trunc,
    where,
)
from baracuda_kernels.formula.pieces import (
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
    sign_bit,
    to_bits,
    two_product,
    with_sign,
)

__all__ = [
    "cbrt", "exp", "exp2", "exp_nonpositive", "expm1", "hypot", "log", "log1p", "log1p_nonnegative", "log1pexp", "log2", "log10", "logaddexp", "logaddexp2",
    "pow", "rsqrt", "sigmoid",
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
_EXPM1_ROUGH = (1.0, 0.499992818, 0.166664481, 0.0418910123, 0.00837596506)  # (exp(x) - 1) / x, |x| <= 0.36
# F32: R(f) / f³, 1 + f from 2/3 to 4/3. F64: of z = s², s = f / (2 + f), R(f) = s (f²/2 + z times it), 1 + f from √½ to √2.
_LOG = (
    (0.333332151, -0.249998018, 0.200104356, -0.166802555, 0.140055895, -0.121877946, 0.139851525, -0.128755823),
    (0.6666666666666735, 0.3999999999940994, 0.28571428743373334, 0.22222198479049463, 0.18183568924295895, 0.15313938677919736,
     0.1479702481967621),
)  # fmt: skip
LOG1P = (-0.5, *_LOG[0])  # (log(1 + f) - f) / f² of F32, in the same range
_LOG2_NEAR = (  # log2(1 + f) / f of F32, |f| <= 0.26
    1.44269502, -0.721347451, 0.480910897, -0.360693187, 0.287563831, -0.23930724, 0.22920765, -0.20348452,
)  # fmt: skip
_LOG1P_ROUGH = (0.999991596, -0.499361277, 0.325205982, -0.210046753, 0.101220086, -0.0238682758)  # log(1 + e) / e, 0 <= e <= 1
# log2(1 + f) / f, 1 + f from 2/3 to 4/3: the first terms in F64, of the others F32 is enough.
_LOG2_FIRST = (1.4426950408923274, -0.7213475195693089, 0.4808983439634748, -0.36067397861541556, 0.28853944154002265)
_LOG2_REST = (-0.24043366, 0.206075981, -0.180806064, 0.160891102, -0.137461103, 0.123563806, -0.166105273, 0.157538815)
_LOG1P_FRACTION = (  # (log(1 + e) - e) / e² of F32
    -0.499999315, 0.333304703, -0.24958156, 0.196931824, -0.153490216, 0.106697984, -0.0575585775, 0.0201483499, -0.00330601609,
)  # fmt: skip
_LEAST = (2 / 3, 0.5**0.5)  # of 1 + f
# (artanh(s) - s - s³/3) / s⁵ of z = s², |s| <= (√2 - 1) / (√2 + 1).
_ARTANH = (
    (0.200000763, 0.142735451, 0.117097773),
    (0.2000000000000112, 0.1428571428505327, 0.11111111259425167, 0.09090892224357275, 0.07693377008703745, 0.06628443445272647,
     0.06597872198861504),
)  # fmt: skip


def _between(x: Expr, least: Number, most: Number) -> Expr:
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


def _scaled(p: Expr, down: Expr, n: Expr) -> Expr:
    """2^n p, in two factors, as one may overflow or be subnormal where the result is right; `down` if n < 0."""
    integer = format_of(p).integer
    return p * power_of_two(n + choose(down, 64, -1, integer), p) * choose(down, 2.0**-64, 2.0, p.element)


@function(lambda d, y, x: d * y)
def exp(x: Expr) -> Expr:
    k, n, r = exp_reduced(_between(x, *by_element(x, (-104.0, 89.0), (-746.0, 710.0))))
    return _scaled(exp_series(r), k < 0, n)


def exp2_by_operations(x: Expr) -> Expr:
    """What `exp2_roughly` comes to on a machine without such an instruction."""
    bounded = _between(x, -127.0, 128.0)
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
    distance = _between(x - top, *by_element(x, (-87.0, 88.0), (-708.0, 709.0)))
    _, n, r = exp_reduced(distance, by_element(x, 1, 2))
    return exp_series(r) * power_of_two(n, x)


@exp_below.roughly
def _exp_below_roughly(x: Expr, top: Expr) -> Expr:
    return exp2_roughly(fma(x, LOG2_E[0], top * -LOG2_E[0]))


@function(lambda d, y, x: d * (y * LN2[0]))
def exp2(x: Expr) -> Expr:
    x = _between(x, *by_element(x, (-152.0, 129.0), (-1080.0, 1025.0)))
    k, n = nearest(x, 1.0)
    return _scaled(exp_series((x - k) * LN2[0]), k < 0, n)


@exp2.roughly
def _exp2_roughly(x: Expr) -> Expr:
    root = exp2_roughly(x * 0.5)
    return root * root


def _exp2_nonpositive(x: Expr) -> Expr:
    least = by_element(x, -152.0, -1080.0)
    x = where(x < least, least, x)
    k, n = nearest(x, 1.0)
    return exp_series((x - k) * LN2[0]) * power_of_two(n + 64, x) * 2.0**-64


@function(lambda d, y, x: d * exp(x))
def expm1(x: Expr) -> Expr:
    _, n, r = exp_reduced(_between(x, -60.0, by_element(x, 89.0, 710.0)))
    p = fma(r * r, polynomial(r, by_element(r, *_EXP)), r)
    half = power_of_two(n - 1, x)  # of 2^k, which may overflow
    return where(absolute(x) < 1e-20, x, fma(p, half, half - 0.5) * 2.0)  # for the sign of zero, and the digits of subnormals


@expm1.roughly
def _expm1_roughly(x: Expr) -> Expr:
    """Near zero the difference would lose digits."""
    return where(absolute(x) < 0.36, x * polynomial(x, _EXPM1_ROUGH), exp(x) - 1.0)


def _exponent(y: Expr, least: float) -> Expr:
    """k of a normal number, 1 + f being at least that."""
    return (to_bits(y) - bits_of(least, y)) >> format_of(y).digits


def _counted(k: Expr, like: Expr, scaled: Expr, by: int) -> Expr:
    """k as a float, and more of it where the number was scaled."""
    magic = format_of(like).magic
    return bitcast(k + bits_of(magic, like), like.element) - choose(scaled, magic - by, magic, like.element)


def _log_reduced(x: Expr, least: float) -> tuple[Expr, Expr]:
    """k as a float, and f."""
    layout = format_of(x)
    subnormal = x < 2.0 ** (1 - layout.bias)
    y = where(subnormal, x * 2.0**64, x)
    k = _exponent(y, least)
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
    return _log_ends(x, _log_sum(*_log_reduced(x, by_element(x, *_LEAST))))


@function(lambda d, y, x: d / (x + 1.0))
def log1p(x: Expr) -> Expr:
    layout = format_of(x)
    large = x > by_element(x, 2.0**100, 2.0**200)  # 1 + x is x, and 2^-k would be subnormal
    y = where(large, x * 2.0**-64, x)
    whole = y + 1.0
    k = _exponent(whole, by_element(x, *_LEAST))
    scale = bitcast(bits_of(1.0, x) - (k << layout.digits), x.element)
    result = _log_sum(_counted(k, x, large, 64), fma(y, scale, scale - 1.0))
    return where(eq(x, 0), x, _log_ends(whole, result))


@function(lambda d, y, x: d / (x + 1.0))
def log1p_nonnegative(x: Expr) -> Expr:
    """log(1 + x) for 0 <= x < 2^100, cheaper."""
    if x.element is ElementKind.F64:
        return log1p(x)
    k = (to_bits(x + 1.0) - bits_of(_LEAST[0], x)) & -(1 << format_of(x).digits)  # in its place
    scale = bitcast(bits_of(1.0, x) - k, x.element)
    f = fma(x, scale, scale - 1.0)
    return fma(convert(k, x.element), LN2[0] * 2.0 ** -format_of(x).digits, fma(f * f, polynomial(f, LOG1P), f))


def _log_to_base(x: Expr, scale: tuple[float, ...], of_two: tuple[float, ...]) -> Expr:
    """log(1 + f) and its product with the scale are held in two numbers."""
    k, f = _log_reduced(x, by_element(x, *_LEAST))
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
    k, f = _log_reduced(x, _LEAST[0])
    half_square, rest = _log_rest(f)
    return _log_ends(x, fma(f - (half_square - rest), LOG2_E[0], k))


def _log1p_roughly(f: Expr, whole: Expr, scale: float = 1.0) -> Expr:
    """That of f + 1, which is also given, for halves, and times a scale. Near 1 digits would be lost."""
    near = f * polynomial(f, (scale, -0.5 * scale, scale / 3))
    return where(absolute(f) < 2.0**-6, near, log2_roughly(whole) * (scale * LN2[0]))


log.roughly(lambda x: _log1p_roughly(x - 1.0, x))
log2.roughly(lambda x: _log1p_roughly(x - 1.0, x, LOG2_E[0]))
log10.roughly(lambda x: _log1p_roughly(x - 1.0, x, LOG10_E[0]))
log1p.roughly(lambda x: _log1p_roughly(x, x + 1.0))
log1p_nonnegative.roughly(lambda x: _log1p_roughly(x, x + 1.0))


def _log1p_of_fraction(e: Expr) -> Expr:
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
    return where(x > 0, x, 0.0) + _log1p_of_fraction(exp_nonpositive(-absolute(x)))


@log1pexp.roughly
def _log1pexp_roughly(x: Expr) -> Expr:
    e = exp_nonpositive(-absolute(x))
    return fma(e, polynomial(e, _LOG1P_ROUGH), where(x > 0, x, 0.0))


def _shares(d: Expr, difference: Expr, same: Expr) -> tuple[Expr, Expr]:
    """Of two summands in their sum, by the logarithm of their ratio; of equal infinities too."""
    difference = where(same, 0.0, difference)
    return d * sigmoid(difference), d * sigmoid(-difference)


@function(lambda d, y, a, b: _shares(d, a - b, eq(a, b)))
def logaddexp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b))."""
    return _unless_cancelled(_logaddexp, a, b)


def _logaddexp(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The larger summand, and what is added to it."""
    e = exp_nonpositive(-absolute(a - b))
    return where(a > b, a, b), where(eq(a, b), LN2[0], _log1p_of_fraction(e))


def _unless_cancelled(compute: Callable[[Expr, Expr], tuple[Expr, Expr]], a: Expr, b: Expr) -> Expr:
    """The sum of two numbers, which may cancel as the second is positive: then F32 is computed in F64."""
    most, more = compute(a, b)
    total = most + more
    if a.element is ElementKind.F64:
        return total
    exact = operator.add(*compute(convert(a, ElementKind.F64), convert(b, ElementKind.F64)))
    return rarely((most < 0) & (absolute(total) < 0.5), convert(exact, a.element), total)


@function(lambda d, y, a, b: _shares(d, (a - b) * LN2[0], eq(a, b)))
def logaddexp2(a: Expr, b: Expr) -> Expr:
    """log2(2^a + 2^b)."""
    return _unless_cancelled(_logaddexp2, a, b)


def _logaddexp2(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    return where(a > b, a, b), where(eq(a, b), 1.0, _log1p_of_fraction(_exp2_nonpositive(-absolute(a - b))) * LOG2_E[0])


@logaddexp.roughly
def _logaddexp_of_halves(a: Expr, b: Expr) -> Expr:
    """By an exponential that is not rough, as the sum may cancel."""
    e = exp_nonpositive.expansion(-absolute(a - b))
    return where(a > b, a, b) + where(eq(a, b), LN2[0], _log1p_roughly(e, e + 1.0))


@logaddexp2.roughly
def _logaddexp2_of_halves(a: Expr, b: Expr) -> Expr:
    e = _exp2_nonpositive(-absolute(a - b))
    return where(a > b, a, b) + where(eq(a, b), 1.0, _log1p_roughly(e, e + 1.0, LOG2_E[0]))


@function(lambda d, y, x: d * (y / x) * -0.5)
def rsqrt(x: Expr) -> Expr:
    """1 / sqrt(x), with one step of Newton's that knows all digits of x y²."""
    y = 1.0 / sqrt(x)
    product, error = two_product(x, y)
    missing = fma(-error, y, fma(-product, y, 1.0))
    return where(is_nan(missing), y, fma(y * 0.5, missing, y))


@rsqrt.roughly
def _rsqrt_roughly(x: Expr) -> Expr:
    tiny = x < 2.0**-100
    return rsqrt_roughly(where(tiny, x * 2.0**60, x)) * choose(tiny, 2.0**30, 1.0, x.element)


@function(lambda d, y, x: d / (y * y * 3.0))
def cbrt(x: Expr) -> Expr:
    """The bits give x^(-1/3) to a few digits, steps of Newton's all others."""
    size = absolute(x)
    tiny = size < by_element(x, 2.0**-90, 2.0**-900)
    a = where(tiny, size * 2.0**90, size)
    layout = format_of(x)
    guess = int((layout.bias * 4 / 3 - 0.0672836) * 2**layout.digits)  # least wrong with that
    inverse = bitcast(guess - mul_high(to_bits(a), (1 << layout.width) // 3 + 1), x.element)
    for order in by_element(x, (3,), (3, 1)):
        missing = fma(-(a * inverse * inverse), inverse, 1.0)
        inverse = fma(inverse * missing, polynomial(missing, (1 / 3, 2 / 9, 14 / 81)[:order]), inverse)
    root = a * inverse * inverse
    square, error = two_product(root, root)
    missing = fma(-error, root, fma(-square, root, a))
    root = fma(missing * (1 / 3), inverse * inverse, root)
    result = where(tiny, root * 2.0**-30, root)
    return where((size > 0) & (size < inf), with_sign(result, sign_bit(x)), x)


@cbrt.roughly
def _cbrt_roughly(x: Expr) -> Expr:
    """A third of the logarithm, which is rough by 2^-22 of at most 128."""
    size = absolute(x)
    return where(size > 0, with_sign(exp2_roughly(log2_roughly(size) * (1 / 3)), sign_bit(x)), x)


@function(lambda d, y, a, b: (d * (a / y), d * (b / y)))
def hypot(a: Expr, b: Expr) -> Expr:
    """sqrt(a² + b²), where neither square overflows or is lost."""
    a, b = absolute(a), absolute(b)
    most, least = where(a > b, a, b), where(a > b, b, a)
    limit, power = by_element(a, (2.0**60, 2.0**80), (2.0**500, 2.0**600))
    large, small = most > limit, most < 1 / limit
    down = where(large, 1 / power, choose(small, power, 1.0, a.element))
    up = where(large, power, choose(small, 1 / power, 1.0, a.element))
    x, y = most * down, least * down
    return where(eq(a, inf) | eq(b, inf), inf, sqrt(fma(x, x, y * y)) * up)


@hypot.roughly
def _hypot_roughly(a: Expr, b: Expr) -> Expr:
    """By a root that is rough, unless the square overflows or is next to zero."""
    square = fma(a, a, b * b)
    return rarely(~((square > 2.0**-100) & (square < inf)), hypot.expansion(a, b), square * rsqrt_roughly(square))


def _log_in_two(a: Expr) -> tuple[Expr, Expr]:
    """The logarithm of a positive number to half as many digits again: 2 artanh(s), s = f / (2 + f), with s and s³/3 in two numbers each."""
    k, f = _log_reduced(a, 0.5**0.5)
    whole = f + 2.0
    inverse = 1.0 / whole
    s = f * inverse
    s_low = fma(s, (whole - 2.0) - f, fma(-s, whole, f)) * inverse
    z, z_low = two_product(s, s)
    cube, cube_low = two_product(z, s)
    cube_low = fma(z_low + s * s_low * 2.0, s, fma(z, s_low, cube_low))
    third, third_low = parts((1 / 3, (1 / 3) * 2.0**-54), a, 2)
    cubic, cubic_low = two_product(cube, third)
    cubic_low = fma(cube_low, third, fma(cube, third_low, cubic_low))
    rest = fma(cube * z, polynomial(z, by_element(a, *_ARTANH)), cubic_low + s_low)
    # A multiple of the upper part of ln 2 is exact.
    upper = by_element(a, 45426 / 65536, 3048493539143 / 2.0**42)
    total, lost = fast_two_sum(k * upper, s * 2.0)
    total, more = fast_two_sum(total, cubic * 2.0)
    return fast_two_sum(total, fma(k, parts((*LN2, -upper), a, 1)[0], fma(rest, 2.0, lost + more)))


def _pow_gradient(d: Expr, y: Expr, x: Expr, exponent: Expr) -> tuple[Expr, Expr]:
    of_x = where(eq(exponent, 0), 0.0, d * (exponent * pow(x, exponent - 1.0)))
    return of_x, where(eq(x, 0) & (exponent >= 0), 0.0, d * (y * log(x)))


def _usual_power(x: Expr, y: Expr) -> Expr:
    """Of an F32 that is a normal number or zero, to a power below 2^22: by a logarithm in F64, whose error the product magnifies."""
    size, digits = absolute(x), format_of(x).digits
    k = _exponent(size, _LEAST[0])
    f = bitcast(to_bits(size) - (k << digits), x.element) - 1.0
    wide, rest = convert(f, ElementKind.F64), convert(polynomial(f, _LOG2_REST), ElementKind.F64)
    for each in reversed(_LOG2_FIRST):
        rest = fma(rest, wide, each)
    product = convert(y, ElementKind.F64) * fma(rest, wide, convert(k, ElementKind.F64))
    whole, bits = nearest(product, 1.0)
    n = _between(convert(bits, ElementKind.I32), -152, 129)
    p = exp_series(convert(product - whole, x.element) * LN2[0])
    of_zero = where(y < 0, inf, constant(0.0, x.element))
    return _power_as_in_c(x, y, where(eq(size, 0), of_zero, _scaled(p, n < 0, n)), _nearest_integer)


@function(_pow_gradient)
def pow(x: Expr, y: Expr) -> Expr:
    """x to the y as C has it."""
    if x.element is ElementKind.F64:
        return _power(x, y)
    size = absolute(x)
    is_usual = (eq(size, 0) | (size >= 2.0**-126)) & (size < inf) & (absolute(y) < 2.0**22)
    return rarely(~is_usual, _power(x, y), _usual_power(x, y))


def _power(x: Expr, y: Expr) -> Expr:
    """By a logarithm in two numbers."""
    size = absolute(x)
    log_high, log_low = _log_in_two(size)
    log_high = where(size < inf, where(size > 0, log_high, -inf), size)
    product, error = two_product(y, log_high)
    least, most = by_element(x, (-104.0, 89.0), (-746.0, 710.0))
    k, n, r = exp_reduced(_between(product, least, most))
    low = where((product > least) & (product < most), fma(y, log_low, error), 0.0)
    return _power_as_in_c(x, y, where(eq(size, 1), 1.0, _scaled(exp_series(r + low), k < 0, n)))


def _nearest_integer(x: Expr) -> Expr:
    return nearest(x, 1.0)[0]


def _power_as_in_c(x: Expr, y: Expr, power: Expr, rounded: Callable[[Expr], Expr] = trunc) -> Expr:
    """From that of the size of x."""
    whole, even = eq(rounded(y), y), eq(rounded(y * 0.5), y * 0.5)
    signed = with_sign(power, where(whole & ~even, sign_bit(x), 0))
    forbidden = (x < 0) & (absolute(x) < inf) & ~whole
    return where(eq(y, 0), 1.0, where(forbidden, nan, signed))


@pow.roughly
def _pow_roughly(x: Expr, y: Expr) -> Expr:
    """In two factors, so that neither overflows or is subnormal, of a logarithm that is not rough near 1: its error is multiplied."""
    size = absolute(x)
    f = size - 1.0
    log2_of_size = where(absolute(f) < 0.25, f * polynomial(f, _LOG2_NEAR), log2_roughly(size))
    root = exp2_roughly(y * 0.5 * log2_of_size)
    power = where(eq(size, 1), 1.0, root * root)
    return _power_as_in_c(x, y, power, _nearest_integer)  # a half that is too large for that is whole and even
