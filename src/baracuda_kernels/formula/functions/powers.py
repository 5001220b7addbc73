"""Roots and powers: steps of Newton's from a guess, and exponentials of logarithms that have more digits than the result."""

from __future__ import annotations

from math import inf, nan

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import (
    LEAST,
    between,
    exp_reduced,
    exp_series,
    exponent_of,
    log,
    log_reduced,
    scaled,
)
from baracuda_kernels.formula.functions.pieces import (
    LN2,
    by_element,
    choose,
    fast_two_sum,
    format_of,
    nearest,
    parts,
    polynomial,
    sign_bit,
    to_bits,
    two_product,
    with_sign,
)
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
    rsqrt_roughly,
    sqrt,
    trunc,
    where,
)

__all__ = ["cbrt", "hypot", "pow", "rsqrt"]

_LOG2_NEAR = (  # log2(1 + f) / f of F32, |f| <= 0.26
    1.44269502, -0.721347451, 0.480910897, -0.360693187, 0.287563831, -0.23930724, 0.22920765, -0.20348452,
)  # fmt: skip
# log2(1 + f) / f, 1 + f from 2/3 to 4/3: the first terms in F64, of the others F32 is enough.
_LOG2_FIRST = (1.4426950408923274, -0.7213475195693089, 0.4808983439634748, -0.36067397861541556, 0.28853944154002265)
_LOG2_REST = (-0.24043366, 0.206075981, -0.180806064, 0.160891102, -0.137461103, 0.123563806, -0.166105273, 0.157538815)
# (artanh(s) - s - s³/3) / s⁵ of z = s², |s| <= (√2 - 1) / (√2 + 1).
_ARTANH = (
    (0.200000763, 0.142735451, 0.117097773),
    (0.2000000000000112, 0.1428571428505327, 0.11111111259425167, 0.09090892224357275, 0.07693377008703745, 0.06628443445272647,
     0.06597872198861504),
)  # fmt: skip


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
    k, f = log_reduced(a, 0.5**0.5)
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


def _usual_power(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Of F32, by a logarithm in F64, whose error the product magnifies; and where that holds: where x and the result are normal numbers, or
    both are zero, and the power is below 2^22."""
    size, digits = absolute(x), format_of(x).digits
    k = exponent_of(size, LEAST[0])
    f = bitcast(to_bits(size) - (k << digits), x.element) - 1.0
    wide, rest = convert(f, ElementKind.F64), convert(polynomial(f, _LOG2_REST), ElementKind.F64)
    for each in reversed(_LOG2_FIRST):
        rest = fma(rest, wide, each)
    product = convert(y, ElementKind.F64) * fma(rest, wide, convert(k, ElementKind.F64))
    whole, bits = nearest(product, 1.0)
    n = convert(bits, ElementKind.I32)
    p = exp_series(convert(product - whole, x.element) * LN2[0])
    power = bitcast(to_bits(p) + (n << digits), x.element)  # 2^n p
    is_zero, is_normal = eq(size, 0) & (y > 0), (size >= 2.0**-126) & (n > -126) & (n < 127)
    is_usual = (is_zero | is_normal) & (size < inf) & (absolute(y) < 2.0**22)
    integer, last = nearest(y, 1.0)
    is_whole = eq(integer, y)
    signed = with_sign(where(is_zero, 0.0, power), where(is_whole, _sign_left(x, last), 0))
    return where((x < 0) & ~is_whole, nan, signed), is_usual


@function(_pow_gradient)
def pow(x: Expr, y: Expr) -> Expr:
    """x to the y as C has it."""
    if x.element is ElementKind.F64:
        return _power(x, y)
    power, is_usual = _usual_power(x, y)
    return rarely(~is_usual, _power(x, y), power)


def _power(x: Expr, y: Expr) -> Expr:
    """x to the power of y, by a logarithm in two numbers."""
    size = absolute(x)
    log_high, log_low = _log_in_two(size)
    log_high = where(size < inf, where(size > 0, log_high, -inf), size)
    product, error = two_product(y, log_high)
    least, most = by_element(x, (-104.0, 89.0), (-746.0, 710.0))
    _, n, r = exp_reduced(between(product, least, most))
    low = where((product > least) & (product < most), fma(y, log_low, error), 0.0)
    power = where(eq(size, 1), 1.0, scaled(exp_series(r + low), n))
    return _power_as_in_c(x, y, power, *_whole_and_sign(x, y))


def _whole_and_sign(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Whether y is an integer, and the sign that x to the y has then."""
    whole, even = eq(trunc(y), y), eq(trunc(y * 0.5), y * 0.5)
    return whole, where(whole & ~even, sign_bit(x), 0)


def _power_as_in_c(x: Expr, y: Expr, power: Expr, whole: Expr, sign: Expr) -> Expr:
    """The power from that of |x|, whether y is an integer, and the sign."""
    forbidden = (x < 0) & (absolute(x) < inf) & ~whole
    return where(eq(y, 0), 1.0, where(forbidden, nan, with_sign(power, sign)))


def _sign_left(x: Expr, power: Expr) -> Expr:
    """The sign of x if the last bit of the power is odd, else none."""
    return (power << (format_of(x).width - 1)) & to_bits(x)


@pow.roughly
def _pow_roughly(x: Expr, y: Expr) -> Expr:
    """In two factors, so that neither overflows or is subnormal, of a logarithm that is not rough near 1: its error is multiplied."""
    size = absolute(x)
    f = size - 1.0
    log2_of_size = where(absolute(f) < 0.25, f * polynomial(f, _LOG2_NEAR), log2_roughly(size))
    root = exp2_roughly(y * 0.5 * log2_of_size)
    power = where(eq(size, 1), 1.0, root * root)
    if y.operation != "input":  # what is read is a 16-bit float where results are; this may have more digits
        return _power_as_in_c(x, y, power, *_whole_and_sign(x, y))
    integer, last = nearest(y, 1.0)  # a 16-bit float that is too large for that is whole and even
    is_whole = eq(integer, y)
    return _power_as_in_c(x, y, power, is_whole, where(is_whole, _sign_left(x, last), 0))
