"""Which rows of the tables complex numbers have, and what they are of them where that is not the row's own formula."""

from __future__ import annotations

from collections.abc import Callable

from baracuda_kernels.formula.complex import conj, imag, real, timed
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions.trigonometry import atan2
from baracuda_kernels.formula.operations import absolute, eq, is_nan, ne, where
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY
from baracuda_kernels.ops.elementwise.rows import OfComplex
from baracuda_kernels.ops.elementwise.ternary_rows import lerp

__all__ = ["FORMS"]


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


AS_IT_IS = OfComplex()
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
