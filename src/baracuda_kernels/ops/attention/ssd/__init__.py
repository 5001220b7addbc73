"""The Mamba-2 SSD chunk scan, forward and backward.

On the CPU: `states`, `carry`, `outputs` and `gradients` are the passes, `matrix` their products. On CUDA: `triton_*` are the bodies,
`tiles` and `tiles_backward` how much one program takes, `calls_backward` what is launched for a gradient.
Start with `ssd.py`, the plans, and `reference.py`, the formula.
"""

from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanBackwardDescriptor, SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.ssd import (
    SsdChunkScanArgs,
    SsdChunkScanBackwardArgs,
    SsdChunkScanBackwardPlan,
    SsdChunkScanPlan,
)

__all__ = [
    "SsdChunkScanArgs",
    "SsdChunkScanBackwardArgs",
    "SsdChunkScanBackwardDescriptor",
    "SsdChunkScanBackwardPlan",
    "SsdChunkScanDescriptor",
    "SsdChunkScanPlan",
]
