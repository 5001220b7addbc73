"""A formula as data: what it computes, as a graph of operations on single numbers.

Python's operators and the functions of `operations` and `functions` build the graph; equal expressions are the same object. A number is
computed in an element of its own, never in a 16-bit float: those are widened to f32 where they are read and rounded where they are written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core.bounded import Once
from baracuda_kernels.core.element import ElementKind

__all__ = [
    "HALVES", "MOST_NUMBERS", "Expr", "Program", "Traced", "constant", "in_order", "input_of", "make", "number_beside", "parameter_of",
    "read_by", "rebuilt", "register", "traced_like", "untraced",
]  # fmt: skip

Number = float | int | bool
HALVES = (ElementKind.F16, ElementKind.BF16)
MOST_NUMBERS = 64  # that a formula of the caller's is given with a launch

_made: dict[tuple[Any, ...], Expr] = {}


class Expr:
    """One number of a formula. Leaves have a `value`: a constant's number, an input's or a parameter's place."""

    __slots__ = ("args", "element", "operation", "value")

    def __init__(self, operation: str, element: ElementKind, args: tuple[Expr, ...], value: Number | None) -> None:
        self.operation, self.element, self.args, self.value = operation, element, args, value

    def __bool__(self) -> bool:
        raise TypeError("a formula has no branches: `where(condition, a, b)` chooses between numbers, `&` and `|` join conditions")

    def __repr__(self) -> str:
        inside = self.value if self.value is not None else ", ".join(map(repr, self.args))
        return f"{self.operation}({inside})"

    def __add__(self, other: Expr | Number) -> Expr:
        return _applied("add", self, other)

    def __radd__(self, other: Number) -> Expr:
        return _applied("add", other, self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return _applied("sub", self, other)

    def __rsub__(self, other: Number) -> Expr:
        return _applied("sub", other, self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return _applied("mul", self, other)

    def __rmul__(self, other: Number) -> Expr:
        return _applied("mul", other, self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return _applied("div", self, other)

    def __rtruediv__(self, other: Number) -> Expr:
        return _applied("div", other, self)

    def __neg__(self) -> Expr:
        return _applied("neg", self)

    def __lt__(self, other: Expr | Number) -> Expr:
        return _applied("lt", self, other)

    def __le__(self, other: Expr | Number) -> Expr:
        return _applied("le", self, other)

    def __gt__(self, other: Expr | Number) -> Expr:
        return _applied("lt", other, self)

    def __ge__(self, other: Expr | Number) -> Expr:
        return _applied("le", other, self)

    def __and__(self, other: Expr | Number) -> Expr:
        return _applied("bit_and", self, other)

    def __rand__(self, other: Number) -> Expr:
        return _applied("bit_and", other, self)

    def __or__(self, other: Expr | Number) -> Expr:
        return _applied("bit_or", self, other)

    def __ror__(self, other: Number) -> Expr:
        return _applied("bit_or", other, self)

    def __xor__(self, other: Expr | Number) -> Expr:
        return _applied("bit_xor", self, other)

    def __invert__(self) -> Expr:
        return _applied("bit_not", self)

    def __lshift__(self, other: Expr | Number) -> Expr:
        return _applied("shl", self, other)

    def __rshift__(self, other: Expr | Number) -> Expr:
        return _applied("shr", self, other)


class Traced(Expr):
    """An expression within a function of the caller's. Numbers beside it are put down in `numbers`, and are parameters: so what is compiled
    does not depend on them."""

    __slots__ = ("numbers", "whole")

    def __init__(self, whole: Expr, numbers: list[float]) -> None:
        super().__init__(whole.operation, whole.element, whole.args, whole.value)
        self.whole, self.numbers = whole, numbers

    def number(self, value: Number) -> Expr:
        """A float as the next parameter. An integer or a boolean is a constant, as are floats of which there are too many."""
        if not self.element.is_float or len(self.numbers) == MOST_NUMBERS:
            return constant(value, self.element)
        self.numbers.append(float(value))
        given = parameter_of(len(self.numbers) - 1)
        return given if self.element is given.element else make("convert", self.element, (given,))


def untraced(value: Expr) -> Expr:
    """The expression itself, by whomever it is used."""
    return value.whole if isinstance(value, Traced) else value


def traced_like(value: Expr, like: Expr) -> Expr:
    """The value, traced as part of the caller's function if `like` is."""
    return Traced(value, like.numbers) if isinstance(like, Traced) else value


def number_beside(value: Number, like: Expr) -> Expr:
    """A number that stands beside an expression, in its element."""
    return like.number(value) if isinstance(like, Traced) else constant(value, like.element)


def _applied(operation: str, *args: Expr | Number) -> Expr:
    from baracuda_kernels.formula.operations import applied  # which is about expressions

    return applied(operation, *args)


def make(operation: str, element: ElementKind, args: tuple[Expr, ...] = (), value: Number | None = None) -> Expr:
    """The expression of these parts, which there is only one of. What is made of traced ones is traced."""
    traced = next((arg for arg in args if isinstance(arg, Traced)), None)
    if traced is not None:
        return Traced(make(operation, element, tuple(map(untraced, args)), value), traced.numbers)
    key = (operation, element, args, type(value), repr(value))  # repr tells -0.0 from 0.0
    found = _made.get(key)
    if found is None:
        found = _made.setdefault(key, Expr(operation, element, args, value))
    return found


def register(element: ElementKind) -> ElementKind:
    """What a number of that element is computed in."""
    return ElementKind.F32 if element in HALVES else element


def constant(value: Number, element: ElementKind) -> Expr:
    kind = bool if element is ElementKind.BOOL else float if element.is_float else int
    return make("constant", element, value=kind(value))


def input_of(place: int, element: ElementKind) -> Expr:
    """A number of the operand at that place, which holds such elements."""
    return make("input", register(element), value=place)


def parameter_of(place: int) -> Expr:
    """A number that is given with the launch, in f64."""
    return make("parameter", ElementKind.F64, value=place)


def read_by(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """What is given for the program's inputs, in their order, and 0 for those that no result depends on."""
    read = program.read_inputs()
    return {name: size if place in read else 0 for place, (name, size) in enumerate(given.items())}


def in_order(results: tuple[Expr, ...]) -> list[Expr]:
    """Everything that the results depend on, each once and after all that it depends on."""
    order: dict[Expr, None] = {}
    stack: list[tuple[Expr, Iterator[Expr]]] = []
    for result in results:
        stack.append((result, iter(result.args)))
        while stack:
            here, rest = stack[-1]
            following = next((arg for arg in rest if arg not in order), None)
            if following is None:
                order.setdefault(here)
                stack.pop()
            else:
                stack.append((following, iter(following.args)))
    return list(order)


def rebuilt(value: Expr, leaves: Mapping[Expr, Expr]) -> Expr:
    """The expression with its leaves replaced."""
    done = dict(leaves)
    for each in in_order((value,)):
        done.setdefault(each, make(each.operation, each.element, tuple(done[arg] for arg in each.args), each.value))
    return done[value]


@dataclass(frozen=True)
class Program:
    """What a kernel computes of every element: the operands it reads, those it writes, and what it writes into each."""

    inputs: tuple[ElementKind, ...]
    outputs: tuple[ElementKind, ...]
    results: tuple[Expr, ...]
    parameters: int = 0

    @Once
    def order(self) -> list[Expr]:
        """Everything that it computes, as `in_order` has it."""
        return in_order(self.results)

    def text(self) -> str:
        """The same, written down: one line for the elements, one for every number, one for the results."""
        number = {each: str(place) for place, each in enumerate(self.order)}
        names = (" ".join(element.value for element in elements) for elements in (self.inputs, self.outputs))
        lines = [f"{' -> '.join(names)} with {self.parameters}"]
        for each in self.order:
            rest = [_written(each.value)] if each.value is not None else [number[arg] for arg in each.args]
            lines.append(" ".join([each.operation, each.element.value, *rest]))
        return "\n".join([*lines, " ".join(number[result] for result in self.results)])

    def read_inputs(self) -> list[int]:
        """The places of those that results depend on."""
        return sorted(int(each.value or 0) for each in self.order if each.operation == "input")

    @classmethod
    def read(cls, text: str) -> Program:
        """The program of a text that `text` wrote."""
        return _read(text)


@functools.lru_cache(maxsize=1024)
def _read(text: str) -> Program:
    first, *lines, last = text.split("\n")
    elements, parameters = first.split(" with ")
    inputs, outputs = (tuple(map(ElementKind, names.split())) for names in elements.split("->"))
    known: list[Expr] = []
    for line in lines:
        operation, element, *rest = line.split(" ")
        made = _leaf(operation, ElementKind(element), rest, inputs, int(parameters))
        if made is None:
            made = _of(operation, ElementKind(element), rest, known)
        if made.element is not ElementKind(element):
            raise ValueError(f"{line}: {operation} gives {made.element}")
        known.append(made)
    return Program(inputs, outputs, tuple(known[int(place)] for place in last.split()), int(parameters))


def _leaf(operation: str, element: ElementKind, rest: list[str], inputs: tuple[ElementKind, ...], parameters: int) -> Expr | None:
    if operation == "constant":
        return constant(_number(rest[0]), element)
    if operation == "input":
        return input_of(int(rest[0]), inputs[int(rest[0])])
    if operation != "parameter":
        return None
    if not 0 <= int(rest[0]) < parameters:
        raise ValueError(f"parameter {rest[0]} of {parameters}")
    return parameter_of(int(rest[0]))


def _of(operation: str, element: ElementKind, rest: list[str], known: list[Expr]) -> Expr:
    """An operation, checked like one that is traced: a text may come from anywhere."""
    from baracuda_kernels.formula import operations

    args = [known[int(place)] for place in rest]
    if operation in ("convert", "bitcast"):
        (value,) = args
        return operations.convert(value, element) if operation == "convert" else operations.bitcast(value, element)
    choices = {"where": operations.where, "rarely": operations.rarely}
    return choices[operation](*args) if operation in choices else operations.applied(operation, *args)


def _written(value: Number) -> str:
    return value.hex() if isinstance(value, float) else str(value)


def _number(text: str) -> Number:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdecimal() else float.fromhex(text)
