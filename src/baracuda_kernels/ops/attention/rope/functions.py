"""Rotary position embedding as functions."""

from __future__ import annotations

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View, member
from baracuda_kernels.ops.attention.rope.descriptor import RopeBackwardDescriptor, RopeDescriptor, RopeStyle
from baracuda_kernels.ops.attention.rope.rope import RopeBackwardPlan, RopePlan

__all__ = ["rope", "rope_backward"]


@function(RopePlan, gradient="rope_backward")
def rope(
    x: View,
    positions: View | None = None,
    *,
    base: float = 10000.0,
    style: RopeStyle | str = RopeStyle.INTERLEAVED,
    rotary_dim: int | None = None,
) -> RopeDescriptor:
    """Rotary position embedding: pairs of the features of x, [batch, heads, sequence, features], rotated by angles that grow with the position."""
    batch_size, heads, seq_len, head_dim = x.of_rank(4)
    return RopeDescriptor(batch_size, heads, seq_len, head_dim, base, x.element, member(RopeStyle, "style", style), rotary_dim)


@function(RopeBackwardPlan)
def rope_backward(
    dy: View,
    positions: View | None = None,
    *,
    base: float = 10000.0,
    style: RopeStyle | str = RopeStyle.INTERLEAVED,
    rotary_dim: int | None = None,
) -> RopeBackwardDescriptor:
    """The gradient of rope: the inverse rotation."""
    batch_size, heads, seq_len, head_dim = dy.of_rank(4)
    return RopeBackwardDescriptor(
        batch_size, heads, seq_len, head_dim, base, dy.element, member(RopeStyle, "style", style), rotary_dim
    )
