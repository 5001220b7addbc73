"""Reductions along any axes, forward and backward, and sums to a smaller shape: a row of a table each.

`*_rows` are the tables (`rows`, `nan_rows`, `norm_rows`, `pair_rows`, `joint_rows`, ...), `row` what a row can say, `formulas` and `moments` what
they are made of. `geometry` tells which axes of a result belong to which of the input.
Start with `rows.py` to add an op, with `reduction.py` for the plans.
"""

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
from baracuda_kernels.ops.reduction.trace import (
    TraceArgs,
    TraceBackwardArgs,
    TraceBackwardDescriptor,
    TraceBackwardPlan,
    TraceDescriptor,
    TraceKind,
    TracePlan,
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
    "TraceArgs",
    "TraceBackwardArgs",
    "TraceBackwardDescriptor",
    "TraceBackwardPlan",
    "TraceDescriptor",
    "TraceKind",
    "TracePlan",
]
