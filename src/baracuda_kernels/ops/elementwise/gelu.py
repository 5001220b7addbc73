"""gelu, and what it is approximated by.

By symmetry gelu(x) = max(x, 0) - a Q(a), a = |x|, where Q is how much of the normal distribution lies beyond a. The derivative is
w = Q(a) - a q(a), q the density, to the left of 0, and 1 - w to the right. So nothing cancels, and the left tail keeps its digits.
For f32 Q has polynomials of its own, as `ndtr` would be computed in f64.
"""

from __future__ import annotations

from math import pi, sqrt

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.elementary import exp_nonpositive, exp_roughly, sigmoid
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions import function
from baracuda_kernels.formula.normal import ndtr
from baracuda_kernels.formula.operations import absolute, convert, fma, reciprocal, where
from baracuda_kernels.formula.pieces import polynomial, power_of_two, two_product
from baracuda_kernels.ops.elementwise.scalars import times_sigmoid

__all__ = ["gelu", "gelu_tanh"]

F64 = ElementKind.F64

# (1/2 - Q(a)) / a, of a², where a < 0.75; and (a + CENTRE) exp(a² / 2) Q(a), of (a - CENTRE) / (a + CENTRE), until Q is 0 in f32.
NEAR = (0.398942273, -0.0664901601, 0.00997150757, -0.00117932299, 0.000101408152)
FAR = (
    0.706656647, -0.433692108, 0.131988306, 0.00923736721, -0.01640715, -0.00159871316, 0.00262966183,
    0.000617950529, -0.000480429613,
)  # fmt: skip
CENTRE = 2.5
ROUGH_CENTRE = 3.0  # of one polynomial for all a, where halves are enough
ROUGH = (0.729090254, -0.509423511, 0.229870536, -0.0463550257, -0.0098148934, 0.0049511858)

SLOPE, CUBIC = 2 * sqrt(2 / pi), 0.044715  # the approximation is x sigmoid(SLOPE (x + CUBIC x³))


def _far(a: Expr) -> tuple[Expr, Expr, Expr]:
    """exp(a² / 2) Q(a) as a polynomial and 1 / (a + CENTRE), and by how much of itself their product is too small."""
    divisor = a + CENTRE
    inverse = reciprocal(divisor)
    return polynomial((a - CENTRE) * inverse, FAR), inverse, fma(-divisor, inverse, 1)


def _size(x: Expr) -> Expr:
    return where(absolute(x) > 40, 40, absolute(x))  # from where on Q is 0


def _left(a: Expr) -> Expr:
    """a Q(a) in f32. What rounding took from the four factors and their products is put back at the end."""
    square, square_lost = two_product(a, a)
    bell, (far, inverse, inverse_lost) = exp_nonpositive(-0.5 * square), _far(a)
    first, first_lost = two_product(a, far)
    second, second_lost = two_product(first, inverse)
    third, third_lost = two_product(second, bell)
    lost = fma(bell, fma(inverse, first_lost, second_lost), third_lost)
    lost = fma(third, fma(square_lost, -0.5, inverse_lost), lost)
    return where(a < 0.75, a * fma(-a, polynomial(square, NEAR), 0.5), third + lost)


def _slope(x: Expr) -> Expr:
    a = _size(x)
    square, lost = two_product(a, a)
    bell = exp_nonpositive(-0.5 * square)
    bell = fma(bell, -0.5 * lost, bell)
    if a.element is F64:
        beyond = ndtr(-a)
    else:
        far, inverse, _ = _far(a)
        beyond = where(a < 0.75, fma(-a, polynomial(square, NEAR), 0.5), bell * far * inverse)
    left = fma(a * (-1 / sqrt(2 * pi)), bell, beyond)
    return where(x < 0, left, 1 - left)


@function(lambda d, y, x: d * _slope(x))
def gelu(x: Expr) -> Expr:
    a = _size(x)
    return where(x <= 0, 0, x) - (a * ndtr(-a) if a.element is F64 else _left(a))


@gelu.roughly
def _gelu_roughly(x: Expr) -> Expr:
    a = where(absolute(x) > 14.3, 14.3, absolute(x))  # from where on Q is 0 in halves
    inverse = reciprocal(a + ROUGH_CENTRE)
    p, n = exp_roughly(a * a * -0.5)
    left = p * (a * inverse * polynomial((a - ROUGH_CENTRE) * inverse, ROUGH)) * power_of_two(n + 64, x) * 2.0**-64
    return where(x <= 0, 0, x) - left


def _tanh_slope(x: Expr) -> Expr:
    inside, slope = SLOPE * x * fma(CUBIC * x, x, 1), SLOPE * fma(3 * CUBIC * x, x, 1)
    return sigmoid(inside) * (1 + x * slope * sigmoid(-inside))


@function(lambda d, y, x: d * _tanh_slope(x))
def gelu_tanh(x: Expr) -> Expr:
    """The sigmoid's argument is taken in f64, and what f32 has no room for put back: the left tail would show it."""
    wide = convert(where(x < -40, -40, x), F64)
    exact = SLOPE * wide * fma(CUBIC * wide, wide, 1)
    inside = convert(exact, x.element)
    lost = convert(exact - convert(inside, F64), x.element)
    found = times_sigmoid(x, inside)
    return where(inside < 0, fma(found, lost, found), found)


@gelu_tanh.roughly
def _gelu_tanh_roughly(x: Expr) -> Expr:
    bounded = where(x < -40, -40, x)
    return times_sigmoid(x, SLOPE * bounded * fma(CUBIC * bounded, bounded, 1))
