"""A reduction as data: what an element adds to a contribution, how two contributions become one, and what is made of the last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Program, in_order

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

    @property
    def state(self) -> tuple[ElementKind, ...]:
        return self.start.outputs

    @property
    def elements(self) -> tuple[ElementKind, ...]:
        """The dtypes of the operands."""
        appended = self.append.inputs[len(self.state) :]
        return appended[ELEMENT], *appended[OTHER:]

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
        return cls(*(Program.read(part) for part in text.split("\n\n")))
