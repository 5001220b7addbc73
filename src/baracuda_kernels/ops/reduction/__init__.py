"""Reductions along any axes, forward and backward, and sums to a smaller shape."""

from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceChoiceBackwardDescriptor,
    ReduceDescriptor,
    ReduceJointBackwardDescriptor,
    ReduceJointDescriptor,
    ReduceJointKind,
    ReduceKind,
    ReducePairBackwardDescriptor,
    ReducePairDescriptor,
    ReducePairKind,
    ReduceToDescriptor,
    ReduceToKind,
)
from baracuda_kernels.ops.reduction.joint import (
    ReduceJointArgs,
    ReduceJointBackwardArgs,
    ReduceJointBackwardPlan,
    ReduceJointPlan,
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
    "ReduceJointArgs",
    "ReduceJointBackwardArgs",
    "ReduceJointBackwardDescriptor",
    "ReduceJointBackwardPlan",
    "ReduceJointDescriptor",
    "ReduceJointKind",
    "ReduceJointPlan",
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
