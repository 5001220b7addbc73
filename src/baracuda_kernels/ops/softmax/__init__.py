"""Softmax and log-softmax along one axis, forward and backward."""

from baracuda_kernels.ops.softmax.softmax import (
    SoftmaxArgs,
    SoftmaxBackwardArgs,
    SoftmaxBackwardDescriptor,
    SoftmaxBackwardPlan,
    SoftmaxDescriptor,
    SoftmaxKind,
    SoftmaxPlan,
)

__all__ = [
    "SoftmaxArgs",
    "SoftmaxBackwardArgs",
    "SoftmaxBackwardDescriptor",
    "SoftmaxBackwardPlan",
    "SoftmaxDescriptor",
    "SoftmaxKind",
    "SoftmaxPlan",
]
