"""What a function's description sees of an array: its name, shape and dtype."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.errors import InvalidProblem, rejection
from baracuda_kernels.core.layout import Layout, Shape
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["Axes", "Dtype", "Number", "View", "axis_of", "beside", "broadcast_shape", "element_from", "member", "scalar_for"]

Axes = int | tuple[int, ...]
E = TypeVar("E", bound=Enum)
EXACT = (1 << 53) - 1  # integers up to it are exact in the f64 that numbers are given in


class Dtype:
    """The type of an option that is a dtype: an `ElementKind`, its name, or a framework's dtype."""


class Number:
    """The type of an option that is a number in place of an array: an int, a float or a bool, which it stays."""


class View:
    """An input as a description sees it. Asking for what it does not have raises an error that names it."""

    __slots__ = ("element", "function", "name", "shape")

    def __init__(self, function: str, name: str, layout: Layout) -> None:
        self.function, self.name = function, name
        self.shape: Shape = layout.shape
        self.element: ElementKind = layout.element

    def of_rank(self, rank: int) -> Shape:
        """The shape, which must have that many extents."""
        if len(self.shape) != rank:
            self._refuse(ReasonCode.RANK, self.name, f"shape {self.shape}", f"a rank of {rank}")
        return self.shape

    def axis(self, axis: int, name: str = "axis") -> int:
        """An axis counted from the first, where a negative one counts from the last."""
        return axis_of(self.function, len(self.shape), axis, name)

    def axes(self, axes: Axes | Sequence[int], name: str = "axes") -> Shape:
        """One axis or several, none of them twice, counted from the first."""
        several = tuple(axes) if isinstance(axes, Sequence) and not isinstance(axes, str) else (axes,)
        positions = tuple(self.axis(axis, name) for axis in several)
        if len(set(positions)) < len(positions):
            self._refuse(ReasonCode.VALUE_OUT_OF_RANGE, name, repr(axes), "no axis twice")
        return positions

    def _refuse(self, code: ReasonCode, where: str, got: object, wanted: object) -> None:
        raise InvalidProblem(self.function, [Reason(code, where, got, wanted)])


def axis_of(function: str, rank: int, axis: int, name: str) -> int:
    """An axis of a shape of that rank, counted from the first."""
    try:
        position = operator.index(axis)
    except TypeError:
        position = rank
    if isinstance(axis, bool) or not -rank <= position < rank:
        wanted = f"an int, {-rank} <= {name} < {rank}"
        raise rejection(function, [Reason(ReasonCode.AXIS_OUT_OF_RANGE, name, repr(axis), wanted)])
    return position % rank


def beside(
    function: str, operands: Mapping[str, View | None], numbers: Mapping[str, Any]
) -> tuple[ElementKind, dict[str, float | None]]:
    """The dtype of those operands that are arrays, and the numbers in place of the others."""
    missing = [name for name, operand in operands.items() if operand is None and numbers.get(name) is None]
    arrays = [operands[name] for name in numbers if operands[name] is not None]
    if missing or not arrays:
        reasons = [Reason(ReasonCode.MISSING_OPERAND, name, None, "an array or a number") for name in missing]
        alone = Reason(ReasonCode.MISSING_OPERAND, next(iter(numbers)), "numbers alone", "an array, at least for one of them")
        raise InvalidProblem(function, reasons or [alone])
    assert arrays[0] is not None
    element = arrays[0].element
    return element, {
        name: None if number is None else scalar_for(element, function, name, number) for name, number in numbers.items()
    }


def scalar_for(element: ElementKind, function: str, name: str, value: Any) -> float:
    """A scalar beside arrays of that dtype. A float beside integers would change their dtype, and is refused."""
    beside = f"beside {element}"
    if element.is_float:
        try:
            return float(value)
        except OverflowError:
            wanted = f"a number that f64 can hold {beside}"
            raise InvalidProblem(function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, "a larger integer", wanted)]) from None
    kind: Any = bool if element is ElementKind.BOOL else numbers.Integral
    if not isinstance(value, kind):
        wanted = f"{'a bool' if kind is bool else 'an integer'} {beside}, or an array that is cast first"
        raise InvalidProblem(function, [Reason(ReasonCode.ELEMENT, name, f"the {type(value).__name__} {value}", wanted)])
    low, high = LIMITS.get(element, (0, 1))
    if not max(low, -EXACT) <= value <= min(high, EXACT):
        wanted = f"an integer from {max(low, -EXACT)} to {min(high, EXACT)} {beside}, or an array"
        raise InvalidProblem(function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, value, wanted)])
    return float(value)


def broadcast_shape(function: str, given: Mapping[str, View | None]) -> Shape:
    """The shape that all given operands broadcast to."""
    operands = {name: operand for name, operand in given.items() if operand is not None}
    rank = max(len(operand.shape) for operand in operands.values())
    shape = [1] * rank
    for where, operand in operands.items():
        for axis, extent in enumerate(operand.shape, start=rank - len(operand.shape)):
            if extent != 1 and shape[axis] not in (1, extent):
                wanted = f"a shape that broadcasts to {tuple(shape)}"
                raise InvalidProblem(function, [Reason(ReasonCode.SHAPE, where, operand.shape, wanted)])
            shape[axis] = extent if shape[axis] == 1 else shape[axis]
    return tuple(shape)


def element_from(function: str, name: str, value: object) -> ElementKind:
    """The dtype that an option of type `Dtype` names."""
    try:
        return ElementKind.of(value)
    except ValueError:
        wanted = f"a dtype or one of {', '.join(map(str, ElementKind))}"
        raise rejection(function, [Reason(ReasonCode.WRONG_TYPE, name, repr(value), wanted)]) from None


def member(kind: type[E], name: str, value: E | str) -> E:
    """A member of an enum, also by its value."""
    for each in kind:
        if each is value or each.value == value:
            return each
    wanted = " or ".join(f"{kind.__name__}.{each.name}" for each in kind)
    raise InvalidProblem(name, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, repr(value), wanted)])
