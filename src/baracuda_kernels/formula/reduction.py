"""A reduction as data: what an element contributes, how two contributions become one, and what is made of the last one."""

from __future__ import annotations

from dataclasses import dataclass

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Program, in_order

__all__ = ["FIRST", "Reduction"]

ELEMENT, PLACE, FIRST = range(3)  # what a term is made of: the element, its number, and the first element of the sum


@dataclass(frozen=True)
class Reduction:
    """Programs for `start`, a contribution that changes none; the `term` of an element; `combine`, of two contributions; and `finish`.

    Of their parameters the first is how many elements there are. A contribution is one number or a few, never halves or truths.
    """

    start: Program
    term: Program
    combine: Program
    finish: Program

    @property
    def state(self) -> tuple[ElementKind, ...]:
        return self.start.outputs

    @property
    def element(self) -> ElementKind:
        return self.term.inputs[ELEMENT]

    @property
    def result(self) -> ElementKind:
        return self.finish.outputs[0]

    def term_uses(self, place: int) -> bool:
        return any(each.operation == "input" and each.value == place for each in in_order(self.term.results))

    def text(self) -> str:
        return "\n\n".join(program.text() for program in (self.start, self.term, self.combine, self.finish))

    @classmethod
    def read(cls, text: str) -> Reduction:
        """The reduction of a text that `text` wrote."""
        return cls(*(Program.read(part) for part in text.split("\n\n")))
