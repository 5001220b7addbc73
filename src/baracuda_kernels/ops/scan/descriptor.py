"""What is to be computed: a running sum, product, maximum, minimum or logarithm of a sum of powers along one axis, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import Descriptor, Shape, axis_in_range, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason

__all__ = ["ScanBackwardDescriptor", "ScanDescriptor", "ScanKind"]


class ScanKind(Enum):
    CUMSUM = "cumsum"
    CUMPROD = "cumprod"
    CUMMAX = "cummax"
    CUMMIN = "cummin"
    LOGCUMSUMEXP = "logcumsumexp"
    NANCUMSUM = "nancumsum"
    NANCUMPROD = "nancumprod"


EXTREMA = (ScanKind.CUMMAX, ScanKind.CUMMIN)
PRODUCTS = (ScanKind.CUMPROD, ScanKind.NANCUMPROD)
ABOUT_NAN = (ScanKind.NANCUMSUM, ScanKind.NANCUMPROD)


@dataclass(frozen=True)
class ScanDescriptor(Descriptor):
    """A scan of a tensor of `shape` along `axis`, from the first element on or, in `reverse`, from the last."""

    kind: ScanKind
    shape: Shape
    axis: int  # counted from the first, 0; never negative
    element: ElementKind
    reverse: bool = False
    indices: bool = True  # of cummax and cummin: whether to return the indices

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("shape", self.shape, 1)
        yield from extents_not_negative(shape=self.shape)
        yield from axis_in_range("axis", self.axis, self.shape)

    @property
    def extent(self) -> int:
        """How many elements follow each other."""
        return self.shape[self.axis]

    @property
    def lines(self) -> int:
        """How many scans there are."""
        return math.prod(self.shape[: self.axis]) * math.prod(self.shape[self.axis + 1 :])

    @property
    def has_indices(self) -> bool:
        return self.kind in EXTREMA and self.indices

    @property
    def result_element(self) -> ElementKind:
        """Sums and products of integers are i64."""
        return self.element if self.element.is_float or self.kind in EXTREMA else ElementKind.I64


@dataclass(frozen=True)
class ScanBackwardDescriptor(ScanDescriptor):
    """The gradient of a scan, from that of its result."""

    @property
    def reads_input(self) -> bool:
        return self.kind in (*PRODUCTS, *ABOUT_NAN, ScanKind.LOGCUMSUMEXP)

    @property
    def reads_result(self) -> bool:
        return self.kind is ScanKind.LOGCUMSUMEXP

    @property
    def reads_indices(self) -> bool:
        return self.kind in EXTREMA
