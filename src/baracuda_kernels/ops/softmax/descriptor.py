"""What is to be computed: softmax or log-softmax along one axis, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

from baracuda_kernels.core.descriptor import Descriptor, Shape, axis_in_range, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason


class SoftmaxKind(Enum):
    SOFTMAX = "softmax"
    LOG_SOFTMAX = "log_softmax"
    SPARSEMAX = "sparsemax"
    GUMBEL_SOFTMAX = "gumbel_softmax"


@dataclass(frozen=True)
class SoftmaxDescriptor(Descriptor):
    """Softmax of a tensor of `input_shape` along `softmax_axis`."""

    kind: SoftmaxKind
    input_shape: Shape
    softmax_axis: int  # counted from the first, 0; never negative
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("input_shape", self.input_shape, 1)
        yield from extents_not_negative(input_shape=self.input_shape)
        yield from axis_in_range("softmax_axis", self.softmax_axis, self.input_shape)

    def repeated(self, count: int) -> Self:
        return replace(self, input_shape=(count, *self.input_shape), softmax_axis=self.softmax_axis + 1)

    @property
    def inner(self) -> int:
        """How many elements lie between neighbours of the axis, in a contiguous tensor."""
        return math.prod(self.input_shape[self.softmax_axis + 1 :])

    @property
    def extent(self) -> int:
        """How many elements are normalised together."""
        return self.input_shape[self.softmax_axis]


@dataclass(frozen=True)
class SoftmaxBackwardDescriptor(SoftmaxDescriptor):
    """The gradient of a softmax. It reads the saved output, never x."""
