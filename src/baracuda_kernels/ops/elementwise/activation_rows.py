"""Activations: ops of one operand that neural networks are built of. At kinks the derivatives are PyTorch's."""

from __future__ import annotations

import math

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import LOG2_E, exp, exp_nonpositive, expm1, log1pexp, sigmoid
from baracuda_kernels.formula.functions.hyperbolic import cosh, tanh
from baracuda_kernels.formula.functions.pieces import polynomial, ratio, sign_bit, two_product, with_sign
from baracuda_kernels.formula.functions.powers import hypot
from baracuda_kernels.formula.operations import absolute, exp2_roughly, fma, rarely, reciprocal, rsqrt_roughly, sqrt, where
from baracuda_kernels.ops.elementwise.arithmetic import LEFT, times_sigmoid
from baracuda_kernels.ops.elementwise.gelu import gelu, gelu_tanh
from baracuda_kernels.ops.elementwise.rows import NUMBERS, Choice, ElementwiseRow, Parameter

__all__ = ["ROWS", "relu", "silu"]

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def relu(x: Expr) -> Expr:
    return where(x <= 0, 0, x)  # NaN stays


@function(lambda d, y, x: d * (sigmoid(x) * (1 + x * sigmoid(-x))))
def silu(x: Expr) -> Expr:
    return times_sigmoid(x, x)


def _tanh_softplus(x: Expr, e: Expr) -> Expr:
    """tanh(log(1 + exp(x))) from e = exp(-|x|), without cancellation."""
    left, right = fma(e, e, 2 * e), fma(e, 2, 1)
    return ratio(where(x < 0, left, right), where(x < 0, left + 2, fma(2 * e, e, right)))


def _mish_slope(x: Expr) -> Expr:
    t = _tanh_softplus(x, exp(-absolute(x)))
    return t + x * sigmoid(x) * ((1 - t) * (1 + t))


@function(lambda d, y, x: d * _mish_slope(x))
def mish(x: Expr) -> Expr:
    """Far to the left it is x exp(x), whose second factor would be too small to have all its digits."""
    bound, shift = LEFT[x.element]
    far = x < -bound
    found = x * _tanh_softplus(x, exp(where(far, x + shift, -absolute(x))))
    return where(far, found * math.exp(-shift), found)


@function(lambda d, y, x, beta, threshold: (where(x * beta > threshold, d, d * sigmoid(x * beta)), None, None))
def softplus(x: Expr, beta: Expr, threshold: Expr) -> Expr:
    """To the left it falls like exp(beta x), which would show the rounding of the product."""
    product, lost = two_product(x, beta)
    found = log1pexp(product)
    return where(product > threshold, x, where((product < 0) & (found > 0), fma(found, lost, found), found) * (1 / beta))


@softplus.roughly
def _softplus_roughly(x: Expr, beta: Expr, threshold: Expr) -> Expr:
    product = x * beta
    return where(product > threshold, x, log1pexp(product) * (1 / beta))


def _hardsigmoid(x: Expr) -> Expr:
    return where(x <= -3, 0, where(x >= 3, 1, (x + 3) / 6))


def _hardsigmoid_gradient(d: Expr, x: Expr) -> Expr:
    return where(absolute(x) < 3, d * (1 / 6), 0)


def _hardswish_gradient(d: Expr, x: Expr) -> Expr:
    return where(x <= -3, 0, where(x >= 3, d, d * fma(x, 1 / 3, 0.5)))


def _hardtanh(x: Expr, min_val: Expr, max_val: Expr) -> Expr:
    return where(x <= min_val, min_val, where(x >= max_val, max_val, x))


def _softshrink(x: Expr, lambd: Expr) -> Expr:
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))


# (x - tanh(x)) / x³ of x², |x| <= 1.
_TANHSHRINK = (
    0.333333343, -0.133334115, 0.0539782122, -0.0219129417, 0.00892493501, -0.00352734863, 0.00114942307, -0.000205670658,
)  # fmt: skip

_TANHSHRINK_ROUGH = (0.333330452, -0.133187875, 0.0527541041, -0.0181412734, 0.00365249859)


@function(lambda d, y, x: d * (tanh(x) * tanh(x)))
def tanhshrink(x: Expr) -> Expr:
    """x - tanh(x) is (x cosh(x) - sinh(x)) / cosh(x); where that cancels, the numerator is taken as a series of positive terms, or in f32
    the whole as a polynomial. Further on it is x - 1 + 2 / (exp(2 x) + 1), of which the difference is exact as long as it matters."""
    a = absolute(x)
    square = x * x
    if x.element is ElementKind.F32:
        near = x * (square * polynomial(square, _TANHSHRINK))
        e = exp_nonpositive(a * -2.0)
        return where(a < 1, near, with_sign((a - 1) + ratio(e + e, e + 1), sign_bit(x)))
    series = x * 0
    for k in range(12, 0, -1):
        series = fma(series, square, 2 * k / math.factorial(2 * k + 1))
    return where(a < 1, x * square * series / cosh(x), x - tanh(x))


@tanhshrink.roughly
def _tanhshrink_roughly(x: Expr) -> Expr:
    a = absolute(x)
    square = x * x
    e = exp2_roughly(a * (-2 * LOG2_E[0]))
    far = with_sign(fma(e + e, reciprocal(e + 1), a - 1), sign_bit(x))
    return where(a < 1, x * (square * polynomial(square, _TANHSHRINK_ROUGH)), far)


@function(lambda d, y, x, b: (d * (y / hypot(x, sqrt(b))), None))
def squareplus(x: Expr, b: Expr) -> Expr:
    root, half = 0.5 * hypot(x, sqrt(b)), 0.5 * x  # whose sum or difference does not overflow
    plain = where(x < 0, 0.25 * b / (root - half), half + root)
    if x.element is ElementKind.F64:
        return plain
    square = fma(x, x, b)
    inverse = rsqrt_roughly(square)
    root = square * inverse
    root = fma(fma(-root, root, square), 0.5 * inverse, root)
    return _unless_extreme(square, plain, where(x < 0, ratio(0.5 * b, root - x), 0.5 * (root + x)))


def _unless_extreme(square: Expr, otherwise: Expr, near: Expr) -> Expr:
    return rarely(~((square > 2.0**-100) & (square < 2.0**100)), otherwise, near)


@squareplus.roughly
def _squareplus_roughly(x: Expr, b: Expr) -> Expr:
    square = fma(x, x, b)
    root = square * rsqrt_roughly(square)
    near = where(x < 0, 0.5 * b * reciprocal(root - x), 0.5 * (root + x))
    return _unless_extreme(square, squareplus.expansion(x, b), near)


@function(lambda d, y, x: d / ((1 + absolute(x)) * (1 + absolute(x))))
def softsign(x: Expr) -> Expr:
    return x / (1 + absolute(x))


ALPHA, LAMBD = Parameter("alpha", 1.0), Parameter("lambd", 0.5)
ROWS = (
    ElementwiseRow("relu", relu, "x where it is positive, else 0.", NUMBERS),
    ElementwiseRow("relu6", lambda x: where(x <= 0, 0, where(x >= 6, 6, x)), "x limited to 0 and 6.", domain=((-2.0, 8.0),)),
    ElementwiseRow("leaky_relu", lambda x, negative_slope: where(x > 0, x, x * negative_slope), "x, times negative_slope where it is negative.",
        parameters=(Parameter("negative_slope", 0.01),)),
    ElementwiseRow("threshold", lambda x, threshold, value: where(x <= threshold, value, x), "x above the threshold, else the value.", NUMBERS,
        parameters=(Parameter("threshold", 0.0), Parameter("value", 0.0))),
    ElementwiseRow("hardtanh", _hardtanh, "x limited to min_val and max_val.", parameters=(Parameter("min_val", -1.0), Parameter("max_val", 1.0, least="min_val"))),
    ElementwiseRow("hardsigmoid", _hardsigmoid, "(x + 3) / 6, limited to 0 and 1.", gradient=_hardsigmoid_gradient),
    ElementwiseRow("hardswish", lambda x: x * _hardsigmoid(x), "x hardsigmoid(x).", gradient=_hardswish_gradient),
    ElementwiseRow("hardshrink", lambda x, lambd: where((x >= -lambd) & (x <= lambd), 0, x), "x where |x| > lambd, else 0.", parameters=(LAMBD,)),
    ElementwiseRow("softshrink", _softshrink, "x moved towards 0 by lambd, and 0 where |x| <= lambd.", parameters=(Parameter("lambd", 0.5, least=0.0),)),
    ElementwiseRow("sigmoid", sigmoid, "1 / (1 + exp(-x))."),
    ElementwiseRow("logsigmoid", lambda x: -log1pexp(-x), "log(sigmoid(x))."),
    ElementwiseRow("silu", silu, "x sigmoid(x)."),
    ElementwiseRow("gelu", gelu, "x times the normal distribution function of x; at -inf 0 (NaN in PyTorch).",
        choice=Choice("approximate", {"none": "gelu", "tanh": "gelu_tanh"})),
    ElementwiseRow("gelu_tanh", gelu_tanh, "gelu, approximated by tanh."),
    ElementwiseRow("mish", mish, "x tanh(softplus(x))."),
    ElementwiseRow("softplus", softplus, "log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold, as in PyTorch.",
        parameters=(Parameter("beta", 1.0), Parameter("threshold", 20.0))),
    ElementwiseRow("squareplus", squareplus, "(x + sqrt(x x + b)) / 2.", parameters=(Parameter("b", 4.0, "not negative"),)),
    ElementwiseRow("elu", lambda x, alpha: where(x > 0, x, alpha * expm1(x)), "x where it is positive, else alpha (exp(x) - 1).",
        parameters=(ALPHA,)),
    ElementwiseRow("celu", lambda x, alpha: where(x > 0, x, alpha * expm1(x * (1 / alpha))), "x where it is positive, else alpha (exp(x / alpha) - 1).",
        parameters=(ALPHA,)),
    ElementwiseRow("selu", lambda x: where(x > 0, SELU_SCALE * x, SELU_SCALE * SELU_ALPHA * expm1(x)),
        "scale · elu(x, alpha), with the constants of self-normalizing networks."),
    ElementwiseRow("softsign", softsign, "x / (1 + |x|)."),
    ElementwiseRow("tanhshrink", tanhshrink, "x - tanh(x)."),
)  # fmt: skip
