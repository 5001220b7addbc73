"""The Mamba-2 SSD chunk scan, forward and backward."""

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
