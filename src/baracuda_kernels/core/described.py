"""The parameters and results of a function, derived from its description and its plan's operands."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from baracuda_kernels.core.args import Access, Operand
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import Number

__all__ = ["COMMON", "RETURN", "Described", "Option"]

COMMON = ("out", "preference", "stream")  # what every function takes
RETURN = "return_"


@dataclass(frozen=True)
class Option:
    """A parameter that is not an array."""

    name: str
    type: Any  # its annotation
    default: Any  # inspect.Parameter.empty where there is none

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


class Described:
    """The parameters and results of a function, which may have its own `names` for the plan's operands."""

    former: Mapping[str, str] = {}  # names that parameters had before, each with today's

    def __init__(
        self, describe: Callable[..., Descriptor], plan: type[Plan[Any, Any]], names: Mapping[str, str] | None = None
    ) -> None:
        self.describe, self.plan = describe, plan
        self.names = {operand: name for name, operand in (names or {}).items()}  # by the plan's own
        operands = self.renamed(plan.args_type.OPERANDS)
        self.name = self.__name__ = self.__qualname__ = describe.__name__
        self.__doc__, self.__module__ = describe.__doc__, describe.__module__
        reads = {operand.name: operand for operand in operands if not operand.writes}
        self.scalars = {name: operand.scalar for name, operand in reads.items() if operand.scalar is not None}
        own = inspect.signature(describe, eval_str=True)
        hidden = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Number | None)
            for name in self.scalars.values()
        ]
        shown = [each for each in own.parameters.values() if each.name not in self.scalars.values()]
        self.public, self.declared = own.replace(parameters=shown), own.replace(parameters=[*shown, *hidden])
        parameters = self.declared.parameters.values()
        self.inputs: dict[str, Operand] = {each.name: reads[each.name] for each in parameters if each.name in reads}
        self.options = {
            each.name: Option(each.name, each.annotation, each.default) for each in parameters if each.name not in reads
        }
        self.outputs: dict[str, Operand] = {operand.name: operand for operand in operands if operand.access is Access.WRITE}
        missing = [name for name, operand in reads.items() if name not in self.inputs and operand.present_rule is True]
        if missing:
            raise TypeError(f"{self.name}: {plan.__name__} also reads {', '.join(missing)}")
        # The public signature: arrays instead of views, and what every function takes.
        public = [each.replace(annotation=inspect.Parameter.empty) if each.name in reads else each for each in shown]
        public += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COMMON]
        self.__signature__ = inspect.Signature(public)

    def renamed(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        """The plan's operands by the function's names for them."""
        return tuple(replace(each, name=self.names.get(each.name, each.name)) for each in operands)

    def bind(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> inspect.BoundArguments:
        """Every argument with its parameter. Raises for too many, too few or unknown arguments."""
        try:
            return self.declared.bind(*given, **named)
        except TypeError as cause:
            places = list(self.declared.parameters)
            old = [name for name in self.former if name in named and (name not in places or name in places[: len(given)])]
            if old:  # all of them, since a former name may be another parameter's today
                renamed = {name: new for name, new in self.former.items() if name in named}
                reasons = [
                    Reason(ReasonCode.UNKNOWN_OPERAND, name, "a former name", f"{new}=, as it is called now")
                    for name, new in renamed.items()
                ]
                raise rejection(self.name, reasons) from None
            raise TypeError(f"{self.name}: {cause}") from None

    def separated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with numbers in place of arrays moved to the options."""
        found = dict(arguments)
        for name, scalar in self.scalars.items():
            if isinstance(found[name], numbers.Real):
                found[scalar], found[name] = found[name], None
        return found

    def optional(self, name: str) -> bool:
        """Whether the input may be None."""
        return self.inputs[name].present_rule is not True

    def returned(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The outputs that make up the result, in order; one that this problem does not have is None."""
        return tuple(name for name in self.outputs if options.get(f"{RETURN}{name}", True))

    def results(self, descriptor: Descriptor, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the returned outputs that this problem has."""
        return tuple(name for name in self.returned(options) if self.outputs[name].is_given(descriptor, True))

    def broadcast(self, descriptor: Descriptor, layouts: Mapping[str, Layout]) -> dict[str, Layout]:
        """The layouts of the inputs as the plan sees them, broadcast."""
        return {
            name: layout.broadcast_to(self.inputs[name].shapes(descriptor)[0]) if self.inputs[name].broadcasts else layout
            for name, layout in layouts.items()
        }

    def check_inputs(self, descriptor: Descriptor, layouts: Mapping[str, Layout], device: Device) -> None:
        """Raises for unsupported inputs, where only their layouts are known."""
        seen = self.broadcast(descriptor, layouts)
        reasons = [
            reason
            for name, operand in self.inputs.items()
            for reason in operand.reasons_against(descriptor, seen.get(name), device)
        ]
        if reasons:
            raise rejection(self.name, reasons)

    def defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options: those given, and the default values of the others."""
        return {name: options.get(name, option.default) for name, option in self.options.items()}

    def call_text(self) -> str:
        """Its signature as text, without types and without the arguments that every function takes."""
        plain = [
            each.replace(annotation=inspect.Parameter.empty, default=getattr(each.default, "value", each.default))
            for each in self.public.parameters.values()
        ]
        return f"{self.name}{inspect.Signature(plain)}"

    def __reduce__(self) -> str:
        """Pickled by its name, like a plain function."""
        return self.name

    def __repr__(self) -> str:
        return f"<function {self.name}{self.__signature__}>"
