"""Scans along one axis, forward and backward: running sums, products, extrema, and logarithms of sums of exponentials.

`rows` is the table. On the CPU `writer` and `body` write the LLVM, `llvm` launches it; on CUDA `triton_bodies` scans, `tiles` chooses how much
one program takes; products have bodies of their own (`product`, `triton_product*`).
Start with `rows.py`, then `scan.py`, the plans.
"""

from baracuda_kernels.ops.scan.descriptor import ScanBackwardDescriptor, ScanDescriptor, ScanKind
from baracuda_kernels.ops.scan.scan import ScanArgs, ScanBackwardArgs, ScanBackwardPlan, ScanPlan

__all__ = [
    "ScanArgs",
    "ScanBackwardArgs",
    "ScanBackwardDescriptor",
    "ScanBackwardPlan",
    "ScanDescriptor",
    "ScanKind",
    "ScanPlan",
]
