"""The gradients of every differentiable op as in textbooks, in float64; at kinks as in PyTorch.

Each takes the gradient of the result, the operands and the parameters, and gives a gradient for each operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import exp, log, sqrt, where
from scipy import special

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.elementwise.reference_values import REFERENCES, SELU_ALPHA, SELU_SCALE

__all__ = ["GRADIENTS"]

Gradient = Callable[..., tuple[Any, ...]]


def _slope(derivative: Callable[..., Any]) -> Gradient:
    """The gradient of a unary op, from its derivative."""
    return lambda d, *given: (d * derivative(*given),)


def _slopes(*derivatives: Callable[..., Any]) -> Gradient:
    """The gradients from the derivatives with respect to each operand."""
    return lambda d, *given: tuple(d * derivative(*given) for derivative in derivatives)


def _flat(d: Any, x: Any, *parameters: float) -> tuple[Any]:
    """The gradient of a step function: 0."""
    return (numpy.zeros_like(x),)


def _reduce_precision(d: Any, *bits: float) -> Any:
    return REFERENCES["reduce_precision"](ElementKind.F64, d, *bits)


def _sinc(x: Any) -> Any:
    """Around 0, where the two terms cancel, by the series."""
    near = numpy.abs(x) < 0.3
    z = where(near, 1.0, x)
    series = sum((-1) ** k * 2 * k * numpy.pi ** (2 * k) * x ** (2 * k - 1) / special.factorial(2 * k + 1) for k in range(1, 10))
    return where(near, series, (numpy.cos(numpy.pi * z) - numpy.sinc(z)) / z)


def _density(x: Any) -> Any:
    return exp(-x * x / 2) / sqrt(2 * numpy.pi)


def _gelu(x: Any) -> Any:
    return special.ndtr(x) + x * _density(x)


def _gelu_tanh(x: Any) -> Any:
    slope = 2 * sqrt(2 / numpy.pi)
    inside = slope * (x + 0.044715 * x**3)
    return special.expit(inside) * (1 + x * special.expit(-inside) * slope * (1 + 3 * 0.044715 * x * x))


def _silu(x: Any) -> Any:
    return special.expit(x) * (1 + x * special.expit(-x))


def _mish(x: Any) -> Any:
    soft = numpy.logaddexp(0, x)
    return numpy.tanh(soft) + x * special.expit(x) / numpy.cosh(numpy.minimum(soft, 300)) ** 2


def _hardswish(x: Any) -> Any:
    return where(x <= -3, 0, where(x < 3, x / 3 + 0.5, 1.0))


def _logit(x: Any, eps: float) -> Any:
    if numpy.isnan(eps):
        return where((x < 0) | (x > 1), numpy.nan, 1 / (x * (1 - x)))
    return where((x < eps) | (x > 1 - eps), 0, 1 / (x * (1 - x)))


def _ties(d: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """The gradient goes to the larger operand; half to each where they are equal."""
    share = where(first == second, d / 2, d)
    return where(first < second, 0, share), where(first > second, 0, share)


def _chosen(takes_first: Callable[[Any, Any], Any]) -> Gradient:
    return lambda d, x, y: (where(takes_first(x, y) | numpy.isnan(y), d, 0), where(takes_first(x, y) | numpy.isnan(y), 0, d))


def _pow(x: Any, y: Any) -> tuple[Any, Any]:
    return where(y == 0, 0, y * x ** (y - 1)), where((x == 0) & (y >= 0), 0, x**y * log(x))


def _power(d: Any, x: Any, y: Any) -> tuple[Any, Any]:
    of_base, of_exponent = _pow(x, y)
    return d * of_base, d * of_exponent


def _atan2(d: Any, x: Any, y: Any) -> tuple[Any, Any]:
    square = x * x + y * y
    return where(square == 0, 0, d * y / square), where(square == 0, 0, -d * x / square)


def _clamp(d: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    return where((x >= low) & (x <= high), d, 0), where((x < low) & (low < high), d, 0), where((x > high) | (low > high), d, 0)


def _beta(d: Any, x: Any, y: Any) -> tuple[Any, Any]:
    found, both = special.beta(x, y), special.digamma(x + y)
    return d * found * (special.digamma(x) - both), d * found * (special.digamma(y) - both)


def _betainc(d: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """The gradient with respect to x alone; for a and b there is no formula."""
    nothing = numpy.full_like(a, numpy.nan)
    return nothing, nothing, d * x ** (a - 1) * (1 - x) ** (b - 1) / special.beta(a, b)


def _logaddexp2(x: Any, y: Any) -> Any:
    return special.expit((x - y) * numpy.log(2))


GRADIENTS: dict[str, Gradient] = {
    **dict.fromkeys(("imag", "angle", "sign", "sgn", "floor", "ceil", "round", "round_decimals", "trunc"), _flat),
    "neg": _slope(lambda x: -1.0), **dict.fromkeys(("positive", "conj", "real"), _slope(lambda x: 1.0)), "abs": _slope(numpy.sign),
    "reciprocal": _slope(lambda x: -1 / (x * x)), "square": _slope(lambda x: 2 * x), "sqrt": _slope(lambda x: 0.5 / sqrt(x)),
    "rsqrt": _slope(lambda x: -0.5 * x**-1.5),
    "cbrt": _slope(lambda x: 1 / (3 * numpy.cbrt(x) ** 2)), "integer_pow": _slope(lambda x, n: _pow(x, n)[0]),
    "deg2rad": _slope(lambda x: numpy.pi / 180), "rad2deg": _slope(lambda x: 180 / numpy.pi), "frac": _slope(lambda x: 1.0),
    "mantissa": _slope(lambda x: numpy.ldexp(1.0, -numpy.frexp(x)[1])),
    "nan_to_num": _slope(lambda x, *_: numpy.isfinite(x)), "reduce_precision": lambda d, x, *bits: (_reduce_precision(d, *bits),),
    "exp": _slope(exp), "exp2": _slope(lambda x: numpy.exp2(x) * log(2)), "expm1": _slope(exp), "log": _slope(lambda x: 1 / x),
    "log2": _slope(lambda x: 1 / (x * log(2))), "log10": _slope(lambda x: 1 / (x * log(10))),
    "log1p": _slope(lambda x: 1 / (1 + x)), "log1mexp": _slope(lambda x: 1 / numpy.expm1(x)),
    "logit": _slope(_logit), "entr": _slope(lambda x: -1 - log(x)),
    "sin": _slope(numpy.cos), "cos": _slope(lambda x: -numpy.sin(x)), "tan": _slope(lambda x: 1 / numpy.cos(x) ** 2),
    "asin": _slope(lambda x: 1 / sqrt((1 - x) * (1 + x))), "acos": _slope(lambda x: -1 / sqrt((1 - x) * (1 + x))),
    "atan": _slope(lambda x: 1 / (1 + x * x)), "sinh": _slope(numpy.cosh), "cosh": _slope(numpy.sinh),
    "tanh": _slope(lambda x: 1 / numpy.cosh(x) ** 2), "asinh": _slope(lambda x: 1 / numpy.hypot(1, x)),
    "acosh": _slope(lambda x: 1 / sqrt(x * x - 1)), "atanh": _slope(lambda x: 1 / ((1 - x) * (1 + x))), "sinc": _slope(_sinc),
    "erf": _slope(lambda x: 2 / sqrt(numpy.pi) * exp(-x * x)), "erfc": _slope(lambda x: -2 / sqrt(numpy.pi) * exp(-x * x)),
    "erfcx": _slope(lambda x: 2 * x * special.erfcx(x) - 2 / sqrt(numpy.pi)),
    "erfinv": _slope(lambda x: sqrt(numpy.pi) / 2 * exp(special.erfinv(x) ** 2)), "ndtr": _slope(_density),
    "ndtri": _slope(lambda x: 1 / _density(special.ndtri(x))), "log_ndtr": _slope(lambda x: _density(x) / special.ndtr(x)),
    "lgamma": _slope(special.digamma), "gamma": _slope(lambda x: special.gamma(x) * special.digamma(x)),
    "digamma": _slope(lambda x: special.polygamma(1, x)), "polygamma": _slope(lambda x, n: special.polygamma(int(n) + 1, x)),
    "i0": _slope(special.i1), "i0e": _slope(lambda x: special.i1e(x) - numpy.sign(x) * special.i0e(x)),
    "i1": _slope(lambda x: special.ivp(1, x)),
    "i1e": _slope(lambda x: special.ivp(1, x) * exp(-numpy.abs(x)) - numpy.sign(x) * special.i1e(x)),
    # Activations.
    "relu": _slope(lambda x: x > 0), "relu6": _slope(lambda x: (x > 0) & (x < 6)),
    "leaky_relu": _slope(lambda x, slope: where(x > 0, 1, slope)),
    "threshold": _slope(lambda x, threshold, _: x > threshold), "hardtanh": _slope(lambda x, low, high: (x > low) & (x < high)),
    "hardsigmoid": _slope(lambda x: (numpy.abs(x) < 3) / 6), "hardswish": _slope(_hardswish),
    "hardshrink": _slope(lambda x, lambd: numpy.abs(x) > lambd), "softshrink": _slope(lambda x, lambd: numpy.abs(x) > lambd),
    "sigmoid": _slope(lambda x: special.expit(x) * special.expit(-x)), "logsigmoid": _slope(lambda x: special.expit(-x)),
    "silu": _slope(_silu), "gelu": _slope(_gelu), "gelu_tanh": _slope(_gelu_tanh), "mish": _slope(_mish),
    "softplus": _slope(lambda x, beta, threshold: where(beta * x > threshold, 1, special.expit(beta * x))),
    "squareplus": _slope(lambda x, b: REFERENCES["squareplus"](x, b) / numpy.hypot(x, sqrt(b))),
    "elu": _slope(lambda x, alpha: where(x > 0, 1, alpha * exp(x))),
    "celu": _slope(lambda x, alpha: where(x > 0, 1, exp(x / alpha))),
    "selu": _slope(lambda x: SELU_SCALE * where(x > 0, 1, SELU_ALPHA * exp(x))),
    "softsign": _slope(lambda x: (1 + numpy.abs(x)) ** -2.0), "tanhshrink": _slope(lambda x: numpy.tanh(x) ** 2),
    # Two operands.
    "add": _slopes(lambda x, y, alpha: 1.0, lambda x, y, alpha: alpha),
    "sub": _slopes(lambda x, y, alpha: 1.0, lambda x, y, alpha: -alpha),
    "rsub": _slopes(lambda x, y, alpha: -alpha, lambda x, y, alpha: 1.0), "mul": _slopes(lambda x, y: y, lambda x, y: x),
    "div": _slopes(lambda x, y: 1 / y, lambda x, y: -x / (y * y)),
    **dict.fromkeys(("floor_divide", "trunc_divide"), _slopes(lambda x, y: 0.0, lambda x, y: 0.0)),
    "remainder": _slopes(lambda x, y: 1.0, lambda x, y: -numpy.floor_divide(x, y)),
    "fmod": _slopes(lambda x, y: 1.0, lambda x, y: -numpy.trunc(x / y)),
    "maximum": _ties, "minimum": lambda d, x, y: _ties(d, -x, -y),
    "fmax": _chosen(numpy.greater_equal), "fmin": _chosen(numpy.less_equal),
    "copysign": _slopes(lambda x, y: numpy.sign(x) * numpy.copysign(1, y), lambda x, y: 0.0),
    "nextafter": _slopes(lambda x, y: x != y, lambda x, y: 0.0),
    "prelu": _slopes(lambda x, weight: where(x > 0, 1, weight), lambda x, weight: where(x > 0, 0, x)),
    "pow": _power, "float_power": _power, "atan2": _atan2,
    "hypot": _slopes(lambda x, y: x / numpy.hypot(x, y), lambda x, y: y / numpy.hypot(x, y)),
    "ldexp": _slopes(lambda x, y: numpy.exp2(y), lambda x, y: x * numpy.exp2(y) * log(2)),
    "logaddexp": _slopes(lambda x, y: special.expit(x - y), lambda x, y: special.expit(y - x)),
    "logaddexp2": _slopes(_logaddexp2, lambda x, y: _logaddexp2(y, x)),
    "xlogy": _slopes(lambda x, y: where((x == 0) & (y <= 0), 0, log(y)), lambda x, y: x / y),
    "xlog1py": _slopes(lambda x, y: where((x == 0) & (y <= -1), 0, numpy.log1p(y)), lambda x, y: x / (1 + y)),
    "rel_entr": _slopes(lambda x, y: log(x / y) + 1, lambda x, y: -x / y), "beta": _beta,
    "betaln": _slopes(*(lambda x, y, own=own: special.digamma((x, y)[own]) - special.digamma(x + y) for own in (0, 1))),
    "glu": _slopes(lambda a, b: special.expit(b), lambda a, b: a * special.expit(b) * special.expit(-b)),
    "swiglu": _slopes(lambda a, b: b * _silu(a), lambda a, b: a * special.expit(a)),
    "geglu": _slopes(lambda a, b: b * _gelu(a), lambda a, b: a * special.ndtr(a)),
    "reglu": _slopes(lambda a, b: where(a > 0, b, 0), lambda a, b: numpy.maximum(a, 0)),
    # Three operands.
    "clamp": _clamp, "lerp": _slopes(lambda x, end, w: 1 - w, lambda x, end, w: w, lambda x, end, w: end - x),
    "addcmul": _slopes(lambda x, a, b, v: 1.0, lambda x, a, b, v: v * b, lambda x, a, b, v: v * a),
    "addcdiv": _slopes(lambda x, a, b, v: 1.0, lambda x, a, b, v: v / b, lambda x, a, b, v: -v * a / (b * b)),
    **dict.fromkeys(("fma", "affine"), _slopes(lambda a, b, c: b, lambda a, b, c: a, lambda a, b, c: 1.0)),
    "betainc": _betainc,
}  # fmt: skip
