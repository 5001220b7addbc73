"""Scaled dot-product attention that keeps its weights, forward and backward."""

from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor
from baracuda_kernels.ops.attention.sdpa.sdpa import SdpaArgs, SdpaBackwardArgs, SdpaBackwardPlan, SdpaPlan

__all__ = ["SdpaArgs", "SdpaBackwardArgs", "SdpaBackwardDescriptor", "SdpaBackwardPlan", "SdpaDescriptor", "SdpaPlan"]
