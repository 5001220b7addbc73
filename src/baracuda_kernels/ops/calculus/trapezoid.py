"""The integral along an axis by the trapezoidal rule, and its gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Numbers, Shape
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import Expr, constant, parameter_of, register
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.calculus import reference
from baracuda_kernels.ops.calculus.cases import LineCases
from baracuda_kernels.ops.calculus.descriptor import LineDescriptor
from baracuda_kernels.ops.calculus.kernels import kernels
from baracuda_kernels.ops.calculus.kind import NeighbourKind
from baracuda_kernels.ops.calculus.runs import Buffer, Formula, Reader, Run, Scan, adjoint, runs
from baracuda_kernels.ops.elementwise.guarantee import computed_by_itself

__all__ = [
    "TrapezoidArgs", "TrapezoidBackwardArgs", "TrapezoidBackwardDescriptor", "TrapezoidBackwardPlan", "TrapezoidCases",
    "TrapezoidDescriptor", "TrapezoidPlan", "area", "computed_in", "gradient_runs",
]  # fmt: skip


@dataclass(frozen=True)
class TrapezoidDescriptor(LineDescriptor):
    """The integral along `axis` of a tensor of `shape`, over points `x` or over steps of `dx`."""

    LINES: ClassVar[tuple[int, ...]] = (1,)
    WHOLE: ClassVar[tuple[int, ...]] = (2,)

    x_shape: Shape | None = None  # of the points: the tensor's, or one line of them for all; None where they are `dx` apart
    dx: float = 1.0  # the step between them

    def check(self) -> Iterator[Reason]:
        yield from super().check()
        if self.x_shape is None or not 0 <= self.axis < len(self.shape):
            return
        if self.x_shape not in (self.shape, (self.extent,)):
            yield Reason(ReasonCode.SHAPE, "x_shape", self.x_shape, f"{self.shape} or {(self.extent,)}")
        if self.dx != 1.0:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "dx", self.dx, "1.0, since x says how far apart its points are")

    @property
    def has_x(self) -> bool:
        return self.x_shape is not None

    @property
    def points_shape(self) -> Shape:
        return self.x_shape or ()

    @property
    def result_shape(self) -> Shape:
        return (*self.shape[: self.axis], *self.shape[self.axis + 1 :])

    @property
    def count(self) -> int:
        """How many trapezoids there are."""
        return max(0, self.extent - 1)

    @property
    def computing(self) -> ElementKind:
        return computed_in(self.element, self.has_x)

    @property
    def numbers(self) -> Numbers:
        return () if self.has_x else (self.dx,)

    @property
    def has_lines(self) -> bool:
        return len(self.points_shape) == 1

    @property
    def runs(self) -> Sequence[Run | Scan]:
        return _areas(self.extent, self.element, self.has_x)


@dataclass(frozen=True)
class TrapezoidBackwardDescriptor(TrapezoidDescriptor):
    """The gradients of an integrand and its points, from that of the integral."""

    LINES: ClassVar[tuple[int, ...]] = (2, 4)
    WHOLE: ClassVar[tuple[int, ...]] = (0,)

    @property
    def shares_points(self) -> bool:
        """Whether all lines have the same ones."""
        return self.has_lines and len(self.shape) > 1

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The gradients of the widths between points that lines share."""
        return (Buffer(self.computing, (self.axis,), self.count),) if self.shares_points else ()

    @property
    def runs(self) -> Sequence[Run | Scan]:
        return _gradients(self.extent, self.element, self.has_x, self.shares_points)


def computed_in(element: ElementKind, has_x: bool) -> ElementKind:
    """Products of f32 in f64, where they would lose bits."""
    return ElementKind.F64 if has_x and element is ElementKind.F32 else register(element)


def height(y: int, computing: ElementKind) -> Formula:
    """That of the trapezoid from a place to the next, of an integrand by its place among the args."""
    return lambda read, place: (convert(read(y, place), computing) + convert(read(y, place + 1), computing)) * 0.5


def width(x: int | None, computing: ElementKind) -> Formula:
    """The width of a trapezoid, from points or `dx`."""
    if x is None:
        return lambda read, place: convert(parameter_of(0), computing)
    return lambda read, place: convert(read(x, place + 1), computing) - convert(read(x, place), computing)


def product(a: Formula, b: Formula) -> Formula:
    return lambda read, place: a(read, place) * b(read, place)


def area(y: int, x: int, element: ElementKind, has_x: bool) -> Formula:
    computing = computed_in(element, has_x)
    return product(height(y, computing), width(x if has_x else None, computing))


@functools.lru_cache(maxsize=1024)
def _areas(extent: int, element: ElementKind, has_x: bool) -> list[Run]:
    """Of which the integral is the sum; without any it is 0. Steps are all alike, so that there each number stands for itself."""
    computing = computed_in(element, has_x)
    if extent > 1 and not has_x:
        step = width(None, computing)
        (run,) = runs(2, extent, (), lambda read, place: convert(read(0, place), computing) * step(read, place), element, 1)
        return [run._replace(ends=0.5)]
    formula = area(0, 1, element, has_x) if extent > 1 else lambda read, place: constant(0, computing)
    return runs(2, max(1, extent - 1), (), formula, element, 0 if has_x else 1)


def gradient_runs(extent: int, element: ElementKind, has_x: bool, shares_points: bool, upstream: Formula) -> list[Run]:
    """Of the integrand and its points, from the gradient of every area. Operands are those of the backward's args; where lines share
    their points, the gradients of widths are summed in the first buffer; the second is the caller's."""
    computing = computed_in(element, has_x)
    buffers = (computing, register(element))
    heights, widths = height(1, computing), width(2 if has_x else None, computing)

    def near(place: int) -> range:
        """The trapezoids on both sides."""
        return range(max(0, place - 1), min(extent - 1, place + 1))

    def of(output: int, operand: int, formula: Formula, slopes: Formula) -> list[Run]:
        slope = adjoint(formula, operand, near, slopes, computing)
        return runs(output, extent, (1, extent - 1), slope, element, 0 if has_x else 1, buffers)

    def d_area(read: Reader, place: int) -> Expr:
        return convert(upstream(read, place), computing)

    areas = area(1, 2, element, has_x)
    found = of(3, 1, areas, d_area)
    if has_x and not shares_points:
        found += of(4, 2, areas, d_area)
    if shares_points:
        found += runs(-1, extent - 1, (), product(d_area, heights), element, 0, buffers)
        found += of(4, 2, widths, lambda read, place: read(-1, place))
    return found


@functools.lru_cache(maxsize=1024)
def _gradients(extent: int, element: ElementKind, has_x: bool, shares_points: bool) -> list[Run]:
    return gradient_runs(extent, element, has_x, shares_points, lambda read, place: read(0, read.place))


class TrapezoidArgs(Args):
    y: TensorRef = read("shape", "the integrand")
    x: TensorRef = read("points_shape", "the points where it is given", present="has_x", broadcasts=True)
    result: TensorMut = write("result_shape", "the integrals")


class TrapezoidBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the integrals")
    y: TensorRef = read("shape", "the integrand, of which only the shape matters where there are no points")
    x: TensorRef = read("points_shape", "the points where it is given", present="has_x", broadcasts=True)
    d_y: TensorMut = write("shape", "the gradient of the integrand")
    d_x: TensorMut = write("points_shape", "the gradient of the points", present="has_x")


class TrapezoidCases(LineCases):
    # Shape, axis, and of points how many axes they have: none, one, or all.
    CORNERS: ClassVar[tuple[tuple[Shape, int, int], ...]] = (
        ((9, 18), 1, 1), ((2, 9, 5), 1, 3), ((35, 33), 0, 1), ((5, 1), 1, 1), ((5, 0, 3), 1, 0), ((0, 4), 1, 1),
        ((2, 1, 3, 1, 1, 1, 5, 2), 6, 0), ((70_001,), 0, 0), ((3, 20_001), 1, 1),
    )  # fmt: skip

    def problem(self, shape: Shape, axis: int, rank: int, element: ElementKind, dx: float = 1.0) -> Any:
        points = {0: None, 1: (shape[axis],)}.get(rank, shape)
        return self.descriptor(shape, axis, element, points, 1.0 if rank else dx)

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, rank in self.CORNERS if element is ElementKind.F32 else self.CORNERS[:1]:
            yield self.problem(shape, axis, rank, element, 0.25)

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, rank in self.CORNERS[:3] if element is ElementKind.F32 else self.CORNERS[:1]:
            yield self.problem(shape, axis, rank, element)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape, axis = self.drawn_line(random)
        return self.problem(shape, axis, random.choice((0, 0, 1, len(shape))), element, random.choice((1.0, 0.5, -2.0)))

    def showcase(self) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for axis, rank in ((1, 0), (0, 0), (1, 1), (0, 1)):
                yield self.problem((4096, 4096), axis, rank, element)

    def from_options(self, options: dict[str, Any]) -> Any:
        return super().from_options({"x_shape": None} | options)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        shape = descriptor.points_shape
        points = rng.uniform(-2.0, 2.0, shape)
        if shape:
            points.sort(descriptor.axis if shape == descriptor.shape else 0)
        return {"y": rng.uniform(-1.0, 3.0, descriptor.shape), "x": points}

    def alone(self, descriptor: Any) -> Any:
        points = (descriptor.extent,) if descriptor.has_x else None
        return replace(descriptor, shape=(descriptor.extent,), axis=0, x_shape=points)

    def taken(self, descriptor: Any, name: str, values: Any, line: int) -> Any:
        if name in ("x", "d_x") and values.ndim < len(descriptor.shape):
            return values if name == "x" else None
        if values.ndim < len(descriptor.shape):
            return values.reshape(-1)[line]
        return super().taken(descriptor, name, values, line)

    def steps(self, descriptor: Any) -> int:
        return 5 if descriptor.has_x else 2

    def summed_extent(self, descriptor: Any) -> int:
        return int(max(1, descriptor.count))


class TrapezoidBackwardCases(TrapezoidCases):
    def summed_extent(self, descriptor: Any) -> int:
        """How many lines share their points."""
        return max(1, math.prod(descriptor.result_shape))


def in_fixed_order(descriptor: TrapezoidDescriptor) -> PrecisionGuarantee:
    return computed_by_itself(descriptor.computing)


def fixed_by_shape(descriptor: TrapezoidDescriptor) -> PrecisionGuarantee:
    """How a sum is shared out among programs depends on how many sums there are."""
    return replace(in_fixed_order(descriptor), batch_invariant=False)


class TrapezoidPlan(Plan[TrapezoidDescriptor, TrapezoidArgs]):
    """The integral along an axis by the trapezoidal rule."""

    category, op = OpCategory.REDUCTION, NeighbourKind.TRAPEZOID
    reference = staticmethod(reference.trapezoid)
    cases = TrapezoidCases(TrapezoidDescriptor)
    kernels = kernels("trapezoid", in_fixed_order, FLOATS, on_cuda=fixed_by_shape)


class TrapezoidBackwardPlan(Plan[TrapezoidBackwardDescriptor, TrapezoidBackwardArgs]):
    """The gradients of an integrand and its points."""

    category, op = OpCategory.REDUCTION, NeighbourKind.TRAPEZOID
    reference = staticmethod(reference.trapezoid_backward)
    cases = TrapezoidBackwardCases(TrapezoidBackwardDescriptor)
    kernels = kernels("trapezoid_backward", in_fixed_order, FLOATS)
