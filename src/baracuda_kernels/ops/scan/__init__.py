"""Scans along one axis: running sums, products, extrema and logarithms of sums of powers, forward and backward."""

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
