"""Which rows of the tables complex numbers have, and what they are of them where that is not the row's own formula."""

from __future__ import annotations

from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.complex import conj, imag, real, timed
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions import complex_circular, complex_powers
from baracuda_kernels.formula.functions.complex_powers import either
from baracuda_kernels.formula.functions.elementary import exp, exp2, log1p, sigmoid
from baracuda_kernels.formula.functions.hyperbolic import tanh
from baracuda_kernels.formula.functions.log_sums import logaddexp
from baracuda_kernels.formula.functions.pieces import LN2
from baracuda_kernels.formula.functions.powers import pow
from baracuda_kernels.formula.functions.trigonometry import atan2
from baracuda_kernels.formula.operations import absolute, convert, eq, is_nan, ne, where
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY
from baracuda_kernels.ops.elementwise.binary_rows import ldexp
from baracuda_kernels.ops.elementwise.rows import OfComplex
from baracuda_kernels.ops.elementwise.ternary_rows import lerp
from baracuda_kernels.ops.elementwise.unary_rows import constant_power

__all__ = ["FORMS"]

C128 = ElementKind.C128


def _unit(z: Expr) -> Expr:
    size = absolute(z)
    return where(eq(size, 0), 0, z / size)


def _angle_gradient(d: Expr, z: Expr) -> Expr:
    """Across the number, as PyTorch has it at 0."""
    size = absolute(z)
    return where(eq(size, 0), 0, timed(z / size, 1) * (d / size))


@lerp.of_complex()
def _lerp(x: Expr, end: Expr, weight: Expr) -> Expr:
    across = end - x
    return where(absolute(weight) < 0.5, x + weight * across, end - across * (1 - weight))


def _any(of_part: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda z: of_part(real(z)) | of_part(imag(z))


def _is_infinite(x: Expr) -> Expr:
    return eq(absolute(x), INFINITY)


def _is_finite(z: Expr) -> Expr:
    return (absolute(real(z)) < INFINITY) & (absolute(imag(z)) < INFINITY)


@constant_power.of_complex(lambda d, y, z, n: (d * conj(n * pow(z, n - 1.0)), None))
def _constant_power(z: Expr, n: Expr) -> Expr:
    """Powers that are products are."""
    square = z * z
    cases = ((eq(n, 3.0), square * z), (eq(n, 4.0), square * square), (eq(n, -2.0), 1.0 / square))
    return either(*cases, otherwise=pow(z, n))


@ldexp.of_complex(lambda d, y, z, w: (d * conj(exp2(w)), d * conj(y * LN2[0])))
def _ldexp(z: Expr, w: Expr) -> Expr:
    return z * exp2(w)


@logaddexp.of_complex(lambda d, y, z, w: (d * conj(sigmoid(z - w)), d * conj(sigmoid(w - z))))
def _logaddexp(z: Expr, w: Expr) -> Expr:
    """The logarithm of 1 and the smaller power by the larger one, after that."""
    left = real(z) < real(w)
    most, least = where(left, w, z), where(left, z, w)
    together = most + log1p(exp(least - most))
    return where(eq(z, w) & eq(absolute(real(z)), INFINITY), z, together)


AS_IT_IS, WIDE = OfComplex(), OfComplex(wide=True)
FORMS = {
    **dict.fromkeys(
        [
            "neg",
            "positive",
            "reciprocal",
            "square",
            "add",
            "sub",
            "rsub",
            "mul",
            "div",
            "eq",
            "ne",
            "logical_and",
            "logical_or",
            "logical_xor",
            "logical_not",
            "lerp",
            "addcmul",
            "addcdiv",
            "fma",
            "affine",
            "isclose",
        ],
        AS_IT_IS,
    ),
    **dict.fromkeys((*complex_powers.NAMES, *complex_circular.NAMES, "ldexp", "logaddexp"), WIDE),
    "float_power": OfComplex(lambda z, w: pow(convert(z, C128), convert(w, C128)), wide=True),
    "pow": OfComplex(pow, wide=True),
    "integer_pow": OfComplex(constant_power, wide=True),
    "silu": OfComplex(lambda z: z * sigmoid(z), wide=True),
    "tanhshrink": OfComplex(lambda z: z - tanh(z), wide=True),
    "softsign": OfComplex(lambda z: z / (absolute(z) + 1), wide=True),
    "conj": OfComplex(conj),
    "real": OfComplex(real, gives_part=True),
    "imag": OfComplex(imag, gives_part=True),
    "angle": OfComplex(lambda z: atan2(imag(z), real(z)), _angle_gradient, gives_part=True, wide=True),
    "abs": OfComplex(gives_part=True, wide=True),
    "sign": OfComplex(_unit, wide=True),
    "sgn": OfComplex(_unit, wide=True),
    "isnan": OfComplex(is_nan),
    "isinf": OfComplex(_any(_is_infinite)),
    "isfinite": OfComplex(_is_finite),
    "isreal": OfComplex(lambda z: eq(imag(z), 0)),
    "iscomplex": OfComplex(lambda z: ne(imag(z), 0)),
}
