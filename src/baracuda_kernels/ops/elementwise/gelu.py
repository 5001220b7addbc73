"""gelu, and what it is approximated by.

By symmetry gelu(x) = max(x, 0) - a Q(a), a = |x|, where Q is how much of the normal distribution lies beyond a. The derivative is
w = Q(a) - a q(a), q the density, to the left of 0, and 1 - w to the right. So nothing cancels, and the left tail keeps its digits.
For f32 Q has polynomials of its own, which take fewer steps than `ndtr`.
"""

from __future__ import annotations

from math import pi, sqrt

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import LOG2_E, exp_nonpositive, sigmoid
from baracuda_kernels.formula.functions.normal import ndtr
from baracuda_kernels.formula.functions.pieces import polynomial, two_product
from baracuda_kernels.formula.operations import absolute, convert, exp2_roughly, fma, reciprocal, where
from baracuda_kernels.ops.elementwise.arithmetic import times_sigmoid

__all__ = ["gelu", "gelu_tanh"]

F64 = ElementKind.F64

# (a + CENTRE) exp(a² / 2) Q(a), of a / (a + CENTRE), until Q is 0 in f32.
TAIL = (
    1.25, -1.24339223, 0.169607103, 0.291872144, 0.0559835508, -0.149512291, 0.137447283, -0.312654227, 0.279266864, -0.0796775594,
)  # fmt: skip
CENTRE = 2.5
ROUGH_CENTRE = 3.0  # of one polynomial for all a, where 16-bit floats are enough
ROUGH = (0.729090254, -0.509423511, 0.229870536, -0.0463550257, -0.0098148934, 0.0049511858)

SLOPE, CUBIC = 2 * sqrt(2 / pi), 0.044715  # the approximation is x sigmoid(SLOPE (x + CUBIC x³))


def _size(x: Expr) -> Expr:
    return where(absolute(x) > 40, 40, absolute(x))  # from where on Q is 0


def _bell(a: Expr) -> tuple[Expr, Expr]:
    """exp(-a² / 2) for the square as it is rounded, and by how much of itself that is off: far out it is much."""
    square, lost = two_product(a, a)
    return exp_nonpositive(-0.5 * square), -0.5 * lost


def _quotient(a: Expr) -> tuple[Expr, Expr]:
    """a / (a + CENTRE), and 1 / (a + CENTRE)."""
    divisor = a + CENTRE
    inverse = reciprocal(divisor)
    quotient = a * inverse
    return fma(fma(-divisor, quotient, a), inverse, quotient), inverse


def _left(a: Expr) -> Expr:
    """a Q(a) in f32. What rounding took from the factors and their products is put back at the end."""
    (bell, off), (part, _) = _bell(a), _quotient(a)
    tail, tail_lost = two_product(part, polynomial(part, TAIL))
    product, lost = two_product(tail, bell)
    return product + fma(product, off, fma(bell, tail_lost, lost))


def _slope(x: Expr) -> Expr:
    a = _size(x)
    bell, off = _bell(a)
    bell = fma(bell, off, bell)
    if a.element is F64:
        beyond = ndtr(-a)
    else:
        part, inverse = _quotient(a)
        beyond = bell * polynomial(part, TAIL) * inverse
    left = fma(a * (-1 / sqrt(2 * pi)), bell, beyond)
    return where(x < 0, left, 1 - left)


@function(lambda d, y, x: d * _slope(x))
def gelu(x: Expr) -> Expr:
    a = _size(x)
    return where(x <= 0, 0, x) - (a * ndtr(-a) if a.element is F64 else _left(a))


@gelu.roughly
def _gelu_roughly(x: Expr) -> Expr:
    a = where(absolute(x) > 14.3, 14.3, absolute(x))  # from where on Q is 0 in 16-bit floats
    inverse = reciprocal(a + ROUGH_CENTRE)
    bell = exp2_roughly(fma(a * a, -0.5 * LOG2_E[0], 64))  # 2^64 times as large, so that none is subnormal
    left = bell * (a * inverse * polynomial((a - ROUGH_CENTRE) * inverse, ROUGH))
    return fma(left, -(2.0**-64), where(x <= 0, 0, x))


def _tanh_slope(x: Expr) -> Expr:
    inside, slope = SLOPE * x * fma(CUBIC * x, x, 1), SLOPE * fma(3 * CUBIC * x, x, 1)
    return sigmoid(inside) * (1 + x * slope * sigmoid(-inside))


@function(lambda d, y, x: d * _tanh_slope(x))
def gelu_tanh(x: Expr) -> Expr:
    """The sigmoid's argument is taken in f64, and what f32 cannot hold is added back: the left tail would show it."""
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
