"""Loops in formulas: numbers that are replaced by others as long as a condition holds, each element for itself.

A loop is one node: its operands are the numbers to begin with, the condition, and what the numbers are replaced by. The last two are
expressions of `carried` numbers and constants alone, which each backend writes where the loop is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, in_order, make

__all__ = ["Loop", "carried", "checked", "outside_loops", "repeated"]


class Loop(NamedTuple):
    """What a node of a loop consists of."""

    start: tuple[Expr, ...]
    condition: Expr
    following: tuple[Expr, ...]

    @classmethod
    def of(cls, node: Expr) -> Loop:
        count = len(node.args) // 2
        return cls(node.args[:count], node.args[count], node.args[count + 1 :])


def carried(place: int, element: ElementKind) -> Expr:
    """The number at that place, as the step before left it."""
    return make("carried", element, value=place)


def repeated(condition: Callable[..., Expr], step: Callable[..., Sequence[Expr]], *start: Expr) -> Expr:
    """What becomes of the first number: as long as the condition holds for an element, its numbers are replaced by those of the step.

    It has no derivative; a function that uses it says what its gradient is.
    """
    numbers = tuple(carried(place, each.element) for place, each in enumerate(start))
    return checked((*start, condition(*numbers), *step(*numbers)))


def checked(args: tuple[Expr, ...]) -> Expr:
    """The node of these operands; a text may say anything of them."""
    loop = Loop.of(make("repeated", args[0].element, args))
    if len(args) != 2 * len(loop.start) + 1 or loop.condition.element is not ElementKind.BOOL:
        raise TypeError(f"repeated: got {args}; wanted numbers, a condition, and as many numbers again")
    for begun, followed in zip(loop.start, loop.following, strict=True):
        if begun.element is not followed.element:
            raise TypeError(f"repeated: {begun.element} is followed by {followed.element}; wanted one dtype")
    if not set(loop.start) <= set(outside_loops(in_order(loop.start))):
        raise TypeError(f"repeated: got {loop.start}; wanted numbers from outside of all loops")
    places = {(place, each.element) for place, each in enumerate(loop.start)}
    for each in in_order((loop.condition, *loop.following)):
        if each.operation in ("input", "parameter", "repeated") or (
            each.operation == "carried" and (each.value, each.element) not in places
        ):
            raise TypeError(f"repeated: got {each} in its step; wanted carried numbers and constants alone")
    return make("repeated", args[0].element, args)


def outside_loops(order: Sequence[Expr]) -> list[Expr]:
    """Those of the expressions in order that are computed once: all but what depends on carried numbers."""
    inside: set[Expr] = set()
    for here in order:
        if here.operation == "carried" or (here.operation != "repeated" and not inside.isdisjoint(here.args)):
            inside.add(here)
    return [each for each in order if each not in inside]
