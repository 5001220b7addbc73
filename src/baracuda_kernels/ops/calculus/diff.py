"""Differences of neighbours along an axis, of any order, and their gradients."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Shape, extents_not_negative
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import Expr, constant, register
from baracuda_kernels.ops.calculus import reference
from baracuda_kernels.ops.calculus.cases import LineCases
from baracuda_kernels.ops.calculus.descriptor import LineDescriptor
from baracuda_kernels.ops.calculus.kernels import RANK, kernels
from baracuda_kernels.ops.calculus.kind import NeighbourKind
from baracuda_kernels.ops.calculus.runs import Reader, Run, runs
from baracuda_kernels.ops.elementwise.guarantee import in_its_register
from baracuda_kernels.ops.elementwise.rows import ALL

__all__ = ["DiffArgs", "DiffBackwardArgs", "DiffBackwardDescriptor", "DiffBackwardPlan", "DiffDescriptor", "DiffPlan"]

HIGHEST = 8  # order that is one formula


@dataclass(frozen=True)
class DiffDescriptor(LineDescriptor):
    """Differences along `axis` of a tensor of `shape`, between others that it is extended by, if there are some."""

    n: int = 1  # the order of the difference
    prepended: int | None = None  # the extent of prepend along the axis; None without it
    appended: int | None = None  # the extent of append along the axis; None without it

    def check(self) -> Iterator[Reason]:
        yield from super().check()
        yield from extents_not_negative(n=self.n, prepended=self.prepended or 0, appended=self.appended or 0)

    @property
    def has_prepend(self) -> bool:
        return self.prepended is not None

    @property
    def has_append(self) -> bool:
        return self.appended is not None

    @property
    def prepend_shape(self) -> Shape:
        return self.with_extent(self.prepended or 0)

    @property
    def append_shape(self) -> Shape:
        return self.with_extent(self.appended or 0)

    @property
    def extents(self) -> tuple[int, int, int]:
        """Along the axis, of all that follows each other."""
        return self.prepended or 0, self.extent, self.appended or 0

    @property
    def result_shape(self) -> Shape:
        return self.with_extent(max(0, sum(self.extents) - self.n) if self.n else self.extent)

    @property
    def runs(self) -> list[Run]:
        return _differences(self.extents, self.n, self.element)


@dataclass(frozen=True)
class DiffBackwardDescriptor(DiffDescriptor):
    """The gradients of what differences were taken of, from that of the differences."""

    @property
    def runs(self) -> list[Run]:
        return _gradients(self.extents, self.n, self.element)


class DiffArgs(Args):
    input: TensorRef = read("shape", "the tensor")
    prepend: TensorRef = read("prepend_shape", "put before the input along the axis", present="has_prepend")
    append: TensorRef = read("append_shape", "put behind the input", present="has_append")
    result: TensorMut = write("result_shape", "the differences")


class DiffBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the differences")
    input: TensorRef = read("shape", "the tensor, of which only the shape matters")
    prepend: TensorRef = read("prepend_shape", "what was put before the input; only its shape matters", present="has_prepend")
    append: TensorRef = read("append_shape", "what was put behind the input; only its shape matters", present="has_append")
    d_input: TensorMut = write("shape", "the gradient of the tensor", may_be=("input",))
    d_prepend: TensorMut = write("prepend_shape", "the gradient of prepend", present="has_prepend", may_be=("prepend",))
    d_append: TensorMut = write("append_shape", "the gradient of append", present="has_append", may_be=("append",))


# Places among the args of what follows each other along the axis, and of what is made of it.
GIVEN, RESULT = (1, 0, 2), 3
UPSTREAM, GRADIENTS = 0, (5, 4, 6)


def _span(extents: tuple[int, int, int], n: int) -> tuple[int, int]:
    """Where the first difference begins among all that follows each other, and how many there are. Without any taken, as in
    PyTorch and NumPy, the tensor is left as it is, whatever comes before and behind it."""
    return (0, sum(extents) - n) if n else extents[:2]


@functools.lru_cache(maxsize=1024)
def _differences(extents: tuple[int, int, int], n: int, element: ElementKind) -> list[Run]:
    begin, count = _span(extents, n)
    edges = (extents[0], extents[0] + extents[1])

    def formula(read: Reader, place: int) -> Expr:
        level = []
        for each in range(begin + place, begin + place + n + 1):
            part = sum(each >= edge for edge in edges)
            level.append(read(GIVEN[part], each - (0, *edges)[part]))
        while len(level) > 1:
            level = [b ^ a if element is ElementKind.BOOL else b - a for a, b in itertools.pairwise(level)]
        return level[0]

    return runs(RESULT, count, [edge - step - begin for edge in edges for step in range(n + 1)], formula, element)


@functools.lru_cache(maxsize=1024)
def _gradients(extents: tuple[int, int, int], n: int, element: ElementKind) -> list[Run]:
    """Those of the differences, as often taken from each other, with nothing before the first and behind the last of them."""
    begin, count = _span(extents, n)
    found: list[Run] = []
    for part, (output, extent) in enumerate(zip(GRADIENTS, extents, strict=True)):
        ahead = sum(extents[:part]) - begin  # of the tensor's first element, counted as differences are

        def formula(read: Reader, place: int, ahead: int = ahead) -> Expr:
            places = range(ahead + place - n, ahead + place + 1)
            level = [read(UPSTREAM, each) if 0 <= each < count else None for each in places]
            while len(level) > 1:
                level = [_taken(b, a) for a, b in itertools.pairwise(level)]
            return constant(0, register(element)) if level[0] is None else level[0]

        found += runs(output, extent, [edge + step - ahead for edge in (0, count) for step in range(n + 1)], formula, element)
    return found


def _taken(b: Expr | None, a: Expr | None) -> Expr | None:
    """b from a; what is missing is 0."""
    if a is None or b is None:
        return a if b is None else -b
    return a - b


class DiffCases(LineCases):
    # Shape, axis, order, and extents of what comes before and behind: all that a formula can span, and less than one.
    CORNERS = (
        ((9, 18), 1, 1, None, None), ((17, 9), 0, 2, None, None), ((2, 7, 5), 1, 2, 1, None), ((3, 5), 1, 4, 2, 1), ((5, 3), 1, 0, 1, 2),
        ((2, 1, 3, 1, 2, 1, 5, 2), 6, 1, 0, 4), ((1,), 0, 1, None, None), ((5, 0, 3), 1, 1, 1, 1), ((70_001,), 0, 1, None, None),
    )  # fmt: skip

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, n, before, behind in self.CORNERS if element is ElementKind.F32 else self.CORNERS[2:3]:
            yield self.descriptor(shape, axis, element, n, before, behind)

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, n, before, behind in self.CORNERS[:3] if element is ElementKind.F32 else self.CORNERS[:1]:
            yield self.descriptor(shape, axis, element, n, before, behind)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape, axis = self.drawn_line(random)
        before, behind = (random.choice((None, None, None, 0, 1, 3)) for _ in range(2))
        return self.descriptor(shape, axis, element, random.choice((0, 1, 1, 1, 2, 3)), before, behind)

    def showcase(self) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            yield self.descriptor((4096, 4096), 1, element)
            yield self.descriptor((4096, 4096), 0, element)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        if descriptor.element.is_float:
            return {}
        shapes = {"input": descriptor.shape, "prepend": descriptor.prepend_shape, "append": descriptor.append_shape}
        return {
            name: rng.integers(0, 2 if descriptor.element is ElementKind.BOOL else 100, shape) for name, shape in shapes.items()
        }

    def steps(self, descriptor: Any) -> int:
        return int(descriptor.n)


class DiffPlan(Plan[DiffDescriptor, DiffArgs]):
    """Differences of neighbours along an axis, of any order."""

    category, op = OpCategory.SCAN, NeighbourKind.DIFF
    reference = staticmethod(reference.diff)
    cases = DiffCases(DiffDescriptor)
    kernels = kernels("diff", in_its_register, ALL, (RANK, at_most("n", HIGHEST)))


class DiffBackwardPlan(Plan[DiffBackwardDescriptor, DiffBackwardArgs]):
    """The gradients of differences."""

    category, op = OpCategory.SCAN, NeighbourKind.DIFF
    reference = staticmethod(reference.diff_backward)
    cases = DiffCases(DiffBackwardDescriptor)
    kernels = kernels("diff_backward", in_its_register, FLOATS, (RANK, at_most("n", HIGHEST)))
