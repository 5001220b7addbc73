"""Ops on neighbours along an axis, as runs: places that follow from the same reads by the same formula.

What a place reads, it reads so many places from its own. So a run is an elementwise op on shifted views of its operands: the same
strides, from other addresses on. The long middle is one run; at the edges, where neighbours are missing, there are some short ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, constant, in_order, input_of, parameter_of, rebuilt, register
from baracuda_kernels.formula.operations import convert, eq, where
from baracuda_kernels.formula.reduction import ELEMENT, FEW, OTHER, PLACE, Reduction

__all__ = ["Buffer", "Formula", "Read", "Reader", "Run", "Scan", "adjoint", "runs", "stored", "summed"]


class Buffer(NamedTuple):
    """Memory in the workspace between two runs: its element, the axes of the tensor that it has, and its extent along the op's."""

    element: ElementKind
    axes: tuple[int, ...]
    extent: int


class Read(NamedTuple):
    """Of an operand, by its place among the op's args, the number that is so many places further along the axis. Buffers are operands
    too: -1 is the first of them, -2 the second."""

    operand: int
    offset: int


class Run(NamedTuple):
    """`extent` places of an output, from `first` on, and what each reads as the inputs of the program. Where they are summed up, the first
    and the last one count for as much as `ends` says."""

    output: int
    first: int
    extent: int
    reads: tuple[Read, ...]
    program: Program
    ends: float = 1.0

    def goes_on_as(self, other: Run) -> bool:
        return self.first + self.extent == other.first and (self.reads, self.program) == (other.reads, other.program)

    def joined(self, other: Run) -> Run:
        return self._replace(extent=self.extent + other.extent)


class Scan(NamedTuple):
    """Running sums of an operand along the axis, in an output of the same element, which may be the operand itself."""

    input: int
    output: int
    extent: int
    reverse: bool = False


class Reader:
    """Reads for the formula of one place, and remembers what."""

    def __init__(self, place: int, element: ElementKind, buffers: Sequence[ElementKind]) -> None:
        self.place, self.element, self.buffers = place, element, buffers
        self.inputs: dict[Read, Expr] = {}

    def __call__(self, operand: int, place: int) -> Expr:
        """The number of an operand at a place along the axis."""
        return self.inputs.setdefault(Read(operand, place - self.place), input_of(len(self.inputs), self.element_of(operand)))

    def element_of(self, operand: int) -> ElementKind:
        return self.element if operand >= 0 else self.buffers[~operand]


Formula = Callable[[Reader, int], Expr]
"""What is at a place, of what is read."""


def runs(
    output: int,
    extent: int,
    turns: Iterable[int],
    formula: Callable[[Reader, int], Expr | None],
    element: ElementKind,
    parameters: int = 0,
    buffers: Sequence[ElementKind] = (),
) -> list[Run]:
    """So many places of an output, of operands and buffers of these dtypes. The formula changes nowhere but at `turns`, and need not
    change there; where it is None, nothing is written."""
    borders = sorted({0, max(0, extent), *(turn for turn in turns if 0 < turn < extent)})
    found: list[Run] = []
    for first, past in itertools.pairwise(borders):
        read = Reader(first, element, buffers)
        value = formula(read, first)
        if value is None:
            continue
        run = Run(output, first, past - first, *_compact(read, value, parameters))
        found.append(found.pop().joined(run) if found and found[-1].goes_on_as(run) else run)
    return found


def _compact(read: Reader, value: Expr, parameters: int) -> tuple[tuple[Read, ...], Program]:
    """The reads that the value needs, and the program of it."""
    order = in_order((value,))
    reads = tuple(each for each, leaf in read.inputs.items() if leaf in order)
    elements = tuple(read.element_of(each.operand) for each in reads)
    leaves = {
        read.inputs[each]: input_of(place, element) for place, (each, element) in enumerate(zip(reads, elements, strict=True))
    }
    return reads, Program(elements, (value.element,), (rebuilt(value, leaves),), parameters)


def stored(program: Program, element: ElementKind) -> Program:
    """What a program computes, as it is written to an output."""
    results = expanded((convert(program.results[0], register(element)),), element in HALVES)
    return Program(program.inputs, (element,), results, program.parameters)


def summed(run: Run, element: ElementKind) -> Reduction:
    """The sum of what a run's program computes, as it is written to an output."""
    program, counting = run.program, ElementKind.I32 if run.extent < FEW else ElementKind.I64
    (value,), (computing,) = program.results, program.outputs
    first, *others = program.inputs
    appended = (computing, first, counting, first, *others)
    total, more = input_of(0, computing), input_of(1, computing)
    places = (1 + ELEMENT, *range(1 + OTHER, len(appended)))
    leaves = {input_of(old, each): input_of(new, each) for old, (new, each) in enumerate(zip(places, program.inputs, strict=True))}
    leaves |= {parameter_of(place): parameter_of(1 + place) for place in range(program.parameters)}  # after the number of elements
    given, term = 1 + program.parameters, rebuilt(value, leaves)
    if run.ends != 1.0:
        place = input_of(1 + PLACE, counting)
        is_end = eq(place, 0) | eq(place, convert(parameter_of(0), counting) - 1)
        term = where(is_end, term * run.ends, term)
    return Reduction(
        Program((), (computing,), (constant(0, computing),), given),
        Program(appended, (computing,), (total + term,), given),
        Program((computing, computing), (computing,), (total + more,), given),
        stored(Program((computing,), (computing,), (total,), given), element),
    )


def adjoint(formula: Formula, operand: int, near: Callable[[int], Iterable[int]], upstream: Formula, like: ElementKind) -> Formula:
    """The gradient of an operand: of every result `near` its place that reads it, computed in `like`, the gradient times the slope."""

    def slope(read: Reader, place: int) -> Expr:
        total = None
        for result in near(place):
            value, mine = formula(read, result), convert(read(operand, place), like)
            if mine in in_order((value,)):
                (more,) = gradients(value, [mine], upstream(read, result))
                total = more if total is None else total + more
        return constant(0, like) if total is None else total

    return slope
