"""What is to be computed: attention with its weights kept, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baracuda_kernels.core.descriptor import InBatches, Shape, extents_not_negative, finite
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["AttentionShapes", "SdpaBackwardDescriptor", "SdpaDescriptor", "slots_of"]


class AttentionShapes:
    """The shapes that both directions derive from the same fields, and what is nonsense about them."""

    batch_size: int
    num_heads: int
    query_len: int
    key_len: int
    d_k: int  # features of a query and of a key
    d_v: int  # features of a value
    scale: float  # of the scores; finite
    element: ElementKind
    num_kv_heads: int | None  # heads of k and v, a divisor of num_heads; by default num_heads

    @property
    def kv_heads(self) -> int:
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def q_shape(self) -> Shape:
        return self.batch_size, self.num_heads, self.query_len, self.d_k

    @property
    def k_shape(self) -> Shape:
        return self.batch_size, self.kv_heads, self.key_len, self.d_k

    @property
    def v_shape(self) -> Shape:
        return self.batch_size, self.kv_heads, self.key_len, self.d_v

    @property
    def y_shape(self) -> Shape:
        return self.batch_size, self.num_heads, self.query_len, self.d_v

    @property
    def attn_shape(self) -> Shape:
        return self.batch_size, self.num_heads, self.query_len, self.key_len

    def check(self) -> Iterator[Reason]:
        names = ("batch_size", "num_heads", "query_len", "key_len", "d_k", "d_v")
        extents = {name: getattr(self, name) for name in names}
        yield from extents_not_negative(**extents, num_kv_heads=self.kv_heads)
        yield from finite(scale=self.scale)
        if min(self.num_heads, self.kv_heads) >= 0 and not _divides(self.kv_heads, self.num_heads):
            yield Reason(ReasonCode.INCONSISTENT, "num_kv_heads", self.kv_heads, f"a divisor of num_heads={self.num_heads}")


def _divides(part: int, whole: int) -> bool:
    return whole % part == 0 if part else whole == 0


@dataclass(frozen=True)
class SdpaDescriptor(AttentionShapes, InBatches):
    """Attention of `query_len` queries to `key_len` keys in each of `num_heads` heads."""

    batch_size: int
    num_heads: int
    query_len: int
    key_len: int
    d_k: int
    d_v: int
    scale: float
    is_causal: bool  # key j is hidden from query i where j > i
    has_mask: bool  # whether there is a mask
    element: ElementKind
    num_kv_heads: int | None = None


@dataclass(frozen=True)
class SdpaBackwardDescriptor(AttentionShapes, InBatches):
    """The gradients of attention, from its saved weights: hidden keys show there as zeros."""

    batch_size: int
    num_heads: int
    query_len: int
    key_len: int
    d_k: int
    d_v: int
    scale: float
    element: ElementKind
    num_kv_heads: int | None = None


def slots_of(layout: Layout) -> int:
    """How many places a gradient has along its head axis: one where all heads share it."""
    heads = layout.shape[1]
    return 1 if heads > 1 and layout.stride[1] == 0 else heads
