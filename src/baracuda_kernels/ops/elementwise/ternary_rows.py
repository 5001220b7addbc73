"""Ops of three operands."""

from __future__ import annotations

from baracuda_kernels.formula.derive import gradients
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.incomplete import betainc
from baracuda_kernels.formula.operations import absolute, fma, where
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY, NAN, larger, smaller
from baracuda_kernels.ops.elementwise.rows import NUMBERS, ElementwiseRow, Parameter

__all__ = ["ROWS"]


def _clamp_gradient(d: Expr, x: Expr, low: Expr, high: Expr) -> tuple[Expr, Expr, Expr]:
    """As in PyTorch: the bounds belong to x, and where they are crossed only the upper one counts."""
    return (
        where((x >= low) & (x <= high), d, 0),
        where((x < low) & (low < high), d, 0),
        where((x > high) | (low > high), d, 0),
    )


@function(lambda d, y, x, end, weight: (d * (1 - weight), d * weight, d * (end - x)))
def lerp(x: Expr, end: Expr, weight: Expr) -> Expr:
    """Interpolates from the nearer end, so that both ends are exact."""
    return where(absolute(weight) < 0.5, fma(weight, end - x, x), fma(weight - 1, end - x, end))


def _affine(x: Expr, scale: Expr, shift: Expr) -> Expr:
    return fma(x, scale, shift) if x.element.is_float else x * scale + shift


def _betainc_gradient(d: Expr, a: Expr, b: Expr, x: Expr) -> tuple[Expr, Expr, Expr]:
    """The gradient of x; those of a and b have no formula and are NaN."""
    return constant(NAN, d.element), constant(NAN, d.element), gradients(betainc(a, b, x), [x], d)[0]


VALUE, POSITIVE = (Parameter("value", 1.0),), ((0.5, 4.0),)
TENSORS = ("input", "tensor1", "tensor2")
ROWS = (
    ElementwiseRow("clamp", lambda x, low, high: smaller(larger(x, low), high), "x limited to min and max, or to one of them; if min > max, max.",
        NUMBERS, gradient=_clamp_gradient, operands=("input", "min", "max"), left_out={"min": -INFINITY, "max": INFINITY}),
    ElementwiseRow("lerp", lerp, "Linear interpolation: x + weight (end - x).", domain=((0.5, 4.0), (0.5, 4.0), (0.0, 1.0)), wide=True,
        operands=("input", "end", "weight")),
    ElementwiseRow("addcmul", lambda x, a, b, value: _affine(value * a, b, x), "input + value tensor1 tensor2.", NUMBERS, parameters=VALUE, domain=POSITIVE,
        wide=True, operands=TENSORS),
    ElementwiseRow("addcdiv", lambda x, a, b, value: x + value * a / b, "input + value tensor1 / tensor2.", parameters=VALUE, domain=POSITIVE, wide=True,
        operands=TENSORS),
    ElementwiseRow("fma", fma, "a b + c, rounded once."),
    ElementwiseRow("affine", _affine, "x scale + shift; floats are rounded once, integers wrap around.", NUMBERS,
        operands=("input", "scale", "shift")),
    ElementwiseRow("betainc", betainc, "The regularized incomplete beta function; the gradients of a and b are NaN.",
        domain=((0.5, 5.0), (0.5, 5.0), (0.05, 0.95)), gradient=_betainc_gradient, operands=("a", "b", "x")),
)  # fmt: skip
