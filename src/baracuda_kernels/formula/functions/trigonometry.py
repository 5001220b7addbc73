"""Sines, tangents and angles.

An argument is n right angles and a rest r of at most half a right angle. Up to a limit, r is taken from x in three steps, which fma makes
exact but for the last digits. Beyond it, x times 2/π is computed in integers, from those bits of 2/π which matter for its exponent. Sines
in f32 take half turns from x instead: one longer polynomial costs less than two and a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, pi

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.fits import Coefficients
from baracuda_kernels.formula.functions.pieces import (
    HALF_PI,
    by_element,
    choose,
    fast_two_sum,
    format_of,
    nearest,
    parts,
    polynomial,
    ratio,
    root_roughly,
    sign_bit,
    to_bits,
    two_product,
    with_sign,
)
from baracuda_kernels.formula.functions.powers import hypot
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
# F32: (sin(r) / r - 1) / r² of r², |r| <= π/2, and (tan(r) / r - 1) / r², |r| <= π/4.
_SIN_OF_HALF_TURNS = (-0.166666597, 0.00833306927, -0.000198097769, 2.60609568e-06)
_SIN_ROUGH = (-0.166658521, 0.00831425656, -0.000185416124)
_TAN = (0.333331555, 0.133388355, 0.0534082018, 0.0244413931, 0.00310147437, 0.00939653441)
_TAN_ROUGH = (0.333153903, 0.136070207, 0.0413815826, 0.0431052968)
# (asin(t) - t) / t³ and (atan(t) - t) / t³ of t² <= 1/4.
_ASIN = (
    (0.166667536, 0.0749525875, 0.0454746671, 0.0241607204, 0.0421948694),
    (0.16666666666665378, 0.07500000000343379, 0.04464285682339964, 0.030381959331253417, 0.022371753565435366, 0.01735977010728711,
     0.013884610546521603, 0.012173190821743134, 0.006511262128390652, 0.019572739563953202, -0.016292191955872955, 0.0319576521267622),
)  # fmt: skip
_ASIN_ROUGH = (0.166801259, 0.0718997866, 0.0641073659)
_ACOS_ROUGH = (  # acos(1 - u) / sqrt(u), u <= 1/2 and u <= 1
    (1.41419828, 0.118181348, 0.0245002136, 0.012370077),
    (1.41422153, 0.117481276, 0.0292152297, 0.00127870508, 0.00859069824),
)
_ATAN_ROUGH = (-0.333088995, 0.196183044, -0.122514856, 0.0587700631, -0.0139550209)  # that of atan, |t| <= 1
_ATAN = (
    (-0.33333236, 0.199942946, -0.141758412, 0.10163974, -0.0513907783),
    (-0.33333333333332993, 0.19999999999905765, -0.14285714276599595, 0.11111110668183194, -0.0909089644338935, 0.07692076817913816,
     -0.06663838471173826, 0.058584765968384904, -0.05122753148468135, 0.041884955115160376, -0.02746540096341357, 0.010137209823492574),
)  # fmt: skip

PI = tuple(2 * each for each in HALF_PI)

Divided = Callable[[Expr, Expr], Expr]
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


def _is_far(x: Expr) -> Expr:
    return ~(absolute(x) < by_element(x, 2.0**16, 2.0**20))  # as is NaN


def _less_half_turns(x: Expr, k: Expr, share: float = 1.0) -> Expr:
    """x - k π times that share, in f32. No part of π is negative, so that zero keeps its sign."""
    for part in (3.1415925, 1.50995788e-07, 1.07806051e-14):
        x = fma(k, -part * share, x)
    return x


def _by_half_turns(x: Expr, quarter: int, coefficients: Coefficients) -> Expr:
    """The sine of x and so many right angles in f32, x not far: of r up to a right angle, as it is the same but for its sign."""
    k, n = nearest(fma(x, 1 / pi, 0.5), 1.0) if quarter else nearest(x, 1 / pi)
    r = _less_half_turns(x, k - 0.5 if quarter else k)
    return with_sign(r * polynomial(r * r, (1.0, *coefficients)), n << 31)


def _signed(reduced: Reduced, x: Expr) -> Reduced:
    """The angle with the sign of x, so that x itself is not needed any more."""
    n, r, low = reduced
    return where(x < 0, -n, n), with_sign(r, sign_bit(x)), with_sign(low, sign_bit(x))


def _sine(x: Expr, quarter: int, coefficients: Coefficients = _SIN_OF_HALF_TURNS) -> Expr:
    size = absolute(x)
    far, near = _far(size), _turned(_near(size), quarter)
    if not quarter:
        far, near = _signed(far, x), with_sign(near, sign_bit(x))  # which may be zero
    return rarely(_is_far(x), _turned(far, quarter), by_element(x, _by_half_turns(x, quarter, coefficients), near))


def _sin_gradient(d: Expr, y: Expr, x: Expr) -> Expr:
    return d * cos(x)


@function(_sin_gradient)
def sin(x: Expr) -> Expr:
    return _sine(x, 0)


@sin.roughly
def _sin_roughly(x: Expr) -> Expr:
    return _sine(x, 0, _SIN_ROUGH)


@function(lambda d, y, x: -(d * sin(x)))
def cos(x: Expr) -> Expr:
    return _sine(x, 1)


@cos.roughly
def _cos_roughly(x: Expr) -> Expr:
    return _sine(x, 1, _SIN_ROUGH)


def _quotient(reduced: Reduced, sign: Expr) -> Expr:
    """The tangent, of an angle with that sign."""
    n, r, low = reduced
    sine, cosine = _sine_and_cosine(r, low)
    odd = ne(n & 1, 0)
    return with_sign(where(odd, cosine, sine) / where(odd, sine, cosine), sign ^ (n << (format_of(r).width - 1)))


def _ratio_roughly(a: Expr, b: Expr) -> Expr:
    return a * reciprocal(b)


def _by_right_angles(x: Expr, coefficients: Coefficients, divided: Divided) -> Expr:
    """The tangent in f32, x not far: that of r, or -1 over it."""
    k, n = nearest(x, 2 / pi)
    r = _less_half_turns(x, k, 0.5)
    z = r * r
    t = fma(z * r, polynomial(z, coefficients), r)
    return where(ne(n & 1, 0), divided(constant(-1.0, x.element), t), t)


def _tangent(x: Expr, coefficients: Coefficients, divided: Divided) -> Expr:
    far, near = (_quotient(reduced(absolute(x)), sign_bit(x)) for reduced in (_far, _near))
    return rarely(_is_far(x), far, by_element(x, _by_right_angles(x, coefficients, divided), near))


@function(lambda d, y, x: d * fma(y, y, 1.0))
def tan(x: Expr) -> Expr:
    return _tangent(x, _TAN, ratio)


@tan.roughly
def _tan_roughly(x: Expr) -> Expr:
    return _tangent(x, _TAN_ROUGH, _ratio_roughly)


def _half_turns(x: Expr) -> Reduced:
    """The reduction of an angle that is given in half turns."""
    x = fma(rint(x * 0.5), -2.0, x)
    k, n = nearest(x, 2.0)
    return n, *_times_pi(fma(k, -0.5, x))


def _times_pi(x: Expr) -> tuple[Expr, Expr]:
    high, low = parts(PI, x, 2)
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
    return by_element(x, _sinc_in_f32, _sinc_by_sine)(x)


def _sinc_by_sine(x: Expr) -> Expr:
    return where(eq(x, 0), 1.0, sinpi(x) / (x * pi))


def _sinc_in_f32(x: Expr) -> Expr:
    return rarely(~(absolute(x) < 2.0**22), _sinc_by_sine(x), _sinc_near(x, _SIN_OF_HALF_TURNS, ratio))


def _sinc_near(x: Expr, coefficients: Coefficients, divided: Divided) -> Expr:
    """In f32, |x| < 2^22: the quotient of sin(π r) and π r, r = x - k, and that of r and x."""
    k, n = nearest(x, 1.0)
    r = x - k
    of_half_turns = tuple(each * pi ** (2 * power) for power, each in enumerate(coefficients, 1))
    y = with_sign(divided(r, x) * polynomial(r * r, (1.0, *of_half_turns)), n << 31)
    return where(absolute(x) < 2.0**-13, 1.0, y)


@sinc.roughly
def _sinc_roughly(x: Expr) -> Expr:
    """From 2^22 on multiples of a half are whole numbers."""
    return where(absolute(x) < 2.0**22, _sinc_near(x, _SIN_ROUGH, _ratio_roughly), x - x)


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


@asin.roughly
def _asin_roughly(x: Expr) -> Expr:
    a = absolute(x)
    u = 1.0 - a
    rest = with_sign(HALF_PI[0] - root_roughly(u) * polynomial(u, _ACOS_ROUGH[0]), sign_bit(x))
    return where(a < 0.5, x * polynomial(x * x, (1.0, *_ASIN_ROUGH)), rest)


@acos.roughly
def _acos_roughly(x: Expr) -> Expr:
    u = 1.0 - absolute(x)
    angle = root_roughly(u) * polynomial(u, _ACOS_ROUGH[1])
    return where(x < 0, PI[0] - angle, angle)


def _angle(a: Expr, b: Expr) -> Expr:
    """The angle of the point (b, a), both coordinates not negative: the tangent is reduced to 1/2 by turns of 45 and 90 degrees."""
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
    inverse = 1.0 / radius
    return d * (x * inverse * inverse), -(d * (y * inverse * inverse))


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


def _arc_roughly(t: Expr) -> Expr:
    return t * polynomial(t * t, (1.0, *_ATAN_ROUGH))


@atan2.roughly
def _atan2_roughly(y: Expr, x: Expr) -> Expr:
    """One polynomial up to 45 degrees, of a quotient by a number that was brought to where its reciprocal is good, and is not zero."""
    a, b = absolute(y), absolute(x)
    above = a > b
    most, least = where(above, a, b), where(above, b, a)
    scale = choose(most < 2.0**-60, 2.0**30, 2.0**-30, x.element)
    t = least * reciprocal(fma(most, scale, 2.0**-125)) * scale
    angle = _arc_roughly(where(eq(most, inf) & eq(least, inf), 1.0, t))
    angle = where(above, HALF_PI[0] - angle, angle)
    angle = where(to_bits(x) < 0, 2 * HALF_PI[0] - angle, angle)
    return with_sign(angle, sign_bit(y))


@atan.roughly
def _atan_roughly(x: Expr) -> Expr:
    a = absolute(x)
    steep = a > 1.0
    angle = _arc_roughly(where(steep, reciprocal(a), a))
    return with_sign(where(steep, HALF_PI[0] - angle, angle), sign_bit(x))
