"""Ops as a user names them: a plan, or a function, which is a plan with its kind filled in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any, NamedTuple

from baracuda_kernels.core import registry
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.nearest import no_such
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.view import Dtype, View

# For options that have to be given, whatever the kind: an axis, a dtype, a shape, a quantile.
_ANY_VALUE: dict[Any, Any] = {int: 0, Dtype: ElementKind.F32, Shape: (), float | tuple[float, ...]: 0.5}


class UnknownOp(Exception):
    """The message suggests the nearest names."""


class Named(NamedTuple):
    """A plan, and the fields of its problems that the name says."""

    plan: type[Plan[Any, Any]]
    fields: dict[str, Any]

    def problem(self, given: dict[str, Any]) -> Descriptor:
        """The problem with these fields; the others come from the name or from the first showcase problem."""
        return self.plan.cases.from_options(self.fields | given)

    def showcase(self, kind: DeviceKind) -> Iterator[Descriptor]:
        """The showcase problems that are meant, or, where there are none of this kind, the first one made of it."""
        cases = self.plan.cases
        shown = list(cases.showcase() if kind is DeviceKind.CPU else cases.cuda_showcase())
        meant = [each for each in shown if all(getattr(each, name) == value for name, value in self.fields.items())]
        yield from meant or [self.problem({})]


def named(op: str) -> Named:
    """By the name of a plan ("unary") or of a function ("gelu")."""
    plans, functions = registry.plan_homes(), registry.function_homes()
    if op in plans:
        return Named(registry.plan(op), {})
    if op in functions:
        function = registry.function(op)
        return Named(function.plan, _kinds(function))
    answer = no_such("op", op, dict.fromkeys([*plans, *functions]))
    raise UnknownOp(f"{answer} `baracuda-kernels ops` lists the ops, `ops OP` the functions of one.")


def _kinds(function: Function) -> dict[str, Enum]:
    """What the function says of its plan's problems, asked with the arrays of one of them and its own defaults."""
    example = next(function.plan.cases.showcase())
    views = {
        name: View(function.name, name, operand.contiguous_layout(example, Device.cpu()))
        for name, operand in function.inputs.items()
        if function.declared.parameters[name].default is not None or operand.is_given(example, with_optional=True)
    }
    required = {option.name: _ANY_VALUE[option.type] for option in function.options.values() if option.is_required}
    asked = function.declared.bind(**views, **required)
    asked.apply_defaults()
    described = function.describe(**asked.arguments)
    found = {field.name: getattr(described, field.name) for field in fields(described)}
    return {name: value for name, value in found.items() if isinstance(value, Enum) and not isinstance(value, ElementKind)}
