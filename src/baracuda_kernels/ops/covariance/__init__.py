"""Covariances and correlations of variables, forward and backward."""

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
