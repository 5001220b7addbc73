"""The formulas of slopes: what a tensor rises by in two gaps between neighbours, each times a weight that follows from the gaps alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant, parameter_of
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.calculus.runs import Formula, Reader, Run, adjoint, runs

__all__ = ["BUFFERS", "Slopes", "backward_runs", "slope_runs"]

# Of every place, for its first gap and its second one: their weights, and sums over all lines of the slope's gradient times the rise.
BUFFERS = 4
WEIGHTS, SUMS = (-1, -2), (-3, -4)
STEP = 0  # among the parameters


@dataclass(frozen=True)
class Slopes:
    """The slopes of a tensor with coordinates, by their places among the args. Without coordinates all gaps are equal."""

    input: int
    spacing: int | None
    extent: int
    edge_order: int
    element: ElementKind
    computing: ElementKind

    @property
    def last(self) -> int:
        return self.extent - 1

    def gaps(self, place: int) -> tuple[int, ...]:
        """Those before and behind a place; at an edge the nearest one, and, for order 2, the next."""
        if 0 < place < self.last:
            return place - 1, place
        return ((0, 1) if place == 0 else (self.last - 1, self.last - 2))[: self.edge_order]

    def step(self, read: Reader, operand: int, first: int, last: int) -> Expr:
        return convert(read(operand, last), self.computing) - convert(read(operand, first), self.computing)

    def rise(self, read: Reader, gap: int) -> Expr:
        return self.step(read, self.input, gap, gap + 1)

    def even(self, read: Reader, place: int) -> Expr:
        """The slope where all gaps are alike."""
        step = convert(parameter_of(STEP), self.computing)
        if 0 < place < self.last:
            return self.step(read, self.input, place - 1, place + 1) / (step * 2.0)
        rises = [self.rise(read, gap) for gap in self.gaps(place)]
        return rises[0] / step if len(rises) == 1 else (rises[0] * 3.0 - rises[1]) / (step * 2.0)

    def uneven(self, read: Reader, place: int) -> Expr:
        """The slope of the parabola through both gaps, or of the line through one."""
        return _sum(read(buffer, place) * self.rise(read, gap) for buffer, gap in zip(WEIGHTS, self.gaps(place), strict=False))

    def weight(self, read: Reader, place: int, number: int) -> Expr:
        """The weight of the first or the second gap."""
        assert self.spacing is not None
        sizes = [self.step(read, self.spacing, gap, gap + 1) for gap in self.gaps(place)]
        if len(sizes) == 1:
            return 1.0 / sizes[0]
        first, second = (size / (sizes[0] + sizes[1]) for size in sizes)
        if 0 < place < self.last:
            return (second, first)[number] / sizes[number]
        return (first + 1.0, -first)[number] / sizes[number]

    def of_sums(self, read: Reader, place: int) -> Expr:
        """What the slopes of all lines, each times its gradient, come to."""
        pairs = enumerate(zip(SUMS, self.gaps(place), strict=False))
        return _sum(self.weight(read, place, number) * read(buffer, place) for number, (buffer, _) in pairs)

    def near(self, place: int) -> range:
        """The slopes that an element, or its coordinate, can have a part in."""
        return range(max(0, place - 2), min(self.extent, place + 3))

    def runs(self, output: int, formula: Callable[[Reader, int], Expr | None]) -> list[Run]:
        turns = (1, 2, 3, self.last - 2, self.last - 1, self.last)
        return runs(
            output, self.extent, turns, formula, self.element, 1 if self.spacing is None else 0, (self.computing,) * BUFFERS
        )

    def of_gaps(self, buffers: tuple[int, int], formula: Callable[[Reader, int, int], Expr]) -> list[Run]:
        """What a formula says of every place's first gap and of its second, if it has one."""

        def of(number: int) -> Callable[[Reader, int], Expr | None]:
            return lambda read, place: formula(read, place, number) if number < len(self.gaps(place)) else None

        return [run for number, buffer in enumerate(buffers) for run in self.runs(buffer, of(number))]

    def adjoint(self, formula: Formula, operand: int, upstream: Formula) -> Formula:
        return adjoint(formula, operand, self.near, upstream, self.computing)


def _sum(terms: Iterable[Expr]) -> Expr:
    return functools.reduce(lambda a, b: a + b, terms)


def _weights(slopes: Slopes) -> list[Run]:
    return slopes.of_gaps(WEIGHTS, slopes.weight)


@functools.lru_cache(maxsize=1024)
def slope_runs(slopes: Slopes, output: int) -> list[Run]:
    if slopes.spacing is None:
        return slopes.runs(output, slopes.even)
    return [*_weights(slopes), *slopes.runs(output, slopes.uneven)]


@functools.lru_cache(maxsize=1024)
def backward_runs(slopes: Slopes, upstream: int, d_input: int, d_spacing: int) -> list[Run]:
    """The gradient of coordinates is that of the weights: what these are multiplied by is summed over all lines first."""
    one = constant(1, slopes.computing)

    def d_slope(read: Reader, place: int) -> Expr:
        return convert(read(upstream, place), slopes.computing)

    def moment(read: Reader, place: int, number: int) -> Expr:
        return d_slope(read, place) * slopes.rise(read, slopes.gaps(place)[number])

    if slopes.spacing is None:
        return slopes.runs(d_input, slopes.adjoint(slopes.even, slopes.input, d_slope))
    return [
        *_weights(slopes),
        *slopes.runs(d_input, slopes.adjoint(slopes.uneven, slopes.input, d_slope)),
        *slopes.of_gaps(SUMS, moment),
        *slopes.runs(d_spacing, slopes.adjoint(slopes.of_sums, slopes.spacing, lambda read, place: one)),
    ]
