"""Reductions along any axes, forward and backward, and sums to a smaller shape."""

from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceChoiceBackwardDescriptor,
    ReduceDescriptor,
    ReduceKind,
    ReducePairBackwardDescriptor,
    ReducePairDescriptor,
    ReducePairKind,
    ReduceToDescriptor,
    ReduceToKind,
)
from baracuda_kernels.ops.reduction.pairs import (
    ReduceChoiceBackwardArgs,
    ReduceChoiceBackwardPlan,
    ReducePairArgs,
    ReducePairBackwardArgs,
    ReducePairBackwardPlan,
    ReducePairPlan,
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
    "ReduceChoiceBackwardArgs",
    "ReduceChoiceBackwardDescriptor",
    "ReduceChoiceBackwardPlan",
    "ReduceDescriptor",
    "ReduceKind",
    "ReducePairArgs",
    "ReducePairBackwardArgs",
    "ReducePairBackwardDescriptor",
    "ReducePairBackwardPlan",
    "ReducePairDescriptor",
    "ReducePairKind",
    "ReducePairPlan",
    "ReducePlan",
    "ReduceToArgs",
    "ReduceToDescriptor",
    "ReduceToKind",
    "ReduceToPlan",
]
