"""Covariances and correlations of variables, forward and backward.

A composite: `vendor.py` centres rows and multiplies them with PyTorch's product, in a workspace that `workspace.py` divides.
Start with `covariance.py`, the plans.
"""

from baracuda_kernels.ops.covariance.covariance import CovArgs, CovBackwardArgs, CovBackwardPlan, CovPlan
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor, CovKind

__all__ = [
    "CovArgs",
    "CovBackwardArgs",
    "CovBackwardDescriptor",
    "CovBackwardPlan",
    "CovDescriptor",
    "CovKind",
    "CovPlan",
]
