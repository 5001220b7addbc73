"""A function for every row of the tables, and one for its gradients, named after the inventory."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.view import Dtype, View, broadcast_shape, element_from
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.ops.elementwise import elementwise
from baracuda_kernels.ops.elementwise.cast import CastPlan
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor, CastKind
from baracuda_kernels.ops.elementwise.rows import Parameter, Row

__all__: list[str] = []  # what it declares is found by its name

FAMILIES: tuple[tuple[Any, Any], ...] = (
    (elementwise.UnaryPlan, elementwise.UnaryBackwardPlan),
    (elementwise.BinaryPlan, elementwise.BinaryBackwardPlan),
    (elementwise.TernaryPlan, elementwise.TernaryBackwardPlan),
    (elementwise.GatedActivationPlan, elementwise.GatedActivationBackwardPlan),
)


class Elementwise(Function):
    """A function of the tables. Of expressions instead of arrays it gives its formula, for a function that is fused."""

    def __init__(self, describe: Any, plan: Any, gradient: str | None, row: Row) -> None:
        super().__init__(describe, plan, gradient)
        self.row = row

    def _first(self, seers: Any, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        like = next((value for value in (*given, *named.values()) if isinstance(value, Expr)), None)
        if like is None:
            return super()._first(seers, given, named, out, preference, stream)
        bound = self.declared.bind(*given, **named)
        bound.apply_defaults()
        numbers = (math.nan if value is None else value for value in bound.arguments.values())  # what is not given is NaN in rows
        operands = [value if isinstance(value, Expr) else constant(value, like.element) for value in numbers]
        return self.row.formula_for(like.element)(*operands)


def _option(parameter: Parameter) -> inspect.Parameter:
    """A parameter of the function; what rows have as NaN is not given there."""
    is_given = not math.isnan(parameter.default)
    kind, default = (float, parameter.default) if is_given else (float | None, None)
    return inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)


def _declare(row: Row, plan: Any, name: str, leading: Sequence[str], says: str, gradient: str | None) -> Function:
    descriptor = plan.descriptor_type
    kind, names = descriptor.KINDS(row.name), (*leading, *descriptor.OPERANDS)

    def describe(**given: Any) -> Any:
        operands = {name: given[name] for name in names}
        numbers = (given[parameter.name] for parameter in row.parameters)
        parameters = tuple(math.nan if number is None else number for number in numbers)
        first = operands[descriptor.OPERANDS[0]]
        return descriptor(kind, broadcast_shape(name, operands), first.element, parameters)

    kinds = inspect.Parameter
    arrays = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in names]
    numbers = [_option(each) for each in row.parameters]
    describe.__signature__ = inspect.Signature([*arrays, *numbers])  # type: ignore[attr-defined] # as inspect looks for it
    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = says
    return Elementwise(describe, plan, gradient, row) if not leading else Function(describe, plan, gradient)


def _declare_all() -> None:
    for plan, backward in FAMILIES:
        for row in plan.descriptor_type.TABLE.values():
            gradient = f"{row.name}_backward" if row.differentiable else None
            globals()[row.name] = _declare(row, plan, row.name, (), row.says, gradient)
            if gradient is not None:
                says = f"The gradients of {row.name}, from that of its result."
                globals()[gradient] = _declare(row, backward, gradient, ("d_result",), says, None)


_declare_all()


# --- what has a plan of its own ----------------------------------------------------------------------------------------------------


@function(CastPlan, gradient="cast_backward")
def cast(input: View, dtype: Dtype) -> CastDescriptor:
    """The numbers in another element, rounded once; to integers towards zero, as far as they reach, and 0 of NaN."""
    return CastDescriptor(input.shape, input.element, element_from("cast", "dtype", dtype))


@function(CastPlan, names={"d_result": "input", "d_input": "result"})
def cast_backward(d_result: View, input_element: Dtype) -> CastDescriptor:
    """The gradient of cast, from that of its result: the same numbers in the element of the operand."""
    return CastDescriptor(d_result.shape, d_result.element, element_from("cast_backward", "input_element", input_element))


@function(CastPlan)
def bitcast(input: View, dtype: Dtype) -> CastDescriptor:
    """The same bits as another element of the same size."""
    return CastDescriptor(input.shape, input.element, element_from("bitcast", "dtype", dtype), CastKind.BITCAST)
