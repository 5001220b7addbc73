"""The integral along an axis up to every point, by the trapezoidal rule, and its gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Shape
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import HALVES, register
from baracuda_kernels.ops.calculus import reference
from baracuda_kernels.ops.calculus.kernels import kernels
from baracuda_kernels.ops.calculus.kind import NeighbourKind
from baracuda_kernels.ops.calculus.running import Running, gradient_formulas, running_formulas
from baracuda_kernels.ops.calculus.runs import Buffer, Run, Scan, runs
from baracuda_kernels.ops.calculus.trapezoid import (
    TrapezoidBackwardDescriptor,
    TrapezoidCases,
    TrapezoidDescriptor,
    area,
    computed_in,
    gradient_runs,
)
from baracuda_kernels.ops.elementwise.guarantee import in_its_register
from baracuda_kernels.ops.scan.rows import ScanFormulas

__all__ = [
    "CumulativeTrapezoidArgs", "CumulativeTrapezoidBackwardArgs", "CumulativeTrapezoidBackwardDescriptor",
    "CumulativeTrapezoidBackwardPlan", "CumulativeTrapezoidDescriptor", "CumulativeTrapezoidPlan",
]  # fmt: skip

RESULT, BUFFER = 2, -1  # of the forward
UPSTREAM, AREAS = 0, -2  # of the backward


@dataclass(frozen=True)
class CumulativeTrapezoidDescriptor(TrapezoidDescriptor):
    """The integrals along `axis` of a tensor of `shape` up to every point but the first, over points `x` or over steps of `dx`."""

    WHOLE = ()

    @property
    def result_shape(self) -> Shape:
        return self.with_extent(self.count)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The areas of 16-bit floats, and what they come to, in f32."""
        return (Buffer(register(self.element), tuple(range(len(self.shape))), self.count),) if self.element in HALVES else ()

    @property
    def runs(self) -> Sequence[Run | Scan]:
        return _running_areas(self.extent, self.element, self.has_x)

    @property
    def running(self) -> Running:
        operands = (0, 1) if self.has_x else (0,)
        formulas = _running_formulas(self.element, self.has_x)
        bounds = (self.extent,) * len(operands)
        return Running(formulas, self.result_shape, self.axis, operands, bounds, RESULT, next_to=1, is_back=False)


@dataclass(frozen=True)
class CumulativeTrapezoidBackwardDescriptor(TrapezoidBackwardDescriptor):
    """The gradients of an integrand and its points, from those of the integrals up to each."""

    WHOLE = ()

    @property
    def result_shape(self) -> Shape:
        return self.with_extent(self.count)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The gradients of the widths between points that lines share, and of all areas."""
        widths = Buffer(self.computing, (self.axis,), self.count if self.shares_points else 0)
        return widths, Buffer(register(self.element), tuple(range(len(self.shape))), self.count)

    @property
    def runs(self) -> Sequence[Run | Scan]:
        return _gradients(self.extent, self.element, self.has_x, self.shares_points)

    @property
    def running(self) -> Running | None:
        if self.has_x or not self.count:
            return None
        return Running(
            gradient_formulas(self.element), self.shape, self.axis, (UPSTREAM,), (self.count,), 3, next_to=-1, is_back=True
        )


@functools.cache
def _running_formulas(element: ElementKind, has_x: bool) -> ScanFormulas:
    return running_formulas(area(0, 1, element, has_x), (0, 1) if has_x else (0,), element, 0 if has_x else 1)


@functools.lru_cache(maxsize=1024)
def _running_areas(extent: int, element: ElementKind, has_x: bool) -> Sequence[Run | Scan]:
    """Areas, and their running sums in the same memory: that of the result, but for 16-bit floats."""
    count, parameters, buffers = max(0, extent - 1), 0 if has_x else 1, (register(element),)
    target = BUFFER if element in HALVES else RESULT
    found: list[Run | Scan] = [*runs(target, count, (), area(0, 1, element, has_x), element, parameters, buffers)]
    found.append(Scan(target, target, count))
    if target == BUFFER:
        found += runs(RESULT, count, (), lambda read, place: read(BUFFER, place), element, parameters, buffers)
    return found


@functools.lru_cache(maxsize=1024)
def _gradients(extent: int, element: ElementKind, has_x: bool, shares_points: bool) -> Sequence[Run | Scan]:
    """An area has a part in all integrals from its own on: its gradient is a running sum from the last of them back."""
    count, buffers = max(0, extent - 1), (computed_in(element, has_x), register(element))
    found: list[Run | Scan] = []
    if element in HALVES:
        found += runs(AREAS, count, (), lambda read, place: read(UPSTREAM, place), element, 0 if has_x else 1, buffers)
    found.append(Scan(AREAS if element in HALVES else UPSTREAM, AREAS, count, reverse=True))
    return [*found, *gradient_runs(extent, element, has_x, shares_points, lambda read, place: read(AREAS, place))]


class CumulativeTrapezoidArgs(Args):
    y: TensorRef = read("shape", "the integrand")
    x: TensorRef = read("points_shape", "the points where it is given", present="has_x", broadcasts=True)
    result: TensorMut = write("result_shape", "the integrals up to every point but the first")


class CumulativeTrapezoidBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the integrals")
    y: TensorRef = read("shape", "the integrand, of which only the shape matters where there are no points")
    x: TensorRef = read("points_shape", "the points where it is given", present="has_x", broadcasts=True)
    d_y: TensorMut = write("shape", "the gradient of the integrand")
    d_x: TensorMut = write("points_shape", "the gradient of the points", present="has_x")


class CumulativeTrapezoidCases(TrapezoidCases):
    # Shape, axis, and of points how many axes they have: rows and columns, one point or none, split among threads and programs, columns in strips.
    CORNERS = (
        ((9, 18), 1, 1), ((2, 9, 5), 1, 3), ((6, 300), 1, 0), ((17, 9), 0, 0), ((5, 1), 1, 1), ((5, 0, 3), 1, 0), ((70_001,), 0, 0), ((3, 20_001), 1, 1),
        ((90, 40), 0, 0), ((90, 40), 0, 1),
    )  # fmt: skip
    IN_STRIPS: ClassVar[tuple[int, ...]] = (0, 1, 2)  # of points how many axes they have, where columns are walked down in strips

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        yield from super().tiles(element)
        if element is not ElementKind.F16:  # as BF16
            for rank in self.IN_STRIPS:
                yield self.problem((600, 64), 0, rank, element)
        if element is ElementKind.F32:
            yield self.problem((90, 64), 0, 0, element)


class CumulativeTrapezoidBackwardCases(CumulativeTrapezoidCases):
    IN_STRIPS = (0,)

    def is_long_chain(self) -> bool:
        return True

    def summed_extent(self, descriptor: Any) -> int:
        """The extent of a line, and how many lines share their points."""
        return max(1, math.prod(descriptor.shape))


def fixed_by_layout(descriptor: TrapezoidDescriptor) -> PrecisionGuarantee:
    """How running sums are joined as a tree depends on how lines lie, and how many there are."""
    return replace(in_its_register(descriptor), batch_invariant=False)


class CumulativeTrapezoidPlan(Plan[CumulativeTrapezoidDescriptor, CumulativeTrapezoidArgs]):
    """The integral along an axis up to every point, by the trapezoidal rule."""

    category, op = OpCategory.SCAN, NeighbourKind.CUMULATIVE_TRAPEZOID
    reference = staticmethod(reference.cumulative_trapezoid)
    cases = CumulativeTrapezoidCases(CumulativeTrapezoidDescriptor)
    kernels = kernels("cumulative_trapezoid", in_its_register, FLOATS, on_cuda=fixed_by_layout)


class CumulativeTrapezoidBackwardPlan(Plan[CumulativeTrapezoidBackwardDescriptor, CumulativeTrapezoidBackwardArgs]):
    """The gradients of an integrand and its points, from those of the integrals up to each."""

    category, op = OpCategory.SCAN, NeighbourKind.CUMULATIVE_TRAPEZOID
    reference = staticmethod(reference.cumulative_trapezoid_backward)
    cases = CumulativeTrapezoidBackwardCases(CumulativeTrapezoidBackwardDescriptor)
    kernels = kernels("cumulative_trapezoid_backward", in_its_register, FLOATS, on_cuda=fixed_by_layout)
