"""What a row of the tables says of an op: its formula, once, and whatever cannot be derived from that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from baracuda_kernels.core.element import COMPLEXES, FLOATS, FLOATS8, UNSIGNED, ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["ALL", "BOOLS", "INTEGERS", "NUMBERS", "REAL", "STORED", "Choice", "ElementwiseRow", "OfComplex", "Parameter"]

INTEGERS = (ElementKind.I8, ElementKind.I16, ElementKind.I32, ElementKind.I64, *UNSIGNED)
BOOLS = (ElementKind.BOOL,)
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, *BOOLS)
REAL = (*ALL, *FLOATS8)  # what can be compared, though not all of it be computed with
STORED = (*REAL, *COMPLEXES)  # what can be moved and converted
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
class OfComplex:
    """What a row is of complex numbers. Its parameters are real there too."""

    formula: Callable[..., Any] | None = None  # by default the row's
    gradient: Callable[..., Any] | None = None  # instead of the derived one
    gives_part: bool = False  # whether results are real
    wide: bool = False  # whether those of f32 are computed in f64
    domain: tuple[Interval, ...] = ((-4.0, 4.0),)  # from which tests draw both parts of each operand


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
    leading: tuple[str, ...] = ()  # parameters that the function has before the operands, and without a default
    by_element: Callable[[ElementKind], Callable[..., Any]] | None = None  # makes the formula, if the element in memory matters

    of_complex: OfComplex | None = None  # what it is of complex numbers, if they have it

    @property
    def has_gradient(self) -> bool:
        """Whether the function has one."""
        return self.differentiable

    def with_complex(self, form: OfComplex) -> Self:
        """The row for complex numbers too."""
        return replace(self, of_complex=form, elements=(*self.elements, *COMPLEXES))

    def result_for(self, element: ElementKind) -> ElementKind:
        """The element of the result, of operands of that element."""
        if element.is_complex and self.of_complex is not None and (self.of_complex.gives_part or self.result is ElementKind.F64):
            return element.part if self.of_complex.gives_part else ElementKind.C128
        return element if self.result is None else self.result

    def gradient_for(self, element: ElementKind) -> Callable[..., Any] | None:
        """The gradient for operands of that element, if it is not derived."""
        return self.of_complex.gradient if element.is_complex and self.of_complex is not None else self.gradient

    def domain_for(self, element: ElementKind, place: int) -> Interval:
        """From where tests draw an operand."""
        domain = self.of_complex.domain if element.is_complex and self.of_complex is not None else self.domain
        return domain[min(place, len(domain) - 1)]

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
        if element.is_complex and self.of_complex is not None:
            return self.of_complex.formula or self.formula
        return self.formula if self.by_element is None else self.by_element(element)
