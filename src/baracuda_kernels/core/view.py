"""What a function's description sees of an array: its name, shape and element."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeVar

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.layout import Layout, Shape
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["Axes", "Dtype", "View", "broadcast_shape", "element_from", "member"]

Axes = int | tuple[int, ...]
E = TypeVar("E", bound=Enum)


class Dtype:
    """The type of an option that says which element is meant: an `ElementKind`, its name, or a framework's dtype."""


class View:
    """An input as a description sees it. What it is asked for and does not have is an error that names it."""

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
        rank = len(self.shape)
        try:
            position = operator.index(axis)
        except TypeError:
            position = rank
        if isinstance(axis, bool) or not -rank <= position < rank:
            self._refuse(ReasonCode.AXIS_OUT_OF_RANGE, name, repr(axis), f"an int, {-rank} <= {name} < {rank}")
        return position % rank

    def axes(self, axes: Axes | Sequence[int], name: str = "axes") -> Shape:
        """One axis or several, none of them twice, counted from the first."""
        several = tuple(axes) if isinstance(axes, Sequence) and not isinstance(axes, str) else (axes,)
        positions = tuple(self.axis(axis, name) for axis in several)
        if len(set(positions)) < len(positions):
            self._refuse(ReasonCode.VALUE_OUT_OF_RANGE, name, repr(axes), "no axis twice")
        return positions

    def _refuse(self, code: ReasonCode, where: str, got: object, wanted: object) -> None:
        raise InvalidProblem(self.function, [Reason(code, where, got, wanted)])


def broadcast_shape(function: str, operands: Mapping[str, View]) -> Shape:
    """The shape that all operands fit."""
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
    """What an option says which is a `Dtype`."""
    try:
        return ElementKind.of(value)
    except ValueError:
        wanted = f"a dtype or one of {', '.join(map(str, ElementKind))}"
        raise InvalidProblem(function, [Reason(ReasonCode.WRONG_TYPE, name, repr(value), wanted)]) from None


def member(kind: type[E], name: str, value: E | str) -> E:
    """A member of an enum, also by its value."""
    for each in kind:
        if each is value or each.value == value:
            return each
    wanted = " or ".join(f"{kind.__name__}.{each.name}" for each in kind)
    raise InvalidProblem(name, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, repr(value), wanted)])
