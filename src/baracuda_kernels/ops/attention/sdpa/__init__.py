"""Scaled dot-product attention that materializes its weights, forward and backward.

On the CPU `product` multiplies matrices, `rows` and `columns` are its softmax; on CUDA `triton_forward` and `triton_backward` are the bodies,
`tiles` how much one program takes; `vendor` calls PyTorch.
Start with `sdpa.py`, the plans.
"""

from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor
from baracuda_kernels.ops.attention.sdpa.sdpa import SdpaArgs, SdpaBackwardArgs, SdpaBackwardPlan, SdpaPlan

__all__ = ["SdpaArgs", "SdpaBackwardArgs", "SdpaBackwardDescriptor", "SdpaBackwardPlan", "SdpaDescriptor", "SdpaPlan"]
