"""Attention as functions."""

from __future__ import annotations

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor
from baracuda_kernels.ops.attention.sdpa.sdpa import SdpaBackwardPlan, SdpaPlan

__all__ = ["sdpa", "sdpa_backward"]


def _extents(q: View, v: View) -> tuple[int, int, int, int, int, int]:
    batch_size, heads, query_len, d_k = q.of_rank(4)
    _, _, key_len, d_v = v.of_rank(4)
    return batch_size, heads, query_len, key_len, d_k, d_v


def _scale(scale: float | None, d_k: int) -> float:
    return max(d_k, 1) ** -0.5 if scale is None else scale


def _shared_heads(q: View, v: View) -> int | None:
    return None if v.shape[1] == q.shape[1] else v.shape[1]


@function(SdpaPlan, gradient="sdpa_backward")
def sdpa(
    q: View,
    k: View,
    v: View,
    mask: View | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    return_attn: bool = False,
) -> SdpaDescriptor:
    """softmax(q kᵀ · scale + mask) v for [batch, heads, sequence, features]; the scale is 1/√features unless given."""
    extents = *_, d_k, _ = _extents(q, v)
    return SdpaDescriptor(*extents, _scale(scale, d_k), is_causal, mask is not None, q.element, _shared_heads(q, v))


@function(SdpaBackwardPlan)
def sdpa_backward(q: View, k: View, v: View, attn: View, dy: View, *, scale: float | None = None) -> SdpaBackwardDescriptor:
    """The gradients of sdpa by q, k and v, from its attention weights; what was masked shows there as zeros."""
    extents = *_, d_k, _ = _extents(q, v)
    return SdpaBackwardDescriptor(*extents, _scale(scale, d_k), q.element, _shared_heads(q, v))
