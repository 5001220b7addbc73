"""Rotary position embedding, forward and backward.

`angles`, `frequencies` and `sincos` compute the rotations exactly at any position.
Start with `rope.py`, the plans; the bodies are in `numba.py` and `triton.py`.
"""

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
