"""The rows of complex numbers in NumPy complex128, sharing nothing with any kernel or formula: values, and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from baracuda_kernels.core.element import ElementKind

__all__ = ["DERIVATIVES", "GRADIENTS", "VALUES", "gradients_of_complex", "value_of_complex"]


def value_of_complex(name: str, operands: Sequence[Any], parameters: Sequence[float], target: ElementKind) -> Any:
    """The result of an op on complex operands, in complex128, float64 or int64."""
    with np.errstate(all="ignore"):
        found = np.asarray(VALUES[name](*(np.asarray(each, complex) for each in operands), *parameters))
    return found.astype(complex if target.is_complex else float if target.is_float else np.int64)


def gradients_of_complex(name: str) -> Callable[..., tuple[Any, ...]]:
    """Of the gradient of the result, operands and parameters: the gradients of the operands, in PyTorch's convention."""
    if name in GRADIENTS:
        return GRADIENTS[name]

    def found(d: Any, *operands: Any) -> tuple[Any, ...]:
        slopes = DERIVATIVES[name](*operands)
        return tuple(d * np.conj(slope) for slope in (slopes if isinstance(slopes, tuple) else (slopes,)))

    return found


def _sgn(z: Any) -> Any:
    return np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z)))


def _isclose(x: Any, y: Any, rtol: float, atol: float, equal_nan: float) -> Any:
    return np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=bool(equal_nan))


def _scaled(z: Any, factor: float) -> Any:
    """Each part alone, as a product with a real number is."""
    found = np.empty(z.shape, complex)
    found.real, found.imag = z.real * factor, z.imag * factor
    return found


VALUES: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "positive": np.positive, "conj": np.conj, "real": np.real, "imag": np.imag, "angle": np.angle, "abs": np.abs,
    "sgn": _sgn, "sign": _sgn, "reciprocal": lambda z: 1 / z, "square": lambda z: z * z,
    "add": lambda x, y, alpha: x + _scaled(y, alpha), "sub": lambda x, y, alpha: x - _scaled(y, alpha),
    "rsub": lambda x, y, alpha: y - _scaled(x, alpha), "mul": np.multiply, "div": np.divide,
    "eq": np.equal, "ne": np.not_equal, "isclose": _isclose,
    "logical_and": lambda x, y: (x != 0) & (y != 0), "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0), "logical_not": lambda x: x == 0,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isreal": np.isreal, "iscomplex": np.iscomplex,
    "lerp": lambda x, end, weight: x + weight * (end - x), "addcmul": lambda x, a, b, value: x + _scaled(a, value) * b,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z), "pow": np.power, "float_power": np.power, "integer_pow": lambda z, n: z**n,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "silu": lambda z: z / (1 + np.exp(-z)), "ldexp": lambda x, y: x * np.exp2(y),
    "logaddexp": lambda x, y: np.log(np.exp(x) + np.exp(y)), "tanhshrink": lambda z: z - np.tanh(z), "softsign": lambda z: z / (1 + np.abs(z)),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sinc": np.sinc,
    "addcdiv": lambda x, a, b, value: x + _scaled(a, value) / b, "fma": lambda x, y, z: x * y + z, "affine": lambda x, y, z: x * y + z,
}  # fmt: skip


def _one(z: Any) -> Any:
    return np.ones_like(z)


# By each operand, of operands and parameters; of functions that have one.
DERIVATIVES: dict[str, Callable[..., Any]] = {
    "neg": lambda z: -_one(z), "positive": _one, "reciprocal": lambda z: -1 / (z * z), "square": lambda z: 2 * z,
    "add": lambda x, y, alpha: (_one(x), alpha * _one(x)), "sub": lambda x, y, alpha: (_one(x), -alpha * _one(x)),
    "rsub": lambda x, y, alpha: (-alpha * _one(x), _one(x)), "mul": lambda x, y: (y, x), "div": lambda x, y: (1 / y, -x / (y * y)),
    "lerp": lambda x, end, weight: (1 - weight, weight, end - x), "addcmul": lambda x, a, b, value: (_one(x), value * b, value * a),
    "addcdiv": lambda x, a, b, value: (_one(x), value / b, -value * a / (b * b)), "fma": lambda x, y, z: (y, x, _one(x)),
    "affine": lambda x, y, z: (y, x, _one(x)),
    "exp": np.exp, "exp2": lambda z: np.log(2) * np.exp2(z), "expm1": np.exp, "log": lambda z: 1 / z, "log2": lambda z: 1 / (z * np.log(2)),
    "log10": lambda z: 1 / (z * np.log(10)), "log1p": lambda z: 1 / (1 + z), "sqrt": lambda z: 0.5 / np.sqrt(z),
    "rsqrt": lambda z: -0.5 / (z * np.sqrt(z)), "pow": lambda z, w: (w * z ** (w - 1), z**w * np.log(z)),
    "float_power": lambda z, w: (w * z ** (w - 1), z**w * np.log(z)), "integer_pow": lambda z, n: n * z ** (n - 1.0),
    "sigmoid": lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2, "silu": lambda z: (1 + np.exp(-z) * (1 + z)) / (1 + np.exp(-z)) ** 2,
    "ldexp": lambda x, y: (np.exp2(y), np.log(2) * x * np.exp2(y)),
    "logaddexp": lambda x, y: (1 / (1 + np.exp(y - x)), 1 / (1 + np.exp(x - y))), "tanhshrink": lambda z: np.tanh(z) ** 2,
    "sin": np.cos, "cos": lambda z: -np.sin(z), "tan": lambda z: 1 + np.tan(z) ** 2, "sinh": np.cosh, "cosh": np.sinh,
    "tanh": lambda z: 1 - np.tanh(z) ** 2, "asin": lambda z: 1 / np.sqrt(1 - z * z), "acos": lambda z: -1 / np.sqrt(1 - z * z),
    "atan": lambda z: 1 / (1 + z * z), "asinh": lambda z: 1 / np.sqrt(1 + z * z), "acosh": lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
    "atanh": lambda z: 1 / (1 - z * z), "sinc": lambda z: (np.cos(np.pi * z) - np.sinc(z)) / z,
}  # fmt: skip


def _sgn_gradient(d: Any, z: Any) -> tuple[Any, ...]:
    """What is left of d across the direction of z, by its size."""
    size, unit = np.abs(z), _sgn(z)
    return (np.where(z == 0, 0, (d - (d * np.conj(unit)).real * unit) / np.where(z == 0, 1, size)),)


def _softsign_gradient(d: Any, z: Any) -> tuple[Any, ...]:
    """Of z by what is real of it, and of its size."""
    whole = 1 + np.abs(z)
    return (d / whole - _sgn(z) * (np.conj(d) * z).real / whole**2,)


GRADIENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "softsign": _softsign_gradient,
    "conj": lambda d, z: (np.conj(d),), "real": lambda d, z: (d + 0j,), "imag": lambda d, z: (1j * d,),
    "abs": lambda d, z: (d * _sgn(z),), "angle": lambda d, z: (np.where(z == 0, 0, 1j * d * z / np.where(z == 0, 1, np.abs(z)) ** 2),),
    "sgn": _sgn_gradient, "sign": _sgn_gradient,
}  # fmt: skip
