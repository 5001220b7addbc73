"""Ops on neighbours along an axis: differences, slopes and integrals, forward and backward."""

from baracuda_kernels.ops.calculus.cumulative import (
    CumulativeTrapezoidArgs,
    CumulativeTrapezoidBackwardArgs,
    CumulativeTrapezoidBackwardDescriptor,
    CumulativeTrapezoidBackwardPlan,
    CumulativeTrapezoidDescriptor,
    CumulativeTrapezoidPlan,
)
from baracuda_kernels.ops.calculus.diff import (
    DiffArgs,
    DiffBackwardArgs,
    DiffBackwardDescriptor,
    DiffBackwardPlan,
    DiffDescriptor,
    DiffPlan,
)
from baracuda_kernels.ops.calculus.gradient import (
    GradientArgs,
    GradientBackwardArgs,
    GradientBackwardDescriptor,
    GradientBackwardPlan,
    GradientDescriptor,
    GradientPlan,
)
from baracuda_kernels.ops.calculus.kind import NeighbourKind
from baracuda_kernels.ops.calculus.trapezoid import (
    TrapezoidArgs,
    TrapezoidBackwardArgs,
    TrapezoidBackwardDescriptor,
    TrapezoidBackwardPlan,
    TrapezoidDescriptor,
    TrapezoidPlan,
)

__all__ = [
    "CumulativeTrapezoidArgs",
    "CumulativeTrapezoidBackwardArgs",
    "CumulativeTrapezoidBackwardDescriptor",
    "CumulativeTrapezoidBackwardPlan",
    "CumulativeTrapezoidDescriptor",
    "CumulativeTrapezoidPlan",
    "DiffArgs",
    "DiffBackwardArgs",
    "DiffBackwardDescriptor",
    "DiffBackwardPlan",
    "DiffDescriptor",
    "DiffPlan",
    "GradientArgs",
    "GradientBackwardArgs",
    "GradientBackwardDescriptor",
    "GradientBackwardPlan",
    "GradientDescriptor",
    "GradientPlan",
    "NeighbourKind",
    "TrapezoidArgs",
    "TrapezoidBackwardArgs",
    "TrapezoidBackwardDescriptor",
    "TrapezoidBackwardPlan",
    "TrapezoidDescriptor",
    "TrapezoidPlan",
]
