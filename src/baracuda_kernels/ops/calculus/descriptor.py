"""What all ops on neighbours say of their problem: a tensor, and an axis of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from baracuda_kernels.core.descriptor import Descriptor, Numbers, Shape, axis_in_range, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.ops.calculus.running import Running
from baracuda_kernels.ops.calculus.runs import Buffer, Run, Scan
from baracuda_kernels.ops.scan.descriptor import ScanDescriptor, ScanKind

__all__ = ["LineDescriptor"]


@dataclass(frozen=True)
class LineDescriptor(Descriptor):
    """An op on neighbours along `axis` of a tensor of `shape`."""

    LINES: ClassVar[tuple[int, ...]] = ()  # places among the args of what may have the axis alone
    WHOLE: ClassVar[tuple[int, ...]] = ()  # and of what has all others

    shape: Shape
    axis: int  # counted from the first, 0; never negative
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("shape", self.shape, 1)
        yield from axis_in_range("axis", self.axis, self.shape)
        yield from extents_not_negative(shape=self.shape)

    @property
    def extent(self) -> int:
        """The extent along the axis."""
        return self.shape[self.axis]

    def with_extent(self, extent: int) -> Shape:
        """The shape with another extent along the axis."""
        return (*self.shape[: self.axis], extent, *self.shape[self.axis + 1 :])

    @property
    def runs(self) -> Sequence[Run | Scan]:
        """What is done, in this order."""
        raise NotImplementedError

    @property
    def numbers(self) -> Numbers:
        """The parameters of the runs' programs."""
        return ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What the runs leave for each other."""
        return ()

    @property
    def running(self) -> Running | None:
        """What all of it is in one scan, if it is one."""
        return None

    def element_of(self, operand: int) -> ElementKind:
        """The layout of an operand, by its place among the args, or of a buffer."""
        return self.element if operand >= 0 else self.buffers[~operand].element

    @property
    def has_lines(self) -> bool:
        """Whether what may have the axis alone does."""
        return True

    def axes_of(self, operand: int) -> tuple[int, ...]:
        """Those of the tensor's axes that an operand or a buffer has."""
        if operand < 0:
            return self.buffers[~operand].axes
        if operand in self.LINES and self.has_lines:
            return (self.axis,)
        return tuple(axis for axis in range(len(self.shape)) if axis != self.axis or operand not in self.WHOLE)

    def stride_of(self, operand: int, stride: Sequence[int]) -> tuple[int, ...]:
        """An operand's strides along all axes of the tensor: 0 along those that it has not."""
        steps = dict(zip(self.axes_of(operand), stride, strict=True))
        return tuple(steps.get(axis, 0) for axis in range(len(self.shape)))

    def work_of(self, run: Run) -> tuple[Shape, tuple[int, ...]]:
        """The shape of what a run takes, and its axes that the output has not: along these is summed."""
        written = self.axes_of(run.output)
        taken = {*written, *(axis for read in run.reads for axis in self.axes_of(read.operand))}
        shape = tuple(extent if axis in taken else 1 for axis, extent in enumerate(self.with_extent(run.extent)))
        return shape, tuple(sorted(taken.difference(written)))

    def scan_of(self, scan: Scan) -> ScanDescriptor:
        """The problem that running sums are."""
        element = self.element_of(scan.input)
        return ScanDescriptor(ScanKind.CUMSUM, self.with_extent(scan.extent), self.axis, element, scan.reverse)
