"""What is to be computed: features of [B, H, S, D] turned in pairs, by angles that grow with the position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import InBatches, Shape, extents_not_negative, finite
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["RopeBackwardDescriptor", "RopeDescriptor", "RopeStyle"]


class RopeStyle(Enum):
    """Which features form pair i of the R rotated ones."""

    INTERLEAVED = "interleaved"  # 2i and 2i + 1
    HALF = "half"  # i and i + R/2: GPT-NeoX, Llama


@dataclass(frozen=True)
class RopeDescriptor(InBatches):
    """Rotary embedding of a [batch_size, num_heads, seq_len, head_dim] tensor; `rotary_dim` is all of head_dim by default."""

    batch_size: int
    num_heads: int
    seq_len: int
    head_dim: int  # even
    base: float  # of the angles, position · base^(-2i/R) for pair i; finite, more than 0
    element: ElementKind
    style: RopeStyle = RopeStyle.INTERLEAVED  # which features form a pair
    rotary_dim: int | None = None  # how many features are rotated, R; even, by default all of head_dim

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(
            batch_size=self.batch_size, num_heads=self.num_heads, seq_len=self.seq_len, head_dim=self.head_dim
        )
        if self.head_dim % 2:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "head_dim", self.head_dim, "an even number")
        if self.rotated % 2 or not 0 < self.rotated <= self.head_dim:
            # Where rotary_dim was left out, it is head_dim that is wrong.
            where = "head_dim" if self.rotary_dim is None else "rotary_dim"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, where, self.rotated, f"an even number, 0 < rotary_dim <= {self.head_dim}")
        yield from finite(base=self.base)
        if self.base <= 0:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "base", self.base, "more than 0")

    @property
    def rotated(self) -> int:
        """How many features are rotated: R."""
        return self.head_dim if self.rotary_dim is None else self.rotary_dim

    @property
    def input_shape(self) -> Shape:
        return self.batch_size, self.num_heads, self.seq_len, self.head_dim

    @property
    def shared_positions(self) -> Shape:
        """The shape of positions that all batches share."""
        return (self.seq_len,)

    @property
    def batch_positions(self) -> Shape:
        """The shape of positions that each batch has for itself."""
        return self.batch_size, self.seq_len


@dataclass(frozen=True)
class RopeBackwardDescriptor(RopeDescriptor):
    """The gradient of a rotary embedding: the rotation by the opposite angles."""
