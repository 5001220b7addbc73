"""How a function's signature reads as the schema of an operator: tensors first, then options, every argument given."""

from __future__ import annotations

import itertools
import numbers
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

import torch

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.function import RETURN, Function, Option
from baracuda_kernels.core.view import Dtype, Number
from baracuda_kernels.targets.aten import DTYPES

__all__ = ["Schema"]

_AXES, _NUMBERS = "int[]", "float[]"
_TYPES = {
    tuple[int, ...]: _AXES,
    tuple[float, ...]: _NUMBERS,
    Dtype: "ScalarType",
    Number: "Scalar",
    str: "str",
    float: "float",
    bool: "bool",
    int: "int",
}  # the first that an annotation allows


class Schema:
    """The arguments of an operator and its outputs.

    An operator always has the same outputs, so it returns all that the plan writes; one that a problem does not have is an empty
    tensor. A `return_` option is an argument only where the problem differs by it.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.inputs, self.outputs = tuple(function.inputs), tuple(function.outputs)
        self.conditions = {name: self._condition(operand) for name, operand in function.outputs.items()}
        self.single = len(self.outputs) == 1
        self.conditional = any(self.conditions.values())
        self.flags = tuple(f"{RETURN}{name}" for name in self.outputs)
        dropped = {*self.flags} - {*self.conditions.values()}
        self.options = tuple(name for name in function.options if name not in dropped)
        self.always = dict.fromkeys(dropped.intersection(function.options), True)  # so that the kernel returns every output
        self.arguments = self.inputs + self.options
        self.axes = tuple(name for name in self.options if self._type(name).startswith(_AXES))
        self.has_lists = bool(self.axes) or any(self._type(name).startswith(_NUMBERS) for name in self.options)
        self.elements = tuple(name for name in self.options if Dtype in _kinds(function.options[name]))
        self.numbers = tuple(name for name in self.options if Number in _kinds(function.options[name]))
        parameters = function.declared.parameters.values()
        self.positional = tuple(each.name for each in parameters if each.kind is not each.KEYWORD_ONLY)
        pairs = zip(self.arguments, self.positional, strict=False)
        self.leading = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))  # arguments to pass by position
        self.named = self.arguments[self.leading :]
        self.defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
        self.known = frozenset(function.declared.parameters)

    def text(self) -> str:
        arguments = ", ".join(f"{self._type(name)} {name}" for name in self.arguments)
        returns = ", ".join(["Tensor"] * len(self.outputs))
        return f"{self.function.name}({arguments}) -> {returns if len(self.outputs) == 1 else f'({returns})'}"

    def bind(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter of the function with its value, as a call with these has it."""
        values = dict(self.defaults)
        values.update(zip(self.positional[: len(given)], given, strict=False))  # Dynamo of PyTorch 2.9 wants them equally long
        values.update(named)
        twice = [name for name in self.positional[: len(given)] if name in named] if named else ()
        if len(values) != len(self.known) or len(given) > len(self.positional) or twice or not self.known.issuperset(named):
            self.function.bind(given, named)  # which says what is wrong
        return self.function.separated(values) if self.function.scalars else values

    def plain(self, values: Mapping[str, Any]) -> list[Any]:
        """The operator's arguments, in the forms that schemas know."""
        return [_plain(values[name], name in self.axes, name in self.elements, name in self.numbers) for name in self.arguments]

    def is_there(self, output: str, values: Mapping[str, Any]) -> bool:
        """Whether the problem has the output."""
        condition = self.conditions[output]
        if condition is None:
            return True
        is_given = values[condition] is not None and values[condition] is not False
        return is_given is not self._is_number(condition)

    def returned(self, results: Any, values: Mapping[str, Any]) -> Any:
        """What the function returns, out of all outputs of the operator."""
        if self.single:
            return results
        returned, wanted = self.function.returned(values), []
        for name, condition, result in zip(self.outputs, self.conditions.values(), results, strict=True):
            if name in returned:
                wanted.append(result if condition is None or self.is_there(name, values) else None)
        return wanted[0] if len(wanted) == 1 else tuple(wanted)

    def _condition(self, operand: Operand) -> str | None:
        """The argument that decides whether an output is there: `has_gamma` follows `gamma`, else `return_gamma`, else that there is no
        number `gamma_value`."""
        if operand.present_rule is True:
            return None
        name = str(operand.present_rule).removeprefix("has_")
        name = self.function.names.get(name, name)
        for argument in (name, f"{RETURN}{name}", f"{name}_value"):
            if argument in self.function.inputs or argument in self.function.options:
                return argument
        raise TypeError(f"{self.function.name}: nothing decides whether {operand.name} is there")

    def _is_number(self, argument: str) -> bool:
        return argument in self.function.options and Number in typing.get_args(self.function.options[argument].type)

    def _type(self, name: str) -> str:
        if name in self.inputs:
            return "Tensor?" if self.function.optional(name) else "Tensor"
        return _option_type(self.function.options[name])


def _option_type(option: Option) -> str:
    kinds = _kinds(option)
    for kind, text in _TYPES.items():
        if kind in kinds:
            return f"{text}?" if types.NoneType in kinds else text
    raise TypeError(f"the option {option.name}: {option.type} has no form in a schema")


def _kinds(option: Option) -> tuple[Any, ...]:
    """The types that an option may have."""
    return typing.get_args(option.type) if typing.get_origin(option.type) in (types.UnionType, typing.Union) else (option.type,)


def _plain(value: Any, is_axes: bool, is_element: bool, is_number: bool) -> Any:
    if (is_axes or is_number) and isinstance(value, numbers.Real) and not isinstance(value, (int, float)):
        value = int(value) if isinstance(value, numbers.Integral) else float(value)  # NumPy's, say
    if is_axes and isinstance(value, int):
        return (value,)
    if is_element and value is not None and not isinstance(value, torch.dtype):  # no union: Dynamo of PyTorch 2.9 knows none
        return DTYPES[ElementKind.of(value)]
    return value.value if isinstance(value, Enum) else value
