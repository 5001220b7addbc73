"""A reduction as data: what an element adds to a contribution, how two contributions become one, and what is made of the last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.complex import in_words
from baracuda_kernels.formula.expression import Program, in_order, input_of, rebuilt

__all__ = ["ELEMENT", "FEW", "FIRST", "OTHER", "PLACE", "SEVERAL", "Reduction"]

# What is appended to a contribution: the element, its index, the first element of the sum, and the elements of other operands.
ELEMENT, PLACE, FIRST, OTHER = range(4)
FEW = (1 << 31) - (1 << 17)  # elements up to which their numbers, a tile more included, are i32
SEVERAL = 8  # elements that are appended at a time, where there is a formula for it


@dataclass(frozen=True)
class Reduction:
    """Programs for `start`, a contribution that changes none; `append`, of one and an element after it; `combine`, of two; and `finish`.

    Of their parameters the first is how many elements there are. A contribution is one number or a few, never 16-bit floats or booleans; so is what
    comes out. There are one or several operands.
    """

    start: Program
    append: Program
    combine: Program
    finish: Program
    several: Program | None = (
        None  # of a contribution and SEVERAL elements after it, where that is cheaper than one after the other
    )
    more_firsts: int = 0  # of so many other operands the first elements are appended too, last of all

    @property
    def state(self) -> tuple[ElementKind, ...]:
        return self.start.outputs

    @property
    def elements(self) -> tuple[ElementKind, ...]:
        """The dtypes of the operands."""
        appended = self.append.inputs[len(self.state) :]
        return appended[ELEMENT], *appended[OTHER : len(appended) - self.more_firsts]

    @property
    def place(self) -> ElementKind:
        """The integer dtype of an element's index."""
        return self.append.inputs[len(self.state) + PLACE]

    @property
    def operands(self) -> int:
        return len(self.elements)

    @property
    def results(self) -> tuple[ElementKind, ...]:
        return self.finish.outputs

    def in_words(self) -> Reduction:
        """For backends that have no complex numbers: see `complex.in_words`. Those of f64 are two operands, and so are their first ones."""
        if not any(element.is_complex for element in (*self.elements, *self.results)):
            return self
        append = in_words(self.append)
        more = self.elements.count(ElementKind.C128)
        if more:
            begin, order = len(self.state), [ELEMENT, 2, 3, 1, 4]  # the parts of an element, its index, the parts of the first one
            append = _in_order(append, [*range(begin), *(begin + place for place in order)])
        return Reduction(self.start, append, self.combine, in_words(self.finish), None, more)

    def uses(self, what: int) -> bool:
        """Whether the formula reads this part of a contribution: the element, its index, the first element or another operand."""
        place = len(self.state) + what
        return any(each.operation == "input" and each.value == place for each in in_order(self.append.results))

    def _programs(self) -> Iterator[Program]:
        yield from (self.start, self.append, self.combine, self.finish)
        if self.several is not None:
            yield self.several

    def text(self) -> str:
        return "\n\n".join(program.text() for program in self._programs())

    @classmethod
    def read(cls, text: str) -> Reduction:
        """The reduction of a text that `text` wrote."""
        start, append, combine, finish, *several = (Program.read(part) for part in text.split("\n\n"))
        return cls(start, append, combine, finish, several[0] if several else None)


def _in_order(program: Program, order: list[int]) -> Program:
    """The program with its inputs in another order: at each place the one that was at that of the order."""
    inputs = tuple(program.inputs[place] for place in order)
    leaves = {input_of(old, program.inputs[old]): input_of(new, program.inputs[old]) for new, old in enumerate(order)}
    return Program(inputs, program.outputs, tuple(rebuilt(result, leaves) for result in program.results), program.parameters)
