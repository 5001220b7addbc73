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
    ReduceToDescriptor,
    mask_of,
)
from baracuda_kernels.ops.reduction.reduction import ReduceBackwardPlan, ReducePlan, ReduceToPlan
from baracuda_kernels.ops.reduction.row import ReduceRow
from baracuda_kernels.ops.reduction.rows import TABLE

__all__: list[str] = []  # what it declares is found by its name, and hides what Python has under names such as sum

SINGLE = ("argmax", "argmin", "nanargmax", "nanargmin")  # along one axis, or of all elements


def _mask(input: View, dim: Axes | None) -> int:
    """All axes, as in PyTorch, if none is named."""
    return mask_of(range(len(input.shape)) if dim is None or dim == () else input.axes(dim, "dim"))


def _declare(row: ReduceRow, plan: Any, name: str, leading: tuple[str, ...], says: str, gradient: str | None) -> Function:
    kind = ReduceKind(row.name)

    def describe(**given: Any) -> Any:
        input, numbers = given["input"], tuple(given[parameter.name] for parameter in row.parameters)
        return plan.descriptor_type(kind, input.shape, _mask(input, given["dim"]), input.element, given["keepdim"], numbers)

    kinds = inspect.Parameter
    arrays = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in leading]
    dim = kinds("dim", kinds.POSITIONAL_OR_KEYWORD, annotation=int | None if row.name in SINGLE else Axes | None, default=None)
    numbers = [kinds(each.name, kinds.KEYWORD_ONLY, annotation=float, default=each.default) for each in row.parameters]
    keepdim = kinds("keepdim", kinds.KEYWORD_ONLY if numbers else kinds.POSITIONAL_OR_KEYWORD, annotation=bool, default=False)
    describe.__signature__ = inspect.Signature([*arrays, dim, *numbers, keepdim])  # type: ignore[attr-defined]
    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = says
    return Function(describe, plan, gradient)


def _declare_all() -> None:
    for row in TABLE.values():
        gradient = None if row.gradient is None else f"{row.name}_backward"
        globals()[row.name] = _declare(row, ReducePlan, row.name, ("input",), row.says, gradient)
        if gradient is not None:
            says = f"The gradient of {row.name}, from that of its result."
            globals()[gradient] = _declare(row, ReduceBackwardPlan, gradient, ("d_result", "input", "result"), says, None)


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
