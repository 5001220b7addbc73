"""Softmax and log-softmax along one axis, forward and backward."""

from baracuda_kernels.ops.softmax.descriptor import SoftmaxBackwardDescriptor, SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.softmax import SoftmaxArgs, SoftmaxBackwardArgs, SoftmaxBackwardPlan, SoftmaxPlan

__all__ = [
    "SoftmaxArgs",
    "SoftmaxBackwardArgs",
    "SoftmaxBackwardDescriptor",
    "SoftmaxBackwardPlan",
    "SoftmaxDescriptor",
    "SoftmaxKind",
    "SoftmaxPlan",
]
