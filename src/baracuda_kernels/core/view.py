"""What a function's description sees of an array: its name, shape and dtype."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.errors import InvalidProblem, rejection
from baracuda_kernels.core.layout import Layout, Shape
from baracuda_kernels.core.reason import Reason, ReasonCode

if TYPE_CHECKING:
    from baracuda_kernels.core.framework import Framework

__all__ = ["Axes", "Dtype", "Number", "Together", "View", "axis_of", "broadcast_shape", "element_from", "member", "scalar_for"]

Axes = int | tuple[int, ...]
E = TypeVar("E", bound=Enum)
EXACT = (1 << 53) - 1  # integers up to it are exact in the f64 that numbers are given in


class Dtype:
    """The type of an option that is a dtype: an `ElementKind`, its name, or a framework's dtype."""


class Number:
    """The type of an option that is a number in place of an array: an int, a float or a bool, which it stays."""


class View:
    """An input as a description sees it. Asking for what it does not have raises an error that names it."""

    __slots__ = ("element", "framework", "function", "name", "shape")

    def __init__(self, function: str, name: str, layout: Layout, framework: Framework | None = None) -> None:
        self.function, self.name, self.framework = function, name, framework  # whose rules dtypes are promoted by
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

    def axes(self, axes: Axes | Sequence[int] | None, name: str = "axes") -> Shape:
        """One axis or several, none of them twice, counted from the first; None is all. Rank 0 has none, whatever it is called."""
        if axes is None:
            return tuple(range(len(self.shape)))
        several = tuple(axes) if isinstance(axes, Sequence) and not isinstance(axes, str) else (axes,)
        positions = tuple(self.axis(axis, name) for axis in several)
        if len(set(positions)) < len(positions):
            self._refuse(ReasonCode.VALUE_OUT_OF_RANGE, name, repr(axes), "no axis twice")
        return positions if self.shape else ()

    def _refuse(self, code: ReasonCode, where: str, got: object, wanted: object) -> None:
        raise InvalidProblem(self.function, [Reason(code, where, got, wanted)])


def axis_of(function: str, rank: int, axis: int, name: str) -> int:
    """An axis of a shape of that rank, counted from the first. Rank 0 has one that is called 0 or -1, as rank 1 has."""
    most = max(rank, 1)
    try:
        position = operator.index(axis)
    except TypeError:
        position = most
    if isinstance(axis, bool) or not -most <= position < most:
        wanted = f"an int, {-most} <= {name} < {most}"
        raise rejection(function, [Reason(ReasonCode.AXIS_OUT_OF_RANGE, name, repr(axis), wanted)])
    return position % most


class Together:
    """Operands as an op takes them that computes in one dtype: which that is, and those of arrays and numbers."""

    def __init__(
        self, function: str, operands: Mapping[str, View | None], numbers: Mapping[str, Any], served: Collection[ElementKind]
    ) -> None:
        missing = [name for name, number in numbers.items() if operands.get(name) is None and number is None]
        arrays = {name: operand for name in numbers if (operand := operands.get(name)) is not None}
        if missing or not arrays:
            reasons = [Reason(ReasonCode.MISSING_OPERAND, name, None, "an array or a number") for name in missing]
            alone = Reason(ReasonCode.MISSING_OPERAND, next(iter(numbers)), "numbers alone", "an array, at least for one of them")
            raise InvalidProblem(function, reasons or [alone])
        self.element = _promoted(function, arrays, [type(number) for number in numbers.values() if number is not None])
        if self.element not in served and _category(self.element) < FLOATING:
            framework = next(iter(arrays.values())).framework
            if framework is not None and framework.inexact is not None:
                self.element = framework.inexact(function, self.element)
        self.numbers = {
            name: None if number is None else scalar_for(self.element, function, name, number) for name, number in numbers.items()
        }
        self.own = {name: array.element for name, array in arrays.items() if array.element is not self.element}


def _promoted(function: str, arrays: Mapping[str, View], numbers: Sequence[type]) -> ElementKind:
    """The dtype that the arrays' framework promotes them to. Numbers of Python matter only where they are of a higher category."""
    views = list(arrays.values())
    first = views[0]
    if all(view.element is first.element for view in views) and all(
        kind in _CATEGORIES and _CATEGORIES[kind] <= _category(first.element) for kind in numbers
    ):
        return first.element
    terms = [(view.element, bool(view.shape)) for view in views] + [(kind, False) for kind in numbers]
    got = " and ".join(str(getattr(kind, "__name__", kind)) for kind, _ in terms)
    reason = Reason(ReasonCode.ELEMENT, " and ".join(arrays), got, "dtypes that are promoted to one")
    if first.framework is None or first.framework.promoted is None:
        raise InvalidProblem(function, [reason])
    try:
        return first.framework.promoted(terms)
    except (TypeError, ValueError, RuntimeError):  # PyTorch has no promotion of some, and what there is may be no dtype of ours
        raise InvalidProblem(function, [reason]) from None


FLOATING = 2
_CATEGORIES: dict[type, int] = {bool: 0, int: 1, float: FLOATING, complex: 3}


def _category(element: ElementKind) -> int:
    """Of booleans, integers, floats and complex numbers, each higher than those before."""
    return 0 if element is ElementKind.BOOL else 3 if element.is_complex else FLOATING if element.is_float else 1


def scalar_for(element: ElementKind, function: str, name: str, value: Any) -> complex:
    """A scalar beside arrays of that dtype, which holds it."""
    beside = f"beside {element}"
    is_complex = isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)
    if is_complex and not element.is_complex:
        got, wanted = f"the complex {value}", f"a real number {beside}, or an array that is cast first"
        raise InvalidProblem(function, [Reason(ReasonCode.ELEMENT, name, got, wanted)])
    if element.is_float or element.is_complex:
        try:
            return complex(value) if is_complex else float(value)
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
