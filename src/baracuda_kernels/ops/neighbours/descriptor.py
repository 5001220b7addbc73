"""What all ops on neighbours say of their problem: a tensor, and an axis of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from baracuda_kernels.core.descriptor import Descriptor, Numbers, Shape, axis_in_range, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.ops.neighbours.runs import Run

__all__ = ["LineDescriptor"]


@dataclass(frozen=True)
class LineDescriptor(Descriptor):
    """An op on neighbours along `axis` of a tensor of `shape`."""

    shape: Shape
    axis: int  # counted from the first, 0; never negative
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("shape", self.shape, 1)
        yield from axis_in_range("axis", self.axis, self.shape)
        yield from extents_not_negative(shape=self.shape)

    @property
    def extent(self) -> int:
        """Along the axis."""
        return self.shape[self.axis]

    def with_extent(self, extent: int) -> Shape:
        """The shape with another extent along the axis."""
        return (*self.shape[: self.axis], extent, *self.shape[self.axis + 1 :])

    @property
    def runs(self) -> list[Run]:
        raise NotImplementedError

    @property
    def numbers(self) -> Numbers:
        """The parameters of the runs' programs."""
        return ()

    def stride_of(self, operand: int, stride: Sequence[int]) -> tuple[int, ...]:
        """An operand's strides along the axes of the tensor."""
        return tuple(stride)
