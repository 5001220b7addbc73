"""Softmax and log-softmax as functions."""

from __future__ import annotations

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.softmax.descriptor import SoftmaxBackwardDescriptor, SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.softmax import SoftmaxBackwardPlan, SoftmaxPlan

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


@function(SoftmaxPlan, gradient="softmax_backward")
def softmax(x: View, axis: int = -1) -> SoftmaxDescriptor:
    """exp(x) divided by its sum along an axis."""
    return SoftmaxDescriptor(SoftmaxKind.SOFTMAX, x.shape, x.axis(axis), x.element)


@function(SoftmaxBackwardPlan)
def softmax_backward(dy: View, y: View, axis: int = -1) -> SoftmaxBackwardDescriptor:
    """The gradient of softmax, from its output y."""
    return SoftmaxBackwardDescriptor(SoftmaxKind.SOFTMAX, y.shape, y.axis(axis), y.element)


@function(SoftmaxPlan, gradient="log_softmax_backward")
def log_softmax(x: View, axis: int = -1) -> SoftmaxDescriptor:
    """The logarithm of softmax."""
    return SoftmaxDescriptor(SoftmaxKind.LOG_SOFTMAX, x.shape, x.axis(axis), x.element)


@function(SoftmaxBackwardPlan)
def log_softmax_backward(dy: View, y: View, axis: int = -1) -> SoftmaxBackwardDescriptor:
    """The gradient of log_softmax, from its output y."""
    return SoftmaxBackwardDescriptor(SoftmaxKind.LOG_SOFTMAX, y.shape, y.axis(axis), y.element)
