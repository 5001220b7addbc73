"""What is to be computed: which element of many stands where in their order, or between which two, along any axes; and the gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import Descriptor, Numbers, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.ops.reduction.descriptor import AlongAxes

__all__ = [
    "Interpolation",
    "OrderBackwardDescriptor",
    "OrderDescriptor",
    "OrderKind",
    "QuantileBackwardDescriptor",
    "QuantileDescriptor",
    "QuantileKind",
]


class OrderKind(Enum):
    MEDIAN = "median"
    NANMEDIAN = "nanmedian"
    MODE = "mode"


class QuantileKind(Enum):
    QUANTILE = "quantile"
    NANQUANTILE = "nanquantile"


class Interpolation(Enum):
    """What lies between two elements: a share of both, one of them, their mean, or the nearer one."""

    LINEAR = "linear"
    LOWER = "lower"
    HIGHER = "higher"
    MIDPOINT = "midpoint"
    NEAREST = "nearest"


class _Order(AlongAxes):
    """What order statistics of both sorts have in common."""

    kind: Enum

    def sensible(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        misfits = list(self.mask_fits())
        yield from misfits or self.has_elements(self.kind.value)

    @property
    def lines(self) -> int:
        """How many results there are, of each sort."""
        return math.prod(extent for axis, extent in enumerate(self.shape) if axis not in self.axes)


@dataclass(frozen=True)
class OrderDescriptor(_Order, Descriptor):
    """The element of a tensor of `shape` that is chosen by its place in their order, along the axes whose bits are set in `axes_mask`."""

    kind: OrderKind
    shape: Shape
    axes_mask: int  # bit d set: axis d is reduced
    element: ElementKind
    keepdim: bool = False  # whether reduced axes stay, with an extent of 1

    def check(self) -> Iterator[Reason]:
        yield from self.sensible()


@dataclass(frozen=True)
class OrderBackwardDescriptor(OrderDescriptor):
    """The gradient of an order statistic: it goes to the chosen element."""


@dataclass(frozen=True)
class QuantileDescriptor(_Order, Descriptor):
    """Quantiles of a tensor of `shape` along the axes whose bits are set in `axes_mask`."""

    kind: QuantileKind
    shape: Shape
    axes_mask: int  # bit d set: axis d is reduced
    element: ElementKind
    q: Numbers = (0.5,)  # which quantiles: from 0, the smallest element, to 1, the largest
    interpolation: Interpolation = Interpolation.LINEAR  # how to interpolate between two elements
    keepdim: bool = False  # whether reduced axes stay, with an extent of 1
    stacked: bool = False  # whether the results have a leading axis for q; else there is one q

    def check(self) -> Iterator[Reason]:
        yield from self.sensible()
        if not all(0.0 <= q <= 1.0 for q in self.q):  # NaN is not
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "q", self.q, "numbers from 0 to 1")
        if not self.q or (len(self.q) > 1 and not self.stacked):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "q", f"{len(self.q)} numbers", "at least one, and one alone if not stacked")

    @property
    def quantiles(self) -> int:
        """How many there are of each line."""
        return len(self.q)

    @property
    def reduced_shape(self) -> Shape:
        """That of the results for one q."""
        return super().result_shape

    @property
    def result_shape(self) -> Shape:
        return (len(self.q), *self.reduced_shape) if self.stacked else self.reduced_shape


@dataclass(frozen=True)
class QuantileBackwardDescriptor(QuantileDescriptor):
    """The gradient of quantiles: it goes to the two elements that each lies between."""
