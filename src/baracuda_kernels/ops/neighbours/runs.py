"""Ops on neighbours along an axis, as runs: places that follow from the same reads by the same formula.

What a place reads, it reads so many places from its own. So a run is an op on elements of shifted views of its operands: the same
strides, from other addresses on. The long middle is one run; at the edges, where neighbours are missing, there are some short ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.derive import expanded
from baracuda_kernels.formula.expression import HALVES, Expr, Program, in_order, input_of, make, register
from baracuda_kernels.formula.operations import convert

__all__ = ["Formula", "Read", "Reader", "Run", "runs"]


class Read(NamedTuple):
    """Of an operand, by its place among the op's args, the number that is so many places further along the axis."""

    operand: int
    offset: int


class Run(NamedTuple):
    """`extent` places of an output, from `first` on, and what each reads as the inputs of the program."""

    output: int
    first: int
    extent: int
    reads: tuple[Read, ...]
    program: Program


class Reader:
    """Reads for the formula of one place, and remembers what."""

    def __init__(self, place: int, element: ElementKind) -> None:
        self.place, self.element = place, element
        self.inputs: dict[Read, Expr] = {}

    def __call__(self, operand: int, place: int) -> Expr:
        """The number of an operand at a place along the axis."""
        return self.inputs.setdefault(Read(operand, place - self.place), input_of(len(self.inputs), self.element))


Formula = Callable[[Reader], Expr]
"""What is at the reader's place."""


def runs(output: int, extent: int, turns: Iterable[int], formula: Formula, element: ElementKind, parameters: int = 0) -> list[Run]:
    """So many places of an output. The formula changes nowhere but at `turns`, and need not change there."""
    borders = sorted({0, max(0, extent), *(turn for turn in turns if 0 < turn < extent)})
    found: list[Run] = []
    for first, past in itertools.pairwise(borders):
        reader = Reader(first, element)
        reads, program = _compact(reader, formula(reader), parameters)
        if found and (found[-1].reads, found[-1].program) == (reads, program):
            first = found.pop().first
        found.append(Run(output, first, past - first, reads, program))
    return found


def _compact(reader: Reader, value: Expr, parameters: int) -> tuple[tuple[Read, ...], Program]:
    """The program of what is read and needed."""
    (result,) = expanded((convert(value, register(reader.element)),), reader.element in HALVES)
    order = in_order((result,))
    reads = tuple(read for read, each in reader.inputs.items() if each in order)
    done = {reader.inputs[read]: input_of(place, reader.element) for place, read in enumerate(reads)}
    for each in order:
        done.setdefault(each, make(each.operation, each.element, tuple(done[arg] for arg in each.args), each.value))
    return reads, Program((reader.element,) * len(reads), (reader.element,), (done[result],), parameters)
