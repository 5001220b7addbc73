"""What is to be computed: a tensor divided by the root mean square over its trailing axes, and the gradients of that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from baracuda_kernels.core.descriptor import Descriptor, Shape, extents_not_negative, finite, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["RMSNormBackwardDescriptor", "RMSNormDescriptor"]

HALVES = (ElementKind.F16, ElementKind.BF16)


class _Normalized:
    """What both directions derive from `input_shape`, `norm_axes_mask`, `element` and `rms_element`."""

    input_shape: Shape
    norm_axes_mask: int  # bit d set: axis d is normalized; a non-empty suffix of the axes
    has_gamma: bool  # whether there is a scale
    element: ElementKind
    rms_element: ElementKind | None  # of rms; by default `element`, else f32 beside f16 or bf16

    def repeated(self: Any, count: int) -> Any:
        return replace(self, input_shape=(count, *self.input_shape), norm_axes_mask=self.norm_axes_mask << 1)

    @property
    def norm_rank(self) -> int:
        """How many trailing axes are normalized."""
        return self.norm_axes_mask.bit_count()

    @property
    def row_shape(self) -> Shape:
        """The normalized extents."""
        return self.input_shape[len(self.input_shape) - self.norm_rank :]

    @property
    def outer_shape(self) -> Shape:
        """The other extents: one row for each position."""
        return self.input_shape[: len(self.input_shape) - self.norm_rank]

    @property
    def rms_shape(self) -> Shape:
        """The input's shape with the normalized axes collapsed to 1."""
        return self.outer_shape + (1,) * self.norm_rank

    @property
    def norm_total_extent(self) -> int:
        """How many elements are normalized together: M."""
        return math.prod(self.row_shape)

    @property
    def row_count(self) -> int:
        return math.prod(self.outer_shape)

    @property
    def gamma_shape(self) -> Shape:
        return (self.norm_total_extent,)

    @property
    def stored_rms_element(self) -> ElementKind:
        return self.element if self.rms_element is None else self.rms_element

    def _reasons_against_norm(self) -> Iterator[Reason]:
        yield from rank_at_least("input_shape", self.input_shape, 1)
        yield from extents_not_negative(input_shape=self.input_shape)
        rank = len(self.input_shape)
        suffixes = [((1 << count) - 1) << (rank - count) for count in range(1, rank + 1)]
        if self.norm_axes_mask not in suffixes:
            got = f"{self.norm_axes_mask:#b}"
            wanted = f"a non-empty suffix of the axes of a rank-{rank} shape: {' or '.join(f'{mask:#b}' for mask in suffixes)}"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "norm_axes_mask", got, wanted)
        allowed = (self.element, ElementKind.F32) if self.element in HALVES else (self.element,)
        if self.stored_rms_element not in allowed:
            yield Reason(ReasonCode.INCONSISTENT, "rms_element", self.rms_element, " or ".join(map(str, allowed)))


@dataclass(frozen=True)
class RMSNormDescriptor(_Normalized, Descriptor):
    """RMSNorm of a tensor of `input_shape` over the axes whose bits are set in `norm_axes_mask`, a suffix of all axes."""

    input_shape: Shape
    norm_axes_mask: int
    eps: float  # added to the mean square; finite, at least 0
    has_gamma: bool
    element: ElementKind
    rms_element: ElementKind | None = None

    def check(self) -> Iterator[Reason]:
        yield from self._reasons_against_norm()
        yield from finite(eps=self.eps)
        if self.eps < 0:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "eps", self.eps, "at least 0")


@dataclass(frozen=True)
class RMSNormBackwardDescriptor(_Normalized, Descriptor):
    """The gradients of an RMSNorm. They read the saved rms, which holds all there is to know of eps."""

    input_shape: Shape
    norm_axes_mask: int
    has_gamma: bool
    element: ElementKind
    rms_element: ElementKind | None = None

    def check(self) -> Iterator[Reason]:
        yield from self._reasons_against_norm()
