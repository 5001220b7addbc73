"""What a row of the tables says of an op: its formula, once, and whatever cannot be derived from that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["ALL", "BOOLS", "INTEGERS", "NUMBERS", "Choice", "ElementwiseRow", "Parameter"]

INTEGERS = (ElementKind.I8, ElementKind.I16, ElementKind.I32, ElementKind.I64, ElementKind.U8)
BOOLS = (ElementKind.BOOL,)
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, *BOOLS)
Interval = tuple[float, float]


@dataclass(frozen=True)
class Parameter:
    """A scalar that is given with the op and not in a tensor."""

    name: str
    default: float
    doc: str = ""
    least: float | str = -math.inf  # what it may be at least: a number, or the parameter of that name

    @property
    def is_integer(self) -> bool:
        """Whether it decides what is computed, rather than with which numbers."""
        return isinstance(self.default, int)


@dataclass(frozen=True)
class Choice:
    """An option of a function whose value says which row is meant, the first one by default."""

    option: str
    rows: Mapping[str | int | None, str] = field(hash=False)  # by the option's value
    otherwise: str | None = None  # the row for all other integers, which are its parameter


@dataclass(frozen=True)
class ElementwiseRow:
    """One elementwise op.

    `formula` takes an expression for each operand, then one for each parameter, and gives the result. Halves are computed in f32, with
    forms of functions that are near enough for them, and so is f32, unless it would not keep to 4 units in the last place: then the op
    is `wide`, and f32 is computed in f64.
    """

    name: str  # the inventory's
    formula: Callable[..., Any]
    says: str  # one line for the docs
    elements: tuple[ElementKind, ...] = FLOATS
    result: ElementKind | None = None  # by default that of the operands
    parameters: tuple[Parameter, ...] = ()
    domain: tuple[Interval, ...] = ((-4.0, 4.0),)  # from which tests draw each operand; the last one is that of all others too
    wide: bool = False
    gradient: Callable[..., Any] | None = None  # instead of the derived one: of the result's gradient, operands and parameters
    differentiable: bool = True
    choice: Choice | None = None  # an option of the function that chooses another row instead
    operands: tuple[str, ...] = ()  # what the function calls them, where that is not what the plan does
    former: Mapping[str, str] = field(default_factory=dict, hash=False)  # earlier names, each with today's
    left_out: Mapping[str, float] = field(default_factory=dict, hash=False)  # which of them may be, and the number each then is
    by_channel: bool = False  # the second operand may be of rank 1, for axis 1
    by_element: Callable[[ElementKind], Callable[..., Any]] | None = None  # makes the formula, if the element in memory matters

    def reasons_against(self, numbers: Sequence[float]) -> Iterator[Reason]:
        """Yields a reason for each parameter that is less than it may be."""
        values = {parameter.name: number for parameter, number in zip(self.parameters, numbers, strict=True)}
        for parameter in self.parameters:
            least = values[parameter.least] if isinstance(parameter.least, str) else parameter.least
            if values[parameter.name] < least:
                wanted = f"at least {parameter.least}"
                yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, parameter.name, values[parameter.name], wanted)

    def more_results(self, element: ElementKind) -> tuple[ElementKind, ...]:
        """The elements of the results but the first, of operands of that element."""
        return ()

    def formula_for(self, element: ElementKind) -> Callable[..., Any]:
        """The formula for operands of that element."""
        return self.formula if self.by_element is None else self.by_element(element)
