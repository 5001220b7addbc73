"""How a row of the tables becomes a function, and another one for its gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View, beside, broadcast_shape
from baracuda_kernels.formula.expression import Expr, constant, number_beside, traced_like, untraced
from baracuda_kernels.ops.elementwise.rows import Choice, ElementwiseRow, Parameter

__all__ = ["Elementwise", "backward", "forward"]


MOST = 511  # the size of an integer that an option is, and a row's parameter


class Elementwise(Function):
    """A function of the tables. Of expressions instead of arrays it gives its formula, for a function that is fused."""

    def __init__(self, describe: Any, plan: Any, gradient: str | None, names: Mapping[str, str], row: ElementwiseRow) -> None:
        super().__init__(describe, plan, gradient, names)
        self.row, self.former = row, row.former

    @staticmethod
    def more(row: ElementwiseRow) -> Sequence[inspect.Parameter]:
        """Parameters besides operands and those of the row, or instead of them."""
        return ()

    def _first(self, seers: Any, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        like = next((value for value in (*given, *named.values()) if isinstance(value, Expr)), None)
        if like is None:
            return super()._first(seers, given, named, out, preference, stream)
        bound = self.bind(given, named)
        integers = [parameter.name for parameter in self.row.parameters if parameter.is_integer]
        written = [name for name in bound.arguments if name not in integers]
        bound.apply_defaults()

        def operand(name: str) -> Expr:
            value = bound.arguments[name]
            if isinstance(value, Expr):
                return untraced(value)
            if value is None:  # what is not given is NaN in rows, unless they say what it is
                return constant(self.row.left_out.get(name, math.nan), like.element)
            return number_beside(value, like) if name in written else constant(value, like.element)

        row = self.row
        operands = [operand(name) for name in (*self.inputs, *(parameter.name for parameter in row.parameters))]
        if row.choice is not None:
            descriptor: Any = self.plan.descriptor_type
            name, more = _chosen(row.choice, self.name, bound.arguments)
            row, operands = descriptor.TABLE[name], [*operands, *(constant(number, like.element) for number in more)]
        found = row.formula_for(like.element)(*operands)
        return tuple(traced_like(each, like) for each in found) if isinstance(found, tuple) else traced_like(found, like)


def _option(parameter: Parameter) -> inspect.Parameter:
    """A parameter of the function; what rows have as NaN is not given there."""
    is_given = not math.isnan(parameter.default)
    kind, default = (float, parameter.default) if is_given else (float | None, None)
    return inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)


def _chosen(choice: Choice, function: str, arguments: Mapping[str, Any]) -> tuple[str, tuple[float, ...]]:
    """The name of the row that the option names, and the parameters that it is besides."""
    value = arguments[choice.option]
    if choice.otherwise is None:
        known, wanted = isinstance(value, str | None) and value in choice.rows, " or ".join(map(repr, choice.rows))
    else:
        known, wanted = (
            isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= MOST,
            f"an int up to {MOST}",
        )
    if not known:
        raise InvalidProblem(function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, choice.option, repr(value), wanted)])
    if value in choice.rows:
        return choice.rows[value], ()
    return str(choice.otherwise), (float(value),)


def forward(row: ElementwiseRow, plan: Any, kind: type[Elementwise], results: Sequence[str] = ()) -> Function:
    """The function of a row; `results` are its names for those of the plan, where there are two."""
    gradient = f"{row.name}_backward" if row.differentiable else None
    describe, renamed = _description(row, plan, row.name, (), row.says, kind.more(row))
    return kind(describe, plan, gradient, renamed | dict(zip(results, ("first", "second"), strict=False)), row)


def backward(row: ElementwiseRow, plan: Any, of: str, upstream: str) -> Function:
    """The gradient of the function `of`, which is that of a row; `upstream` is its name for the gradient of the row's result."""
    says = f"The gradients of {of}, from that of its {upstream.removeprefix('d_')}."
    describe, renamed = _description(row, plan, f"{of}_backward", (upstream,), says, ())
    gradients = {f"d_{each}": f"d_{operand}" for each, operand in renamed.items()}
    function = Function(describe, plan, None, renamed | gradients | {upstream: "d_result"})
    function.former = row.former
    return function


def _description(
    row: ElementwiseRow, plan: Any, name: str, leading: Sequence[str], says: str, more: Sequence[inspect.Parameter]
) -> tuple[Any, dict[str, str]]:
    """How a row's descriptor follows from arrays, and the function's names of operands with the plan's. What is `more` than operands and
    parameters, the function itself sees to."""
    descriptor = plan.descriptor_type
    ours = row.operands or descriptor.OPERANDS
    kind, names = descriptor.KINDS(row.name), (*leading, *ours)
    scalars = {each: f"{operand}_value" for each, operand in zip(ours, descriptor.OPERANDS, strict=True)}

    def describe(**given: Any) -> Any:
        numbers = {each: given.get(scalar) for each, scalar in scalars.items()}
        absent = [each for each in row.left_out if given[each] is None and numbers[each] is None]
        if absent and len(absent) == len(row.left_out):
            raise InvalidProblem(name, [Reason(ReasonCode.MISSING_OPERAND, each, None, "one of them at least") for each in absent])
        operands = {each: given[each] for each in names if each not in absent}
        element, values = beside(name, operands, {each: number for each, number in numbers.items() if each not in absent})
        values |= {each: row.left_out[each] for each in absent}
        own = (given[parameter.name] for parameter in row.parameters)
        parameters = tuple(math.nan if number is None else number for number in own)
        scalar_values = {scalars[each]: number for each, number in values.items() if number is not None}
        meant, more = kind, tuple[float, ...]()
        if row.choice is not None:
            chosen, more = _chosen(row.choice, name, given)
            meant = descriptor.KINDS(chosen)
        return descriptor(meant, broadcast_shape(name, operands), element, (*parameters, *more), **scalar_values)

    kinds = inspect.Parameter
    arrays = [
        kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View, default=None if each in row.left_out else kinds.empty)
        for each in names
    ]
    numbers = [_option(each) for each in row.parameters]
    if row.choice is not None:
        first = next(iter(row.choice.rows))
        kind_of = str | None if first is None else type(first)
        numbers.append(kinds(row.choice.option, kinds.POSITIONAL_OR_KEYWORD, annotation=kind_of, default=first))
    replaced = {each.name: each for each in (*arrays, *numbers, *more)}
    describe.__signature__ = inspect.Signature(list(replaced.values()))  # type: ignore[attr-defined] # as inspect looks for it
    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = says
    describe.__module__ = f"{__package__}.functions"  # where it is found by its name
    return describe, dict(zip(ours, descriptor.OPERANDS, strict=True))
