"""RMSNorm over the trailing axes, forward and backward."""

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
