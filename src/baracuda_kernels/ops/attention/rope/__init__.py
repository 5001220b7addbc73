"""Rotary position embedding, forward and backward."""

from baracuda_kernels.ops.attention.rope.descriptor import RopeBackwardDescriptor, RopeDescriptor, RopeStyle
from baracuda_kernels.ops.attention.rope.rope import RopeArgs, RopeBackwardArgs, RopeBackwardPlan, RopePlan

__all__ = [
    "RopeArgs",
    "RopeBackwardArgs",
    "RopeBackwardDescriptor",
    "RopeBackwardPlan",
    "RopeDescriptor",
    "RopePlan",
    "RopeStyle",
]
