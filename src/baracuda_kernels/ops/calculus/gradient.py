"""The slope along an axis by central differences, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.cases import Extreme
from baracuda_kernels.core.descriptor import Numbers, Shape
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import register
from baracuda_kernels.ops.calculus import reference
from baracuda_kernels.ops.calculus.cases import LineCases
from baracuda_kernels.ops.calculus.descriptor import LineDescriptor
from baracuda_kernels.ops.calculus.kernels import kernels
from baracuda_kernels.ops.calculus.kind import NeighbourKind
from baracuda_kernels.ops.calculus.runs import Buffer, Run
from baracuda_kernels.ops.calculus.slopes import BUFFERS, Slopes, backward_runs, slope_runs
from baracuda_kernels.ops.elementwise.guarantee import computed_by_itself

__all__ = [
    "GradientArgs", "GradientBackwardArgs", "GradientBackwardDescriptor", "GradientBackwardPlan", "GradientDescriptor", "GradientPlan",
]  # fmt: skip


@dataclass(frozen=True)
class GradientDescriptor(LineDescriptor):
    """The slope along `axis` of a tensor of `shape`, whose elements are a step apart, or at coordinates."""

    LINES: ClassVar[tuple[int, ...]] = (1,)

    spacing_value: float | None = 1.0  # the step; None where there are coordinates
    edge_order: int = 1  # order of accuracy at both edges: 1, or 2 as everywhere else

    def check(self) -> Iterator[Reason]:
        yield from super().check()
        if self.edge_order not in (1, 2):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "edge_order", self.edge_order, "1 or 2")
        elif 0 <= self.axis < len(self.shape) and self.extent <= self.edge_order:
            wanted = f"an extent of at least {self.edge_order + 1} along axis {self.axis}, for edge_order {self.edge_order}"
            yield Reason(ReasonCode.SHAPE, "shape", self.shape, wanted)

    @property
    def has_spacing(self) -> bool:
        return self.spacing_value is None

    @property
    def line_shape(self) -> Shape:
        return (self.extent,)

    @property
    def numbers(self) -> Numbers:
        return () if self.spacing_value is None else (self.spacing_value,)

    @property
    def computing(self) -> ElementKind:
        """Between coordinates, where the slopes of two gaps may cancel, f32 is computed in f64."""
        return ElementKind.F64 if self.has_spacing and self.element is ElementKind.F32 else register(self.element)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer(self.computing, (self.axis,), self.extent),) * BUFFERS if self.has_spacing else ()

    def slopes(self, input: int, spacing: int) -> Slopes:
        """The slopes, of operands by their places among the args."""
        given = spacing if self.has_spacing else None
        return Slopes(input, given, self.extent, self.edge_order, self.element, self.computing)

    @property
    def runs(self) -> list[Run]:
        return slope_runs(self.slopes(0, 1), 2)


@dataclass(frozen=True)
class GradientBackwardDescriptor(GradientDescriptor):
    """The gradients of a tensor and its coordinates, from that of its slope."""

    LINES = (2, 4)

    @property
    def runs(self) -> list[Run]:
        return backward_runs(self.slopes(1, 2), 0, 3, 4)


class GradientArgs(Args):
    input: TensorRef = read("shape", "the tensor")
    spacing: TensorRef = read("line_shape", "the coordinates along the axis", present="has_spacing", scalar="spacing_value")
    result: TensorMut = write("shape", "its slope")


class GradientBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the slope")
    input: TensorRef = read("shape", "the tensor, which matters where there are coordinates")
    spacing: TensorRef = read("line_shape", "the coordinates along the axis", present="has_spacing", scalar="spacing_value")
    d_input: TensorMut = write("shape", "the gradient of the tensor")
    d_spacing: TensorMut = write("line_shape", "the gradient of the coordinates", present="has_spacing")


class GradientCases(LineCases):
    extremes = (Extreme.NAN,)  # zeros and the smallest numbers are no coordinates
    # Shape, axis, step and order at the edges; as few elements as that takes, and more.
    CORNERS = (
        ((9, 18), 1, 0.5, 1), ((7, 17), 0, None, 2), ((2, 5, 3), 1, None, 1), ((5, 3), 1, 0.5, 2), ((3,), 0, None, 2), ((2, 0, 4), 2, 1.0, 1),
        ((2, 1, 3, 1, 2, 1, 5, 2), 6, 2.0, 2), ((70_001,), 0, 1.0, 2),
    )  # fmt: skip

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, step, order in self.CORNERS if element is ElementKind.F32 else self.CORNERS[3:4]:
            yield self.descriptor(shape, axis, element, step, order)

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        for shape, axis, step, order in self.CORNERS[:2] if element is ElementKind.F32 else self.CORNERS[:1]:
            yield self.descriptor(shape, axis, element, step, order)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape, axis = self.drawn_line(random)
        step, order = random.choice((None, 1.0, 2.0, -0.5)), random.choice((1, 1, 2))
        shape = (*shape[:axis], max(order + 1, shape[axis]), *shape[axis + 1 :])
        return self.descriptor(shape, axis, element, step, order)

    def showcase(self) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for axis, step in ((1, 1.0), (0, 1.0), (1, None), (0, None)):
                if step is not None or element is ElementKind.F32:  # bf16 does not tell so many coordinates apart
                    yield self.descriptor((4096, 4096), axis, element, step)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        """Coordinates on both sides of 0, apart from each other as far as their element tells them apart."""
        steps = rng.integers(1, 4, descriptor.extent) / 8
        return {"spacing": steps.cumsum() - steps.sum() / 2} if descriptor.has_spacing else {}

    def taken(self, descriptor: Any, name: str, values: Any, line: int) -> Any:
        if name in ("spacing", "d_spacing"):
            return values if name == "spacing" else None
        return super().taken(descriptor, name, values, line)

    def steps(self, descriptor: Any) -> int:
        return 9 if descriptor.has_spacing else 2


class GradientBackwardCases(GradientCases):
    def summed_extent(self, descriptor: Any) -> int:
        """How many lines share their coordinates."""
        return max(1, math.prod(descriptor.with_extent(1)))


def by_itself(descriptor: GradientDescriptor) -> PrecisionGuarantee:
    return computed_by_itself(descriptor.computing)


class GradientPlan(Plan[GradientDescriptor, GradientArgs]):
    """The slope along an axis by central differences."""

    category, op = OpCategory.SCAN, NeighbourKind.GRADIENT
    reference = staticmethod(reference.gradient)
    cases = GradientCases(GradientDescriptor)
    kernels = kernels("gradient", by_itself, FLOATS)


class GradientBackwardPlan(Plan[GradientBackwardDescriptor, GradientBackwardArgs]):
    """The gradients of a tensor and its coordinates."""

    category, op = OpCategory.SCAN, NeighbourKind.GRADIENT
    reference = staticmethod(reference.gradient_backward)
    cases = GradientBackwardCases(GradientBackwardDescriptor)
    kernels = kernels("gradient_backward", by_itself, FLOATS)
