"""`fuse`: a caller's own formula as one kernel, forward and backward.

`fuse` traces a Python function and makes a function of it; `tracing` writes it down in a descriptor; `fusion` has the plans.
Start with `fuse.py`.
"""

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
