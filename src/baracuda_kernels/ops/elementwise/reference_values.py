"""What the result of every op is, from operands in float64, int64 or bool and parameters in float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import exp, log, where
from scipy import special

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import NUMPY_NAMES, decode, encode

__all__ = ["BY_ELEMENT", "REFERENCES"]

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
LARGEST_BF16 = 255 * 2.0**120


def _is_float(x: Any) -> bool:
    return x.dtype.kind == "f"


def _bits(element: ElementKind) -> int:
    return 8 * element.size


def _angle(x: Any) -> Any:
    return where(numpy.isnan(x), x, where(x < 0, numpy.pi, 0.0))


def _sign(x: Any) -> Any:
    return x if x.dtype == bool else numpy.sign(x)


def _power(x: Any, y: Any) -> Any:
    y = numpy.broadcast_to(numpy.asarray(y, x.dtype), x.shape)
    if _is_float(x):
        return numpy.power(x, y)
    unit = where(x == 1, 1, where(x == -1, where(y % 2 == 0, 1, -1), 0))
    return where(y < 0, unit, numpy.power(x, where(y < 0, 0, y)))


def _nan_to_num(element: ElementKind, x: Any, nan: float, posinf: float, neginf: float) -> Any:
    if not element.is_float:
        return x
    largest = LARGEST_BF16 if element is ElementKind.BF16 else float(numpy.finfo(NUMPY_NAMES[element]).max)
    above, below = largest if numpy.isnan(posinf) else posinf, -largest if numpy.isnan(neginf) else neginf
    return numpy.nan_to_num(x, nan=nan, posinf=above, neginf=below)


def _reduce_precision(element: ElementKind, x: Any, exponent_bits: float, mantissa_bits: float) -> Any:
    """By the distance of such numbers around x. What is computed in f32 has its subnormal numbers."""
    least = -1022 if element is ElementKind.F64 else -126
    exponent = numpy.maximum(numpy.frexp(x)[1] - 1, least)
    unit = numpy.ldexp(1.0, exponent - int(min(mantissa_bits, 52)))
    found = where(numpy.isfinite(x) & (unit > 0), numpy.rint(x / unit) * unit, x)
    own = {ElementKind.F16: 5, ElementKind.F64: 11}.get(element, 8)
    if exponent_bits < own:
        reach = 2 ** (int(exponent_bits) - 1) - 1
        found = where(numpy.abs(found) >= 2.0 ** (reach + 1), numpy.copysign(numpy.inf, x), found)
        found = where(numpy.abs(found) < 2.0 ** (1 - reach), numpy.copysign(0.0, x), found)
    return where(numpy.isnan(x), x, found)


def _population_count(element: ElementKind, x: Any) -> Any:
    return sum((x >> place) & 1 for place in range(_bits(element)))


def _leading_zeros(element: ElementKind, x: Any) -> Any:
    return sum((x >> place == 0).astype(numpy.int64) for place in range(_bits(element)))


def _log1mexp(x: Any) -> Any:
    return where(x < 0.5, log(-numpy.expm1(-x)), numpy.log1p(-exp(-x)))


def _sinc(x: Any) -> Any:
    """The sine of half turns from the nearest zero, since pi x is not the nearest number to itself."""
    turn = x - 2 * numpy.rint(x / 2)
    angle = numpy.pi * where(numpy.abs(turn) > 0.5, numpy.copysign(1, turn) - turn, turn)
    return where(x == 0, 1.0, numpy.sin(angle) / (numpy.pi * x))


def _tanhshrink(x: Any) -> Any:
    """x - tanh(x) is (x cosh(x) - sinh(x)) / cosh(x), a spherical Bessel function and a factor, which do not cancel around 0."""
    size = numpy.minimum(numpy.abs(x), 1)
    near = numpy.copysign(size * size * special.spherical_in(1, size) / numpy.cosh(size), x)
    return where(numpy.abs(x) < 1, near, x - numpy.tanh(x))


def _squareplus(x: Any, b: float) -> Any:
    root = numpy.hypot(x, numpy.sqrt(b))
    return where(x < 0, b / 4 / (root / 2 - x / 2), x / 2 + root / 2)


def _logit(x: Any, eps: float) -> Any:
    return special.logit(x if numpy.isnan(eps) else numpy.clip(x, eps, 1 - eps))


def _gelu(x: Any) -> Any:
    return where(x == -numpy.inf, 0.0, x * special.ndtr(x))


def _gelu_tanh(x: Any) -> Any:
    return x * special.expit(2 * numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3))


def _polygamma(x: Any, n: float) -> Any:
    """Far below zero by reflection, since SciPy walks there from x to zero in steps of one."""
    order, far = int(n), x < -20
    slope = numpy.polynomial.Polynomial([0, 1])  # the derivatives of the cotangent are polynomials of it
    for _ in range(order):
        slope = -slope.deriv() * numpy.polynomial.Polynomial([1, 0, 1])
    turn = where(numpy.isfinite(x), x - numpy.rint(x), numpy.nan)
    cotangent = 1 / numpy.tan(numpy.pi * turn)
    beyond = (-1) ** order * special.polygamma(order, 1 - where(far, x, -20.0)) - numpy.pi ** (order + 1) * slope(cotangent)
    pole = special.polygamma(order, 0.0)
    beyond = where(turn == 0, pole, where(x == -numpy.inf, numpy.nan, beyond))
    return where(far, beyond, special.polygamma(order, where(far, 1.0, x)))


def _divided(of_floats: Callable[..., Any], of_integers: Callable[..., Any]) -> Callable[..., Any]:
    def found(x: Any, y: Any) -> Any:
        return of_floats(x, y) if _is_float(x) else where(y == 0, 0, of_integers(x, where(y == 0, 1, y)))

    return found


def _truncated(x: Any, y: Any) -> Any:
    """The ratio itself may have been rounded up to an integer."""
    ratio = x / y
    return where(numpy.isinf(ratio), ratio, numpy.copysign(numpy.rint((x - numpy.fmod(x, y)) / y), ratio))


def _left_shift(element: ElementKind, x: Any, y: Any) -> Any:
    inside = (y >= 0) & (y < _bits(element))
    return where(inside, x << where(inside, y, 0), 0)


def _right_shift(element: ElementKind, x: Any, y: Any) -> Any:
    return x >> where((y >= 0) & (y < _bits(element)), y, 63)


def _logical_right_shift(element: ElementKind, x: Any, y: Any) -> Any:
    inside, mask = (y >= 0) & (y < _bits(element)), numpy.uint64(2 ** _bits(element) - 1)
    return where(inside, (x.astype(numpy.uint64) & mask) >> where(inside, y, 0).astype(numpy.uint64), 0).astype(numpy.int64)


def _upper_half(element: ElementKind, x: Any, y: Any) -> Any:
    return numpy.asarray((x.astype(object) * y.astype(object)) >> _bits(element)).astype(numpy.int64)  # of rank 0 an int


def _next_after(element: ElementKind, x: Any, y: Any) -> Any:
    if element is not ElementKind.BF16:
        name = NUMPY_NAMES[element]
        return numpy.nextafter(x.astype(name), y.astype(name)).astype(numpy.float64)
    words = encode(numpy.where(x == 0, 0.0, numpy.abs(x)), element).view(numpy.int16).reshape(x.shape)
    outwards = (x == 0) | ((x < y) == (x > 0))
    steps = numpy.ravel(where(outwards, words + 1, words - 1)).astype(numpy.int16)
    moved = decode(steps.view(numpy.uint8), element).reshape(x.shape)
    moved = numpy.copysign(moved, where(x == 0, y, x))
    return where(numpy.isnan(x) | numpy.isnan(y), x + y, where(x == y, y, moved))


def _ldexp(x: Any, y: Any) -> Any:
    return x * numpy.exp2(y / 2) * numpy.exp2(y / 2)


def _clamp(x: Any, low: Any, high: Any) -> Any:
    return numpy.minimum(numpy.maximum(x, low), high)


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    return where(numpy.abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


REFERENCES: dict[str, Callable[..., Any]] = {
    "neg": lambda x: -x, **dict.fromkeys(("positive", "conj", "real"), lambda x: x), "imag": numpy.zeros_like, "angle": _angle, "abs": numpy.abs, "sign": _sign, "sgn": _sign,
    "reciprocal": lambda x: 1 / x, "square": lambda x: x * x, "sqrt": numpy.sqrt, "rsqrt": lambda x: 1 / numpy.sqrt(x),
    "cbrt": numpy.cbrt, "integer_pow": _power, "deg2rad": numpy.deg2rad, "rad2deg": numpy.rad2deg,
    "floor": numpy.floor, "ceil": numpy.ceil, "round": numpy.round, "round_decimals": lambda x, decimals: numpy.round(x, int(decimals)), "trunc": numpy.trunc, "frac": lambda x: x - numpy.trunc(x),
    "mantissa": lambda x: numpy.frexp(x)[0],
    "nan_to_num": _nan_to_num, "reduce_precision": _reduce_precision,
    "isnan": numpy.isnan, "isinf": numpy.isinf, "isfinite": numpy.isfinite, "isneginf": lambda x: x == -numpy.inf,
    "isposinf": lambda x: x == numpy.inf, "isreal": numpy.isreal, "iscomplex": numpy.iscomplex,
    "signbit": lambda x: numpy.signbit(x) if _is_float(x) else x < 0, "logical_not": numpy.logical_not, "bitwise_not": numpy.invert,
    "population_count": _population_count, "clz": _leading_zeros,
    "exp": exp, "exp2": numpy.exp2, "expm1": numpy.expm1, "log": log, "log2": numpy.log2, "log10": numpy.log10,
    "log1p": numpy.log1p, "log1mexp": _log1mexp, "logit": _logit, "entr": special.entr,
    "sin": numpy.sin, "cos": numpy.cos, "tan": numpy.tan, "asin": numpy.arcsin, "acos": numpy.arccos, "atan": numpy.arctan,
    "sinh": numpy.sinh, "cosh": numpy.cosh, "tanh": numpy.tanh, "asinh": numpy.arcsinh, "acosh": numpy.arccosh,
    "atanh": numpy.arctanh, "sinc": _sinc,
    "erf": special.erf, "erfc": special.erfc, "erfcx": special.erfcx, "erfinv": special.erfinv,
    "ndtr": special.ndtr, "ndtri": special.ndtri, "log_ndtr": special.log_ndtr,
    "lgamma": lambda x: where(x == -numpy.inf, numpy.inf, special.gammaln(x)), "gamma": special.gamma, "digamma": special.digamma,
    "polygamma": _polygamma,
    "i0": lambda x: where(numpy.isinf(x), numpy.inf, special.i0(x)), "i0e": special.i0e,
    "i1": lambda x: where(numpy.isinf(x), x, special.i1(x)), "i1e": special.i1e,
    # Activations.
    "relu": lambda x: numpy.maximum(x, 0), "relu6": lambda x: numpy.clip(x, 0, 6),
    "leaky_relu": lambda x, slope: where(x < 0, slope * x, x),
    "threshold": lambda x, threshold, other: where(x <= threshold, numpy.asarray(other, x.dtype), x),
    "hardtanh": lambda x, low, high: numpy.clip(x, low, high), "hardsigmoid": lambda x: numpy.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * (numpy.clip(x + 3, 0, 6) / 6),
    "hardshrink": lambda x, lambd: where(numpy.abs(x) <= lambd, 0, x),
    "softshrink": lambda x, lambd: numpy.sign(x) * numpy.maximum(numpy.abs(x) - lambd, 0),
    "sigmoid": special.expit, "logsigmoid": special.log_expit, "silu": lambda x: x * special.expit(x), "gelu": _gelu,
    "gelu_tanh": _gelu_tanh, "mish": lambda x: x * numpy.tanh(numpy.logaddexp(0, x)),
    "softplus": lambda x, beta, threshold: where(beta * x > threshold, x, numpy.logaddexp(0, beta * x) / beta),
    "squareplus": _squareplus,
    "elu": lambda x, alpha: where(x > 0, x, alpha * numpy.expm1(x)),
    "celu": lambda x, alpha: numpy.maximum(x, 0) + numpy.minimum(0, alpha * numpy.expm1(x / alpha)),
    "selu": lambda x: SELU_SCALE * where(x > 0, x, SELU_ALPHA * numpy.expm1(x)),
    "softsign": lambda x: x / (1 + numpy.abs(x)), "tanhshrink": _tanhshrink,
    # Two operands.
    "add": lambda x, y, alpha: x | y if x.dtype == bool else x + numpy.asarray(alpha, x.dtype) * y,
    "sub": lambda x, y, alpha: x - numpy.asarray(alpha, x.dtype) * y,
    "rsub": lambda x, y, alpha: y - numpy.asarray(alpha, x.dtype) * x,
    "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "floor_divide": _divided(numpy.floor_divide, lambda x, y: x // y),
    "trunc_divide": _divided(_truncated, lambda x, y: (x - numpy.fmod(x, y)) // y),
    "remainder": _divided(numpy.remainder, lambda x, y: x % y), "fmod": _divided(numpy.fmod, numpy.fmod),
    "mulhi": _upper_half, "gcd": numpy.gcd, "lcm": numpy.lcm,
    "maximum": numpy.maximum, "minimum": numpy.minimum, "fmax": numpy.fmax, "fmin": numpy.fmin, "copysign": numpy.copysign,
    "heaviside": lambda x, y: where(x == 0, y, x > 0), "nextafter": _next_after,
    "prelu": lambda x, weight: where(x > 0, x, weight * x),
    "eq": numpy.equal, "ne": numpy.not_equal, "gt": numpy.greater, "ge": numpy.greater_equal, "lt": numpy.less,
    "le": numpy.less_equal,
    "logical_and": numpy.logical_and, "logical_or": numpy.logical_or, "logical_xor": numpy.logical_xor,
    "bitwise_and": numpy.bitwise_and, "bitwise_or": numpy.bitwise_or, "bitwise_xor": numpy.bitwise_xor,
    "bitwise_left_shift": _left_shift, "bitwise_right_shift": _right_shift, "shift_right_logical": _logical_right_shift,
    "pow": _power, "float_power": numpy.float_power, "atan2": numpy.arctan2, "hypot": numpy.hypot, "ldexp": _ldexp,
    "logaddexp": numpy.logaddexp, "logaddexp2": numpy.logaddexp2, "xlogy": special.xlogy, "xlog1py": special.xlog1py,
    "rel_entr": special.rel_entr, "isclose": lambda x, y, rtol, atol, equal_nan: numpy.isclose(x, y, rtol, atol, bool(equal_nan)),
    "igamma": special.gammainc, "igammac": special.gammaincc, "zeta": special.zeta, "beta": special.beta, "betaln": special.betaln,
    "glu": lambda a, b: a * special.expit(b), "swiglu": lambda a, b: a * special.expit(a) * b, "geglu": lambda a, b: _gelu(a) * b,
    "reglu": lambda a, b: numpy.maximum(a, 0) * b,
    # Three operands.
    "clamp": _clamp, "lerp": _lerp,
    "addcmul": lambda x, a, b, factor: x + numpy.asarray(factor, x.dtype) * a * b,
    "addcdiv": lambda x, a, b, factor: x + factor * a / b,
    "fma": lambda a, b, c: a * b + c, "affine": lambda x, scale, shift: x * scale + shift, "betainc": special.betainc,
}  # fmt: skip

# Those that take the element first.
BY_ELEMENT = {
    "bitwise_left_shift", "bitwise_right_shift", "clz", "mulhi", "nan_to_num", "nextafter", "population_count", "reduce_precision",
    "shift_right_logical",
}  # fmt: skip
