"""What is to be computed: many elements made one, along any axes, and the gradient of that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import Descriptor, Numbers, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import broadcasts_to
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.ops.reduction.joint_rows import JOINT
from baracuda_kernels.ops.reduction.pair_rows import PAIRS
from baracuda_kernels.ops.reduction.row import ReduceRow
from baracuda_kernels.ops.reduction.rows import TABLE
from baracuda_kernels.ops.reduction.tables import EVERY

__all__ = [
    "AlongAxes",
    "ReduceBackwardDescriptor",
    "ReduceChoiceBackwardDescriptor",
    "ReduceDescriptor",
    "ReduceJointBackwardDescriptor",
    "ReduceJointDescriptor",
    "ReduceJointKind",
    "ReduceKind",
    "ReducePairBackwardDescriptor",
    "ReducePairDescriptor",
    "ReducePairKind",
    "ReduceToDescriptor",
    "ReduceToKind",
    "mask_of",
]

ReduceKind = Enum("ReduceKind", {name.upper(): name for name in TABLE}, module=__name__)  # type: ignore[misc]
ReducePairKind = Enum("ReducePairKind", {name.upper(): name for name in PAIRS}, module=__name__)  # type: ignore[misc]
ReduceJointKind = Enum("ReduceJointKind", {name.upper(): name for name in JOINT}, module=__name__)  # type: ignore[misc]


def mask_of(axes: Iterable[int]) -> int:
    return sum(1 << axis for axis in axes)


class ReduceToKind(Enum):
    SUM = "sum"


class AlongAxes:
    """What becomes of a shape whose axes in a mask are reduced."""

    shape: Shape
    axes_mask: int
    keepdim: bool

    def mask_fits(self) -> Iterator[Reason]:
        rank = len(self.shape)
        if not 0 <= self.axes_mask < 1 << rank:
            wanted = f"bits of the axes of a rank-{rank} shape, at most {(1 << rank) - 1:#b}"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "axes_mask", f"{self.axes_mask:#b}", wanted)

    def has_elements(self, of: str) -> Iterator[Reason]:
        if 0 in (self.shape[axis] for axis in self.axes):
            wanted = f"extents of at least 1 along the reduced axes {self.axes}: there is no {of} of nothing"
            yield Reason(ReasonCode.EMPTY, "shape", self.shape, wanted)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.shape)) if self.axes_mask >> axis & 1)

    @property
    def count(self) -> int:
        """The number of elements that are reduced to one."""
        return math.prod(self.shape[axis] for axis in self.axes)

    @property
    def result_shape(self) -> Shape:
        kept = [(axis, 1 if axis in self.axes else extent) for axis, extent in enumerate(self.shape)]
        return tuple(extent for axis, extent in kept if self.keepdim or axis not in self.axes)


@dataclass(frozen=True)
class ReduceDescriptor(AlongAxes, Descriptor):
    """A reduction of a tensor of `shape` along the axes whose bits are set in `axes_mask`. Without `parameters` it has its own."""

    kind: ReduceKind  # type: ignore[valid-type]  # the reduction; of a backward descriptor, the one whose gradient is computed
    shape: Shape
    axes_mask: int  # bit d set: axis d is reduced
    element: ElementKind
    keepdim: bool = False  # whether reduced axes stay, with an extent of 1
    parameters: Numbers = ()
    as_element: ElementKind | None = None  # the dtype that elements are converted to first; None: their own

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        if misfits := list(self.mask_fits()):
            yield from misfits
            return
        row = EVERY[self.kind.value]
        names = [parameter.name for parameter in row.parameters]
        if self.parameters and len(self.parameters) != len(names):
            wanted = f"{len(names)}: {', '.join(names)}" if names else "none"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "parameters", f"{len(self.parameters)} numbers", wanted)
        elif any(math.isnan(number) for number in self.parameters):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "parameters", self.parameters, "numbers that are not NaN")
        elif self.row.needs_elements:
            yield from self.has_elements(self.kind.value)
        if self.as_element is not None:
            yield from self._conversion_makes_sense(row)

    def _conversion_makes_sense(self, row: ReduceRow) -> Iterator[Reason]:
        if not row.converts:
            yield Reason(
                ReasonCode.VALUE_OUT_OF_RANGE,
                "as_element",
                self.as_element,
                f"none for {self.kind.value}, whose elements stay as they are",
            )
        elif (self.element.is_float and not self.converted.is_float) or self.as_element is ElementKind.BOOL:
            wanted = f"{'a float' if self.element.is_float else 'a number'}, as elements are {self.element}"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "as_element", self.as_element, wanted)

    @property
    def converted(self) -> ElementKind:
        """The dtype that elements are converted to first."""
        return self.as_element or self.element

    @property
    def computing(self) -> ElementKind:
        """What they are computed in: at least as good as they are, so that what is to be narrower is rounded once."""
        is_narrower = self.element.is_float and self.converted.size < self.element.size
        return self.row.computed(self.element if is_narrower else self.converted)

    @property
    def numbers(self) -> Numbers:
        """The parameters, those of the reduction where none were given."""
        return self.parameters or tuple(parameter.default for parameter in EVERY[self.kind.value].parameters)

    @property
    def row(self) -> ReduceRow:
        """The formulas for these parameters."""
        row = EVERY[self.kind.value]
        return row if row.chosen is None else row.chosen(*self.numbers)

    @property
    def formula_numbers(self) -> Numbers:
        """The parameters that the formulas take; the others chose the formulas."""
        return self.numbers if self.row.parameters else ()

    @property
    def result_elements(self) -> tuple[ElementKind, ...]:
        return self.row.results(self.element) if self.as_element is None else (self.as_element,)

    @property
    def result_element(self) -> ElementKind:
        return self.result_elements[0]


@dataclass(frozen=True)
class ReduceBackwardDescriptor(ReduceDescriptor):
    """The gradient of a reduction, from that of its result."""


@dataclass(frozen=True)
class ReducePairDescriptor(ReduceDescriptor):
    """A reduction with two results."""

    kind: ReducePairKind  # type: ignore[valid-type,assignment]

    @property
    def second_element(self) -> ElementKind:
        return self.result_elements[1]


@dataclass(frozen=True)
class ReducePairBackwardDescriptor(ReducePairDescriptor):
    """The gradient of a reduction with two results, from those of both."""


@dataclass(frozen=True)
class ReduceChoiceBackwardDescriptor(ReducePairDescriptor):
    """The gradient of a reduction that returns one of the elements: it belongs to that one."""


@dataclass(frozen=True)
class ReduceJointDescriptor(ReduceDescriptor):
    """A reduction of two tensors of `shape`."""

    kind: ReduceJointKind  # type: ignore[valid-type,assignment]


@dataclass(frozen=True)
class ReduceJointBackwardDescriptor(ReduceJointDescriptor):
    """The gradient of a reduction of two tensors, from that of its result."""


@dataclass(frozen=True)
class ReduceToDescriptor(Descriptor):
    """The sum of a tensor of `shape` to a smaller `target_shape` that broadcasts to it: the gradient of broadcasting."""

    shape: Shape
    target_shape: Shape
    element: ElementKind
    kind: ReduceToKind = ReduceToKind.SUM

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape, target_shape=self.target_shape)
        if not broadcasts_to(self.target_shape, self.shape):
            yield Reason(ReasonCode.INCONSISTENT, "target_shape", self.target_shape, f"a shape that broadcasts to {self.shape}")

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are summed over."""
        missing = len(self.shape) - len(self.target_shape)
        return tuple(
            axis
            for axis, extent in enumerate(self.shape)
            if axis < missing or (extent != 1 and self.target_shape[axis - missing] == 1)
        )

    @property
    def count(self) -> int:
        return math.prod(self.shape[axis] for axis in self.axes)

    @property
    def result_element(self) -> ElementKind:
        return self.element
