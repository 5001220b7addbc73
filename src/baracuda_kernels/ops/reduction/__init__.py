"""Reductions along any axes, forward and backward, and sums to a smaller shape."""

from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    ReduceKind,
    ReduceToDescriptor,
    ReduceToKind,
)
from baracuda_kernels.ops.reduction.reduction import (
    ReduceArgs,
    ReduceBackwardArgs,
    ReduceBackwardPlan,
    ReducePlan,
    ReduceToArgs,
    ReduceToPlan,
)

__all__ = [
    "ReduceArgs",
    "ReduceBackwardArgs",
    "ReduceBackwardDescriptor",
    "ReduceBackwardPlan",
    "ReduceDescriptor",
    "ReduceKind",
    "ReducePlan",
    "ReduceToArgs",
    "ReduceToDescriptor",
    "ReduceToKind",
    "ReduceToPlan",
]
