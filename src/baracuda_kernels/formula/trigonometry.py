"""Sines, tangents and angles.

An argument is n right angles and a rest r of at most half a right angle. Up to a limit, r is taken from x in three steps, which fma makes
exact but for the last digits. Beyond it, x times 2/π is computed in integers, from those bits of 2/π which matter for its exponent.
"""

from __future__ import annotations

from math import factorial, inf, pi

from baracuda_kernels.formula.elementary import hypot
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.operations import (
    absolute,
    convert,
    eq,
    fma,
    mul_high,
    ne,
    rarely,
    reciprocal,
    rint,
    shr_logical,
    sqrt,
    where,
)
from baracuda_kernels.formula.pieces import (
    HALF_PI,
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

__all__ = ["acos", "asin", "atan", "atan2", "cos", "cospi", "sin", "sinc", "sinpi", "tan"]

TWO_OVER_PI = int(  # times 2^1280
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB"
    "4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7"
    "EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361D",
    16,
)

# (sin(r) - r) / r³ and (cos(r) - 1 + r²/2) / r⁴ of r², |r| <= π/4.
_SIN = (
    (-0.166666552, 0.0083321901, -0.000195184155),
    (-0.16666666666666632, 0.008333333333322443, -0.00019841269829798744, 2.755731368185683e-06, -2.5050755816942352e-08,
     1.5896632567530564e-10),
)  # fmt: skip
_COS = (
    (0.0416666456, -0.0013887306, 2.4431738e-05),
    (0.0416666666666666, -0.0013888888888874448, 2.4801587289641504e-05, -2.7557314389045333e-07, 2.087572727656686e-09,
     -1.1359813994323324e-11),
)  # fmt: skip
_SIN_ROUGH, _COS_ROUGH = (-0.166631207, 0.00815645047), (0.0416608378, -0.00136429979)
# (asin(t) - t) / t³ and (atan(t) - t) / t³ of t² <= 1/4.
_ASIN = (
    (0.166667536, 0.0749525875, 0.0454746671, 0.0241607204, 0.0421948694),
    (0.16666666666665378, 0.07500000000343379, 0.04464285682339964, 0.030381959331253417, 0.022371753565435366, 0.01735977010728711,
     0.013884610546521603, 0.012173190821743134, 0.006511262128390652, 0.019572739563953202, -0.016292191955872955, 0.0319576521267622),
)  # fmt: skip
_ATAN_ROUGH = (-0.333088995, 0.196183044, -0.122514856, 0.0587700631, -0.0139550209)  # the same, |t| <= 1
_ATAN = (
    (-0.33333236, 0.199942946, -0.141758412, 0.10163974, -0.0513907783),
    (-0.33333333333332993, 0.19999999999905765, -0.14285714276599595, 0.11111110668183194, -0.0909089644338935, 0.07692076817913816,
     -0.06663838471173826, 0.058584765968384904, -0.05122753148468135, 0.041884955115160376, -0.02746540096341357, 0.010137209823492574),
)  # fmt: skip

Reduced = tuple[Expr, Expr, Expr]  # n, of which the two lowest bits count, and r in two numbers


def _near(a: Expr) -> Reduced:
    k, n = nearest(a, 2 / pi)
    first, second, third = parts(HALF_PI, a, 3)
    rest = fma(k, -first, a)
    r = fma(k, -second, rest)
    taken, lost = fast_two_sum(rest, -r)
    return n, r, fma(k, -third, fma(k, -second, taken) + lost)


def _high_product(m: Expr, word: Expr) -> Expr:
    """The upper half of the product with a word that has no sign; m is positive."""
    return mul_high(m, word) + (m & (word >> (8 * m.element.size - 1)))


def _far(a: Expr) -> Reduced:
    """Of a = m 2^e, from the product of m and three words of 2/π. The bits before them stand for whole turns."""
    layout = format_of(a)
    width, digits, sign = layout.width, layout.digits, layout.sign
    ahead = by_element(a, 16, 48)  # zeros before the first bit of 2/π, as many as the least exponent asks for and a few
    steps = by_element(a, (2, 1), (8, 4, 2, 1))
    words = (TWO_OVER_PI >> (1280 + ahead - width * (place + 1)) for place in range(2 * steps[0] + 3))
    window = [constant((word - sign) % (1 << width) + sign, layout.integer) for word in words]
    # The bits that matter begin there: first whole words are left behind, then bits.
    there = shr_logical(to_bits(a), digits) - (layout.bias + digits + 2 - ahead)
    for step in steps:
        beyond = ne(there & (step * width), 0)
        window = [where(beyond, window[place + step], window[place]) for place in range(step + 3)]
    shift = there & (width - 1)
    back = (width - 1) - shift
    high, middle, low = ((window[place] << shift) | shr_logical(shr_logical(window[place + 1], 1), back) for place in range(3))
    # The product, in units of four right angles: `top`, and all bits of `below` but its first, which is carried.
    m = (to_bits(a) & ((1 << digits) - 1)) | (1 << digits)
    below = shr_logical(m * middle, 1) + shr_logical(_high_product(m, low), 1)
    top = m * high + _high_product(m, middle) + shr_logical(below, width - 1)
    n = shr_logical(top + (1 << (width - 3)), width - 2)
    # The fraction of a right angle, from -1/2 to 1/2: as many bits as a float has, then the others.
    fraction = (top << 2) | shr_logical(below << 1, width - 2)
    spare = width - digits - 1
    others = ((fraction & ((1 << spare) - 1)) << digits) | shr_logical(below << 3, spare + 1)
    f = convert(fraction >> spare, a.element) * 2.0 ** -(digits + 1)
    f_low = convert(others, a.element) * 2.0 ** -(width + digits)
    first, second = parts(HALF_PI, a, 2)
    r, error = two_product(f, first)
    return n, r + (a - a), fma(f_low, first, fma(f, second, error))  # NaN of an infinity


def _right_angles(a: Expr) -> Reduced:
    is_far = ~(a < by_element(a, 2.0**16, 2.0**20))  # as is NaN
    n, r, low = (rarely(is_far, rare, usual) for rare, usual in zip(_far(a), _near(a), strict=True))
    return n, r, low


def _sine_and_cosine(r: Expr, low: Expr) -> tuple[Expr, Expr]:
    z = r * r
    sine = r + fma(z * r, polynomial(z, by_element(r, *_SIN)), low)
    half = z * 0.5
    unit = 1.0 - half
    lost = (1.0 - unit) - half
    cosine = unit + fma(z * z, polynomial(z, by_element(r, *_COS)), fma(-r, low, lost))
    return sine, cosine


def _turned(reduced: Reduced, quarter: int) -> Expr:
    """The sine of so many right angles more."""
    n, r, low = reduced
    n = n + quarter if quarter else n
    sine, cosine = _sine_and_cosine(r, low)
    return with_sign(where(ne(n & 1, 0), cosine, sine), (n & 2) << (format_of(r).width - 2))


def _sin_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * cos(x)


@function(_sin_gradient)
def sin(x: Expr) -> Expr:
    return with_sign(_turned(_right_angles(absolute(x)), 0), sign_bit(x))


@function(lambda d, y, x: -(d * sin(x)))
def cos(x: Expr) -> Expr:
    return _turned(_right_angles(absolute(x)), 1)


@function(lambda d, y, x: d * fma(y, y, 1.0))
def tan(x: Expr) -> Expr:
    n, r, low = _right_angles(absolute(x))
    sine, cosine = _sine_and_cosine(r, low)
    odd = ne(n & 1, 0)
    return with_sign(where(odd, cosine, sine) / where(odd, sine, cosine), sign_bit(x) ^ (n << (format_of(x).width - 1)))


def _roughly_turned(x: Expr, quarter: int) -> tuple[Expr, Expr, Expr]:
    """n of an angle of any sign but its own, and the sine and the cosine of r, for halves."""
    a = absolute(x)
    k, n = nearest(a, 2 / pi)
    r = a
    for part in parts(HALF_PI, a, 3):
        r = fma(k, -part, r)
    far_n, far_r, low = _far(a)
    is_far = ~(a < 2.0**16)
    n, r = rarely(is_far, far_n, n), rarely(is_far, far_r + low, r)
    z = r * r
    sine = fma(z * r, polynomial(z, _SIN_ROUGH), r)
    return n + quarter if quarter else n, sine, fma(z, polynomial(z, (-0.5, *_COS_ROUGH)), 1.0)


def _rough_sine(x: Expr, quarter: int) -> Expr:
    n, sine, cosine = _roughly_turned(x, quarter)
    return with_sign(where(ne(n & 1, 0), cosine, sine), (n & 2) << (format_of(x).width - 2))


@sin.roughly
def _sin_roughly(x: Expr) -> Expr:
    return with_sign(_rough_sine(x, 0), sign_bit(x))


@cos.roughly
def _cos_roughly(x: Expr) -> Expr:
    return _rough_sine(x, 1)


@tan.roughly
def _tan_roughly(x: Expr) -> Expr:
    n, sine, cosine = _roughly_turned(x, 0)
    odd = ne(n & 1, 0)
    ratio = where(odd, cosine, sine) * reciprocal(where(odd, sine, cosine))
    return with_sign(ratio, sign_bit(x) ^ (n << (format_of(x).width - 1)))


def _half_turns(x: Expr) -> Reduced:
    """Of an angle that is given in half turns."""
    x = fma(rint(x * 0.5), -2.0, x)
    k, n = nearest(x, 2.0)
    return n, *_times_pi(fma(k, -0.5, x))


def _times_pi(x: Expr) -> tuple[Expr, Expr]:
    high, low = parts((HALF_PI[0] * 2, HALF_PI[1] * 2), x, 2)
    product, error = two_product(x, high)
    return product, fma(x, low, error)


def _sinpi_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * (cospi(x) * pi)


@function(_sinpi_gradient)
def sinpi(x: Expr) -> Expr:
    """sin(π x)."""
    return with_sign(_turned(_half_turns(absolute(x)), 0), sign_bit(x))


@function(lambda d, y, x: d * (sinpi(x) * -pi))
def cospi(x: Expr) -> Expr:
    """cos(π x)."""
    return _turned(_half_turns(absolute(x)), 1)


def _sinc_slope(x: Expr, y: Expr) -> Expr:
    """Near zero both terms of the quotient are alike, and the series takes its place."""
    series = tuple((-1) ** n * pi ** (2 * n) * 2 * n / factorial(2 * n + 1) for n in range(1, by_element(x, 7, 11)))
    return where(absolute(x) < 0.5, x * polynomial(x * x, series), (cospi(x) - y) / x)


@function(lambda d, y, x: d * _sinc_slope(x, y))
def sinc(x: Expr) -> Expr:
    """sin(π x) / (π x)."""
    return where(eq(x, 0), 1.0, sinpi(x) / (x * pi))


def _asin_reduced(a: Expr) -> tuple[Expr, Expr, Expr]:
    """Whether a > 1/2, and in two numbers then asin(sqrt((1 - a) / 2)), else asin(a)."""
    over = a > 0.5
    z = where(over, fma(a, -0.5, 0.5), a * a)
    t = where(over, sqrt(z), a)
    return over, t, z * t * polynomial(z, by_element(a, *_ASIN))


@function(lambda d, y, x: d / sqrt((1.0 - x) * (x + 1.0)))
def asin(x: Expr) -> Expr:
    over, t, rest = _asin_reduced(absolute(x))
    high, low = parts(HALF_PI, x, 2)
    return with_sign(where(over, fma(t, -2.0, high) - fma(rest, 2.0, -low), t + rest), sign_bit(x))


@function(lambda d, y, x: -(d / sqrt((1.0 - x) * (x + 1.0))))
def acos(x: Expr) -> Expr:
    over, t, rest = _asin_reduced(absolute(x))
    part = t + rest
    high, low = parts(HALF_PI, x, 2)
    signed = with_sign(part, sign_bit(x))
    turned = where(x < 0, high * 2 - fma(part, 2.0, low * -2), part * 2.0)
    return where(over, turned, high - (signed - low))


def _angle(a: Expr, b: Expr) -> Expr:
    """Of the point (b, a), neither coordinate negative: the tangent is brought down to 1/2 by turns of 45 and 90 degrees."""
    above = a > b
    least, most = where(above, b, a), where(above, a, b)
    middle = least + least > most
    t = where(middle, least - most, least) / where(middle, least + most, most)
    z = t * t
    part = fma(z * t, polynomial(z, by_element(t, *_ATAN)), t)
    high, low = parts(HALF_PI, a, 2)
    part = where(middle, high / 2 + (part + low / 2), part)
    return where(above, high - (part - low), part)


@function(lambda d, y, x: d / fma(x, x, 1.0))
def atan(x: Expr) -> Expr:
    return with_sign(_angle(absolute(x), constant(1.0, x.element)), sign_bit(x))


def _atan2_gradient(d: Expr, angle: Expr, y: Expr, x: Expr) -> tuple[Expr, Expr]:
    radius = hypot(x, y)
    radius = where(eq(radius, 0), 1.0, radius)  # of the origin zero
    return d * (x / radius / radius), -(d * (y / radius / radius))


@function(_atan2_gradient)
def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y)."""
    a, b = absolute(y), absolute(x)
    most = where(a > b, a, b)
    # Coordinates whose sum would overflow are made smaller, infinite ones 1 and finite ones beside them 0, and the origin has the angle 0.
    scale = choose(most > by_element(x, 2.0**126, 2.0**1022), 0.25, 1.0, x.element)
    endless = eq(most, inf)
    a, b = (where(endless, where(eq(each, inf), 1.0, each * 0.0), each * scale) for each in (a, b))
    angle = _angle(a, where(eq(most, 0), 1.0, b))
    high, low = parts(HALF_PI, x, 2)
    angle = where(to_bits(x) < 0, high * 2 - (angle - low * 2), angle)
    return with_sign(angle, sign_bit(y))


@atan2.roughly
def _atan2_roughly(y: Expr, x: Expr) -> Expr:
    """One polynomial up to 45 degrees, of a quotient of numbers that were brought to where a reciprocal is good."""
    a, b = absolute(y), absolute(x)
    most, least = where(a > b, a, b), where(a > b, b, a)
    scale = where(most > 2.0**100, 2.0**-30, choose(most < 2.0**-100, 2.0**60, 1.0, x.element))
    t = (least * scale) * reciprocal(where(eq(most, 0), 1.0, most * scale))
    t = where(eq(most, inf), where(eq(least, inf), 1.0, least * 0.0), t)  # NaN stays what it is
    z = t * t
    angle = fma(z * t, polynomial(z, _ATAN_ROUGH), t)
    angle = where(a > b, HALF_PI[0] - angle, angle)
    angle = where(to_bits(x) < 0, 2 * HALF_PI[0] - angle, angle)
    return with_sign(angle, sign_bit(y))


@atan.roughly
def _atan_roughly(x: Expr) -> Expr:
    return _atan2_roughly(x, constant(1.0, x.element))
