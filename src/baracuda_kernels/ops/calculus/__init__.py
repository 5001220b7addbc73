"""Differences, slopes and integrals along an axis, forward and backward: diff, gradient, trapezoid, cumulative_trapezoid.

Each op has a module of its own: descriptor, args, formulas, cases and plans. What it reads of an element's neighbours is a list of `runs`,
from which one body per device is made (`llvm`, `triton`); integrals up to every point are scans (`running`).
Start with `diff.py`.
"""

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
