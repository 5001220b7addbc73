"""What a row of the tables of reductions says, and which elements its numbers are computed in and come out as.

A contribution is a tuple of numbers. `start` is one that changes no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.formula.expression import register
from baracuda_kernels.ops.elementwise.rows import Parameter

__all__ = ["BOOL", "CORRECTION", "F64", "I64", "U8", "ReduceRow", "Start", "always", "exact", "plain", "same", "summed", "wide"]

F64, I64, U8, BOOL = ElementKind.F64, ElementKind.I64, ElementKind.U8, ElementKind.BOOL
Start = Callable[[ElementKind], tuple[float, ...]]

CORRECTION = Parameter("correction", 1.0, "what is taken from the number of elements before the division")


def plain(element: ElementKind) -> ElementKind:
    """As it is: 16-bit floats in f32, booleans as the numbers 0 and 1."""
    return U8 if element is BOOL else register(element)


def exact(element: ElementKind) -> ElementKind:
    """So that no sum of integers overflows."""
    return register(element) if element.is_float else I64


def wide(element: ElementKind) -> ElementKind:
    """Where products or squares of f32 would lose bits, or leave its range."""
    return F64 if element.is_float else I64


def same(element: ElementKind) -> ElementKind:
    return element


def summed(element: ElementKind) -> ElementKind:
    return element if element.is_float else I64


def always(result: ElementKind) -> Callable[[ElementKind], ElementKind]:
    return lambda element: result


@dataclass(frozen=True)
class ReduceRow:
    """One reduction.

    `term` takes an element, its index and the first element; `combine` two contributions, one after the other; `finish` a
    contribution and how many elements there were. All but `combine` take the parameters too.
    """

    name: str
    says: str
    term: Callable[..., Any]
    combine: Callable[..., Any]
    start: Start
    finish: Callable[..., Any]
    elements: tuple[ElementKind, ...] = FLOATS
    computed: Callable[[ElementKind], ElementKind] = plain
    result: Callable[[ElementKind], ElementKind] = same
    second: Callable[[ElementKind], ElementKind] | None = None  # of the second result, where there are two
    parameters: tuple[Parameter, ...] = ()
    needs_elements: bool = False  # of nothing there is no such thing
    chosen: Callable[..., ReduceRow] | None = None  # the row for these parameters, where they decide about the formula
    gradient: Callable[..., Any] | None = None  # of the result's gradient, element, result, helpers, count and parameters
    helpers: tuple[str | ReduceRow, ...] = ()  # reductions of the input that the gradient needs
    operands: int = 1  # with two, a term takes the other's element after the first one, and a gradient after the element
    append: Callable[..., Any] | None = (
        None  # of a contribution and what a term takes, where that is simpler than to combine with a term
    )
    several: Callable[..., Any] | None = None  # of a contribution and several elements, where that is cheaper than one by one
    of_halves: ReduceRow | None = None  # with formulas for elements of 16 bits, where simpler ones are as good
    names: tuple[str, str] = ("result", "second")  # of the results, in functions
    converts: bool = False  # whether elements may be converted to others first
    is_choice: bool = False  # whether it is one of the elements, and the second result its index

    def results(self, element: ElementKind) -> tuple[ElementKind, ...]:
        return (self.result(element),) if self.second is None else (self.result(element), self.second(element))
