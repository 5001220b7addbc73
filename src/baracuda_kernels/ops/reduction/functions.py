"""A function for every reduction of the table, and one for its gradient, with PyTorch's arguments."""

from __future__ import annotations

import inspect
from typing import Any

from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.view import Axes, View
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    ReduceKind,
    ReducePairKind,
    ReduceToDescriptor,
    mask_of,
)
from baracuda_kernels.ops.reduction.pairs import ReduceChoiceBackwardPlan, ReducePairBackwardPlan, ReducePairPlan
from baracuda_kernels.ops.reduction.reduction import ReduceBackwardPlan, ReducePlan, ReduceToPlan
from baracuda_kernels.ops.reduction.tables import EVERY

__all__: list[str] = []  # what it declares is found by its name, and hides what Python has under names such as sum

SINGLE = ("argmax", "argmin", "nanargmax", "nanargmin")  # along one axis, or of all elements
NAMED = ("aminmax",)  # whose axes are given by name, as in PyTorch


def _mask(input: View, dim: Axes | None) -> int:
    """All axes, as in PyTorch, if none is named."""
    return mask_of(range(len(input.shape)) if dim is None or dim == () else input.axes(dim, "dim"))


def _declare(kind: Any, plan: Any, name: str, leading: tuple[str, ...], says: str, gradient: str | None = None) -> Function:
    row = EVERY[kind.value]

    def describe(**given: Any) -> Any:
        input, numbers = given["input"], tuple(given[parameter.name] for parameter in row.parameters)
        return plan.descriptor_type(kind, input.shape, _mask(input, given["dim"]), input.element, given["keepdim"], numbers)

    kinds = inspect.Parameter
    arrays = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in leading]
    only = kinds.KEYWORD_ONLY if row.name in NAMED else kinds.POSITIONAL_OR_KEYWORD
    along = kinds("dim", only, annotation=int | None if row.name in SINGLE else Axes | None, default=None)
    if row.is_choice:
        along = along.replace(annotation=int, default=kinds.empty)
    numbers = [kinds(each.name, kinds.KEYWORD_ONLY, annotation=float, default=each.default) for each in row.parameters]
    keepdim = kinds("keepdim", kinds.KEYWORD_ONLY if numbers else only, annotation=bool, default=False)
    describe.__signature__ = inspect.Signature([*arrays, along, *numbers, keepdim])  # type: ignore[attr-defined]
    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = says
    return Function(describe, plan, gradient)


def _declare_all() -> None:
    for kind in (*ReduceKind, *ReducePairKind):
        row = EVERY[kind.value]
        plan, backward = _plans(kind)
        gradient = None if backward is None else f"{row.name}_backward"
        globals()[row.name] = _declare(kind, plan, row.name, ("input",), row.says, gradient)
        if backward is not None and gradient is not None:
            leading = tuple(operand.name for operand in backward.args_type.OPERANDS if not operand.writes)
            says = f"The gradient of {row.name}, from {'those of its results' if 'd_second' in leading else 'that of its result'}."
            globals()[gradient] = _declare(kind, backward, gradient, leading, says)


def _plans(kind: Any) -> tuple[Any, Any]:
    """The plan of a reduction and that of its gradient, if it has one."""
    row = EVERY[kind.value]
    if row.is_choice:
        return ReducePairPlan, ReduceChoiceBackwardPlan
    plans = (ReducePlan, ReduceBackwardPlan) if row.second is None else (ReducePairPlan, ReducePairBackwardPlan)
    return plans if row.gradient is not None else (plans[0], None)


_declare_all()


def _norm(plan: Any, input: View, p: float, dim: Axes | None, keepdim: bool) -> Any:
    return plan.descriptor_type(ReduceKind("vector_norm"), input.shape, _mask(input, dim), input.element, keepdim, (p,))


@function(ReducePlan, gradient="norm_backward")
def norm(input: View, p: float = 2.0, dim: Axes | None = None, keepdim: bool = False) -> ReduceDescriptor:
    """The norm of power p, as vector_norm with PyTorch's older arguments."""
    return _norm(ReducePlan, input, p, dim, keepdim)  # type: ignore[no-any-return]


@function(ReduceBackwardPlan)
def norm_backward(
    d_result: View, input: View, result: View, p: float = 2.0, dim: Axes | None = None, keepdim: bool = False
) -> ReduceBackwardDescriptor:
    """The gradient of norm, from that of its result."""
    return _norm(ReduceBackwardPlan, input, p, dim, keepdim)  # type: ignore[no-any-return]


@function(ReduceToPlan)
def sum_to_size(input: View, size: tuple[int, ...]) -> ReduceToDescriptor:
    """The sum to a shape that broadcasts to that of the input."""
    return ReduceToDescriptor(input.shape, tuple(size), input.element)
