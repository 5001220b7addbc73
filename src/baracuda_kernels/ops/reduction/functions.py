"""A function for every reduction of the table, and one for its gradient, with PyTorch's arguments."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from baracuda_kernels.core.descriptor import Numbers
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import InvalidProblem, Unsupported
from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import Axes, Dtype, View, broadcast_shape, element_from
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    ReduceJointBackwardDescriptor,
    ReduceJointDescriptor,
    ReduceJointKind,
    ReduceKind,
    ReducePairKind,
    ReduceToDescriptor,
    mask_of,
)
from baracuda_kernels.ops.reduction.joint import ReduceJointBackwardPlan, ReduceJointPlan
from baracuda_kernels.ops.reduction.pairs import ReduceChoiceBackwardPlan, ReducePairBackwardPlan, ReducePairPlan
from baracuda_kernels.ops.reduction.reduction import ReduceBackwardPlan, ReducePlan, ReduceToPlan
from baracuda_kernels.ops.reduction.tables import EVERY
from baracuda_kernels.ops.reduction.trace import TraceBackwardDescriptor, TraceBackwardPlan, TraceDescriptor, TracePlan

__all__: list[str] = []  # what it declares is found by its name, and hides what Python has under names such as sum

SINGLE = ("argmax", "argmin", "nanargmax", "nanargmin")  # along one axis, or of all elements
NAMED = ("aminmax",)  # whose axes are given by name, as in PyTorch


def _mask(input: View, dim: Axes | None) -> int:
    """All axes, as in PyTorch, if none is named."""
    axes = () if dim is None else input.axes(dim, "dim")
    return mask_of(axes or range(len(input.shape)))


def _dtype(function: str, dtype: object) -> ElementKind | None:
    return None if dtype is None else element_from(function, "dtype", dtype)


def _declare(kind: Any, plan: Any, name: str, says: str, gradient: str | None = None) -> Function:
    row = EVERY[kind.value]
    own = {f"{d}{operand}": f"{d}{ours}" for operand, ours in zip(("result", "second"), row.names, strict=True) for d in ("", "d_")}
    names = {own.get(operand.name, operand.name): operand.name for operand in plan.args_type.OPERANDS}
    leading = [own.get(operand.name, operand.name) for operand in plan.args_type.OPERANDS if not operand.writes]

    def describe(**given: Any) -> Any:
        input, numbers = given["input"], tuple(given[parameter.name] for parameter in row.parameters)
        dtype = _dtype(name, given.get("dtype"))
        return plan.descriptor_type(kind, input.shape, _mask(input, given["dim"]), input.element, given["keepdim"], numbers, dtype)

    kinds = inspect.Parameter
    arrays = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in leading]
    only = kinds.KEYWORD_ONLY if row.name in NAMED else kinds.POSITIONAL_OR_KEYWORD
    along = kinds("dim", only, annotation=int | None if row.name in SINGLE else Axes | None, default=None)
    if row.is_choice:
        along = along.replace(annotation=int, default=kinds.empty)
    numbers = [kinds(each.name, kinds.KEYWORD_ONLY, annotation=float, default=each.default) for each in row.parameters]
    keepdim = kinds("keepdim", kinds.KEYWORD_ONLY if numbers else only, annotation=bool, default=False)
    dtype = [kinds("dtype", kinds.KEYWORD_ONLY, annotation=Dtype | None, default=None)] if row.converts else []
    describe.__signature__ = inspect.Signature([*arrays, along, *numbers, keepdim, *dtype])  # type: ignore[attr-defined]
    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = says
    return Function(describe, plan, gradient, names)


def _declare_all() -> None:
    for kind in (*ReduceKind, *ReducePairKind):
        row = EVERY[kind.value]
        plan, backward = _plans(kind)
        gradient = None if backward is None else f"{row.name}_backward"
        globals()[row.name] = _declare(kind, plan, row.name, row.says, gradient)
        if gradient is not None:
            says = f"The gradient of {row.name}, from {'those of its results' if backward is ReducePairBackwardPlan else 'that of its result'}."
            globals()[gradient] = _declare(kind, backward, gradient, says)


def _plans(kind: Any) -> tuple[Any, Any]:
    """The plan of a reduction and that of its gradient, if it has one."""
    row = EVERY[kind.value]
    if row.is_choice:
        return ReducePairPlan, ReduceChoiceBackwardPlan
    plans = (ReducePlan, ReduceBackwardPlan) if row.second is None else (ReducePairPlan, ReducePairBackwardPlan)
    return plans if row.gradient is not None else (plans[0], None)


_declare_all()


def _norm(plan: Any, input: View, p: float, dim: Axes | None, keepdim: bool, dtype: object = None) -> Any:
    mask, of = _mask(input, dim), _dtype(input.function, dtype)
    return plan.descriptor_type(ReduceKind("vector_norm"), input.shape, mask, input.element, keepdim, (p,), of)


@function(ReducePlan, gradient="norm_backward")
def norm(
    input: View, p: float = 2.0, dim: Axes | None = None, keepdim: bool = False, dtype: Dtype | None = None
) -> ReduceDescriptor:
    """The p-norm, as vector_norm with the arguments of torch.norm."""
    return _norm(ReducePlan, input, p, dim, keepdim, dtype)  # type: ignore[no-any-return]


@function(ReduceBackwardPlan)
def norm_backward(
    d_result: View,
    input: View,
    result: View,
    p: float = 2.0,
    dim: Axes | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> ReduceBackwardDescriptor:
    """The gradient of norm, from that of its result."""
    return _norm(ReduceBackwardPlan, input, p, dim, keepdim, dtype)  # type: ignore[no-any-return]


@function(ReducePlan, gradient="matrix_norm_backward")
def matrix_norm(input: View, ord: str = "fro", dim: tuple[int, ...] = (-2, -1), keepdim: bool = False) -> ReduceDescriptor:
    """The Frobenius norm: the square root of the sum of squares."""
    return _norm(ReducePlan, _matrix(input, ord, dim), 2.0, dim, keepdim)  # type: ignore[no-any-return]


@function(ReduceBackwardPlan)
def matrix_norm_backward(
    d_result: View, input: View, result: View, ord: str = "fro", dim: tuple[int, ...] = (-2, -1), keepdim: bool = False
) -> ReduceBackwardDescriptor:
    """The gradient of matrix_norm, from that of its result."""
    return _norm(ReduceBackwardPlan, _matrix(input, ord, dim), 2.0, dim, keepdim)  # type: ignore[no-any-return]


def _matrix(input: View, ord: str, dim: tuple[int, ...]) -> View:
    """The input, if it has such a norm along these two axes."""
    if ord != "fro":
        wanted = "fro: other norms of a matrix are of its singular values, or of sums of its rows or columns"
        raise Unsupported(input.function, [Reason(ReasonCode.LIMIT, "ord", repr(ord), wanted)])
    if len(input.axes(dim, "dim")) != 2:
        raise InvalidProblem(input.function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "dim", repr(dim), "two axes")])
    return input


@function(TracePlan, gradient="trace_backward")
def trace(input: View) -> TraceDescriptor:
    """The sum of the diagonal of the last two axes."""
    return TraceDescriptor(input.shape, input.element)


@function(TraceBackwardPlan)
def trace_backward(d_result: View, input: View) -> TraceBackwardDescriptor:
    """The gradient of trace, from that of its result."""
    return TraceBackwardDescriptor(input.shape, input.element)


# --- two operands --------------------------------------------------------------------------------------------------------------


def _joint(kind: str, input: View, other: View, dim: Axes | None = None, keepdim: bool = False, numbers: Numbers = ()) -> Any:
    """The fields of a reduction of two operands, of the shape that both broadcast to."""
    shape = broadcast_shape(input.function, {input.name: input, other.name: other})
    both = View(input.function, "dim", SimpleNamespace(shape=shape, element=input.element))  # type: ignore[arg-type]
    return ReduceJointKind(kind), shape, _mask(both, dim), input.element, keepdim, numbers


@function(ReduceJointPlan, gradient="dist_backward")
def dist(input: View, other: View, p: float = 2.0) -> ReduceJointDescriptor:
    """The p-norm of the difference."""
    return ReduceJointDescriptor(*_joint("dist", input, other, numbers=(p,)))


@function(ReduceJointBackwardPlan)
def dist_backward(d_result: View, input: View, other: View, result: View, p: float = 2.0) -> ReduceJointBackwardDescriptor:
    """The gradient of dist, from that of its result."""
    return ReduceJointBackwardDescriptor(*_joint("dist", input, other, numbers=(p,)))


VECTORS = {"x1": "input", "x2": "other"}  # as PyTorch calls them
SLOPES = VECTORS | {"d_x1": "d_input", "d_x2": "d_other"}
WEIGHTED = {"weights": "other"}


@function(ReduceJointPlan, gradient="pairwise_distance_backward", names=VECTORS)
def pairwise_distance(x1: View, x2: View, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> ReduceJointDescriptor:
    """The p-norm of the difference plus eps, along the last axis."""
    return ReduceJointDescriptor(*_joint("pairwise_distance", x1, x2, -1, keepdim, (p, eps)))


@function(ReduceJointBackwardPlan, names=SLOPES)
def pairwise_distance_backward(
    d_result: View, x1: View, x2: View, result: View, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> ReduceJointBackwardDescriptor:
    """The gradient of pairwise_distance, from that of its result."""
    return ReduceJointBackwardDescriptor(*_joint("pairwise_distance", x1, x2, -1, keepdim, (p, eps)))


@function(ReduceJointPlan, gradient="cosine_similarity_backward", names=VECTORS)
def cosine_similarity(x1: View, x2: View, dim: int = 1, eps: float = 1e-8) -> ReduceJointDescriptor:
    """The cosine of the angle between vectors along an axis; norms are at least eps."""
    return ReduceJointDescriptor(*_joint("cosine_similarity", x1, x2, dim, numbers=(eps,)))


@function(ReduceJointBackwardPlan, names=SLOPES)
def cosine_similarity_backward(
    d_result: View, x1: View, x2: View, result: View, dim: int = 1, eps: float = 1e-8
) -> ReduceJointBackwardDescriptor:
    """The gradient of cosine_similarity, from that of its result."""
    return ReduceJointBackwardDescriptor(*_joint("cosine_similarity", x1, x2, dim, numbers=(eps,)))


@function(ReduceJointPlan, gradient="average_backward", names=WEIGHTED)
def average(input: View, weights: View, dim: Axes | None = None, keepdim: bool = False) -> ReduceJointDescriptor:
    """The weighted mean."""
    return ReduceJointDescriptor(*_joint("average", input, weights, dim, keepdim))


@function(ReduceJointBackwardPlan, names=WEIGHTED | {"d_weights": "d_other"})
def average_backward(
    d_result: View, input: View, weights: View, result: View, dim: Axes | None = None, keepdim: bool = False
) -> ReduceJointBackwardDescriptor:
    """The gradient of average, from that of its result."""
    return ReduceJointBackwardDescriptor(*_joint("average", input, weights, dim, keepdim))


@function(ReduceJointPlan)
def allclose(input: View, other: View, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> ReduceJointDescriptor:
    """Whether every element is no further from the other's than atol + rtol |other|."""
    counts = float(equal_nan) if isinstance(equal_nan, bool) else equal_nan
    return ReduceJointDescriptor(*_joint("allclose", input, other, numbers=(rtol, atol, counts)))


@function(ReduceJointPlan)
def equal(input: View, other: View) -> ReduceJointDescriptor:
    """Whether all elements are equal; NaN is not equal to itself."""
    return ReduceJointDescriptor(*_joint("equal", input, other))


@function(ReduceToPlan)
def sum_to_size(input: View, size: tuple[int, ...]) -> ReduceToDescriptor:
    """The sum to a shape that broadcasts to that of the input."""
    return ReduceToDescriptor(input.shape, size, input.element)
