"""Derivatives of reductions: the gradient of an element is a formula, and what it needs to know of all elements is a reduction again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from baracuda_kernels.core import derivatives
from baracuda_kernels.core.derivatives import Rule, kept
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.formula.expression import input_of, parameter_of
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.fusion.fuse import Formula, function_of, written
from baracuda_kernels.ops.fusion.tracing import Trace
from baracuda_kernels.ops.reduction.joint import ReduceJointBackwardPlan
from baracuda_kernels.ops.reduction.pairs import ReduceChoiceBackwardPlan, ReducePairBackwardPlan
from baracuda_kernels.ops.reduction.reduction import ReduceBackwardPlan
from baracuda_kernels.ops.reduction.trace import TraceBackwardPlan, TracePlan

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule:
    return _trace if function.plan is TracePlan else derivatives.reduced(function)


def composition(function: Function) -> Rule | None:
    if function.plan is TraceBackwardPlan:
        return _trace_backward
    if function.plan is ReduceChoiceBackwardPlan:
        return derivatives.weighted(function, next(iter(function.inputs)))
    of_rows = (ReduceBackwardPlan, ReducePairBackwardPlan, ReduceJointBackwardPlan)
    return _of_row(function) if function.plan in of_rows else None


def _trace(f: Any, t_input: Any, **_: Any) -> Any:
    return f("trace")(t_input)


def _trace_backward(f: Any, d_result: Any, input: Any) -> Any:
    diagonal = f("trace_backward")(f.ones_like(f.constant(d_result)), f.constant(input))
    return f.constant(diagonal) * d_result.reshape(*d_result.shape, 1, 1)


def _of_row(function: Function) -> Rule:
    """The row's formula as a fused function of gradients, elements, results and helpers."""
    count = len(function.outputs)  # of operands
    several = (len(function.inputs) - count) // 2  # results

    def rule(f: Any, **given: Any) -> Any:
        problem = f.describe(function, given)
        arrays = [given[name] for name in function.inputs]
        own = _own_element(arrays)
        arrays = [each if each.dtype == own else f("cast")(each, own) for each in arrays]
        operands = arrays[several : several + count]
        if problem.row.helpers[:1] in (("product_of_others",), ("product_of_present_others",)):
            found: tuple[Any, ...] = (_product(f, problem, *arrays),)
        else:
            of_lines = [each.reshape(kept(problem)) for each in (*arrays[:several], *arrays[several + count :])]
            helpers = [_helper(f, problem, each, operands) for each in problem.row.helpers]
            everything = (*of_lines[:several], *operands, *of_lines[several:], *helpers)
            numbers = written([tuple(map(float, (problem.count, *problem.formula_numbers)))] * len(FLOATS))
            formulas = _slopes(type(problem), problem.kind, problem.numbers)
            found = tuple(f(each.name)(numbers, *everything) for each in formulas)
        originals = [given[name] for name in function.inputs][several : several + count]
        back = [
            each if each.dtype == like.dtype else f("cast")(each, like.dtype) for each, like in zip(found, originals, strict=True)
        ]
        return tuple(back)

    return rule


def _own_element(arrays: list[Any]) -> Any:
    """The widest of the arrays' elements: results may have another one than what they are of."""
    return max((each.dtype for each in arrays), key=lambda dtype: dtype.itemsize)


@remembered(1024)
def _slopes(descriptor: Any, kind: Any, numbers: tuple[float, ...]) -> tuple[Formula, ...]:
    row = descriptor(kind, (1,), 1, ElementKind.F64, False, numbers).row
    several = 1 if row.second is None else 2

    def traces(element: ElementKind) -> list[Trace]:
        computing = row.computed(element)
        places = 2 * several + row.operands + len(row.helpers)
        given = [convert(input_of(place, element), computing) for place in range(places)]
        count, *parameters = (convert(parameter_of(place), computing) for place in range(1 + len(row.parameters)))
        assert row.gradient is not None
        found = row.gradient(*given, count, *parameters)
        slopes = found if isinstance(found, tuple) else (found,)
        return [Trace(element, computing, places, 1 + len(row.parameters), slope) for slope in slopes]

    every = [traces(element) for element in FLOATS]
    return tuple(function_of(dict(zip(FLOATS, each, strict=True))) for each in zip(*every, strict=True))


# --- helpers -------------------------------------------------------------------------------------------------------------------------


def _product(f: Any, problem: Any, d: Any, x: Any, y: Any) -> Any:
    """The gradient of prod: what is before an element times what is behind it, so that nothing is divided by zero."""
    is_nan = f("isnan")(f.constant(x))
    lines = f("where")(is_nan, 1.0, x) if problem.kind.value == "nanprod" else x
    others = [axis for axis in range(x.ndim) if axis not in problem.axes]
    order = [*others, *problem.axes]
    lines = f.permuted(lines, order)
    moved, shape = lines.shape, (*(x.shape[axis] for axis in others), math.prod(x.shape[axis] for axis in problem.axes))
    lines = lines.reshape(shape)
    before, behind = (_without_last(f, lines, reverse) for reverse in (False, True))
    back = [order.index(axis) for axis in range(x.ndim)]
    found = f.permuted((before * behind).reshape(moved), back) * d.reshape(kept(problem))
    return f("where")(is_nan, 0.0, found) if problem.kind.value == "nanprod" else found


def _without_last(f: Any, lines: Any, reverse: bool) -> Any:
    """The running product along the last axis of all elements before each."""
    if not lines.shape[-1]:
        return lines
    so_far, first = f("cumprod")(lines, -1, reverse), f.ones_like(lines[..., :1])
    return f.cat([so_far[..., 1:], first] if reverse else [first, so_far[..., :-1]], -1)


def _helper(f: Any, problem: Any, row: Any, operands: list[Any]) -> Any:
    """What a gradient needs to know of all elements, with the axes kept."""
    name, along = row if isinstance(row, str) else row.name, {"dim": problem.axes, "keepdim": True}
    x = operands[0]
    if name in _OF_PAIRS:
        return f("sum")(f.expand(_OF_PAIRS[name](*operands), problem.shape), **along)
    if len(operands) == 2:
        x = x - operands[1] + sum(problem.numbers[1:])  # which is eps, of a distance that has one
    if name in _MEANS:
        return f(_MEANS[name])(x, **along)
    x = f.constant(x)
    if name in _EXTREMES:
        return f(_EXTREMES[name])(x, **along)
    return f("sum")(f("cast")(_COUNTED[name](f, x, along), x.dtype), **along)


def _tied(best: str, of_size: bool = False) -> Callable[..., Any]:
    def rule(f: Any, x: Any, along: dict[str, Any]) -> Any:
        values = f("abs")(x) if of_size else x
        return f("eq")(values, f(best)(values, **along))

    return rule


_OF_PAIRS: dict[str, Callable[..., Any]] = {
    "products": lambda x, other: x * other,
    "squares": lambda x, other: x * x,
    "other_squares": lambda x, other: other * other,
    "weighted": lambda x, other: x * other,
    "weights": lambda x, other: other,
}
_MEANS = {"middle": "mean", "middle_of_present": "nanmean"}
_EXTREMES = {"most": "amax", "least": "amin"}
_COUNTED: dict[str, Callable[..., Any]] = {
    "present": lambda f, x, along: f("eq")(x, x),
    "ties_above": _tied("nanmax"),
    "ties_below": _tied("nanmin"),
    "ties_of_size": _tied("nanmax", of_size=True),
    "ties_of_least_size": _tied("nanmin", of_size=True),
}
