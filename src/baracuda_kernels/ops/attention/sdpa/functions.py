"""Attention as functions."""

from __future__ import annotations

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor
from baracuda_kernels.ops.attention.sdpa.sdpa import SdpaBackwardPlan, SdpaPlan

__all__ = ["sdpa", "sdpa_backward"]


def _scale(scale: float | None, d_k: int) -> float:
    return max(d_k, 1) ** -0.5 if scale is None else scale


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
    batch_size, heads, query_len, d_k = q.of_rank(4)
    _, kv_heads, key_len, d_v = v.of_rank(4)
    return SdpaDescriptor(
        batch_size, heads, query_len, key_len, d_k, d_v, _scale(scale, d_k), is_causal, mask is not None, q.element, kv_heads
    )


@function(SdpaBackwardPlan)
def sdpa_backward(q: View, k: View, v: View, attn: View, dy: View, *, scale: float | None = None) -> SdpaBackwardDescriptor:
    """The gradients of sdpa by q, k and v, from its attention weights; what was masked shows there as zeros."""
    batch_size, heads, query_len, d_k = q.of_rank(4)
    _, kv_heads, key_len, d_v = v.of_rank(4)
    return SdpaBackwardDescriptor(batch_size, heads, query_len, key_len, d_k, d_v, _scale(scale, d_k), q.element, kv_heads)
