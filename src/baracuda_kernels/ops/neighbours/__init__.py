"""Ops on neighbours along an axis: differences of any order, forward and backward."""

from baracuda_kernels.ops.neighbours.diff import (
    DiffArgs,
    DiffBackwardArgs,
    DiffBackwardDescriptor,
    DiffBackwardPlan,
    DiffDescriptor,
    DiffPlan,
)
from baracuda_kernels.ops.neighbours.kind import NeighbourKind
from baracuda_kernels.ops.neighbours.trapezoid import (
    TrapezoidArgs,
    TrapezoidBackwardArgs,
    TrapezoidBackwardDescriptor,
    TrapezoidBackwardPlan,
    TrapezoidDescriptor,
    TrapezoidPlan,
)

__all__ = [
    "DiffArgs",
    "DiffBackwardArgs",
    "DiffBackwardDescriptor",
    "DiffBackwardPlan",
    "DiffDescriptor",
    "DiffPlan",
    "NeighbourKind",
    "TrapezoidArgs",
    "TrapezoidBackwardArgs",
    "TrapezoidBackwardDescriptor",
    "TrapezoidBackwardPlan",
    "TrapezoidDescriptor",
    "TrapezoidPlan",
]
