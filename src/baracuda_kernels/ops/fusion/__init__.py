"""Formulas of the caller's, each one kernel, forward and backward."""

from baracuda_kernels.ops.fusion.fusion import (
    FusedArgs,
    FusedBackwardArgs,
    FusedBackwardDescriptor,
    FusedBackwardPlan,
    FusedDescriptor,
    FusedPlan,
    FusionKind,
)

__all__ = [
    "FusedArgs",
    "FusedBackwardArgs",
    "FusedBackwardDescriptor",
    "FusedBackwardPlan",
    "FusedDescriptor",
    "FusedPlan",
    "FusionKind",
]
