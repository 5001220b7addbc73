"""Softmax and log-softmax along one axis, forward and backward.

`numba` chooses between `rows` and `columns` by the layout, `triton` has CUDA's bodies, `tiles` their sizes, `vendor` calls PyTorch.
Start with `softmax.py`, the plans. CONTRIBUTING.md explains this package step by step.
"""

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
