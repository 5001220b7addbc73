"""Covariances and correlations as functions, with PyTorch's arguments."""

from __future__ import annotations

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.covariance.covariance import CovBackwardPlan, CovPlan
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor, CovKind

__all__ = ["corrcoef", "corrcoef_backward", "cov", "cov_backward"]


@function(CovPlan, gradient="cov_backward")
def cov(input: View, *, correction: int = 1, fweights: View | None = None, aweights: View | None = None) -> CovDescriptor:
    """The covariance matrix of variables (rows) over observations (columns)."""
    often = None if fweights is None else fweights.element
    return CovDescriptor(CovKind.COV, input.shape, input.element, correction, often, aweights is not None)


@function(CovBackwardPlan)
def cov_backward(
    d_result: View, input: View, *, correction: int = 1, fweights: View | None = None, aweights: View | None = None
) -> CovBackwardDescriptor:
    """The gradient of cov, from that of its result."""
    often = None if fweights is None else fweights.element
    return CovBackwardDescriptor(CovKind.COV, input.shape, input.element, correction, often, aweights is not None)


@function(CovPlan, gradient="corrcoef_backward")
def corrcoef(input: View) -> CovDescriptor:
    """The correlation matrix of variables (rows) over observations (columns)."""
    return CovDescriptor(CovKind.CORRCOEF, input.shape, input.element)


@function(CovBackwardPlan)
def corrcoef_backward(d_result: View, input: View) -> CovBackwardDescriptor:
    """The gradient of corrcoef, from that of its result."""
    return CovBackwardDescriptor(CovKind.CORRCOEF, input.shape, input.element)
