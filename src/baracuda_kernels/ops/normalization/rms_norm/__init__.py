"""RMSNorm over the trailing axes, forward and backward.

`geometry` has how rows lie, `groups` how the gradient of gamma is summed, `tiles` how much one program takes on CUDA.
Start with `rms_norm.py`, the plans; the bodies are in `numba.py` and `triton_bodies.py`.
"""

from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor
from baracuda_kernels.ops.normalization.rms_norm.rms_norm import RMSNormArgs, RMSNormBackwardArgs, RMSNormBackwardPlan, RMSNormPlan

__all__ = [
    "RMSNormArgs",
    "RMSNormBackwardArgs",
    "RMSNormBackwardDescriptor",
    "RMSNormBackwardPlan",
    "RMSNormDescriptor",
    "RMSNormPlan",
]
