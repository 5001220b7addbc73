"""Softmax and log-softmax as functions."""

from __future__ import annotations

from baracuda_kernels.core.forms import AlongAxis, Converting
from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import Dtype, View, element_from
from baracuda_kernels.ops.softmax.descriptor import SoftmaxBackwardDescriptor, SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.softmax import SoftmaxBackwardPlan, SoftmaxPlan

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


class Softmax(Converting, AlongAxis):
    """Along one axis, of elements that may be cast first."""


def _described(kind: SoftmaxKind, x: View, axis: int, dtype: object) -> SoftmaxDescriptor:
    element = x.element if dtype is None else element_from(x.function, "dtype", dtype)
    return SoftmaxDescriptor(kind, x.shape, x.axis(axis), element)


@function(SoftmaxPlan, gradient="softmax_backward", kind=Softmax)
def softmax(x: View, axis: int = -1, *, dtype: Dtype | None = None) -> SoftmaxDescriptor:
    """exp(x) divided by its sum along an axis."""
    return _described(SoftmaxKind.SOFTMAX, x, axis, dtype)


@function(SoftmaxBackwardPlan, kind=AlongAxis)
def softmax_backward(dy: View, y: View, axis: int = -1) -> SoftmaxBackwardDescriptor:
    """The gradient of softmax, from its output y."""
    return SoftmaxBackwardDescriptor(SoftmaxKind.SOFTMAX, y.shape, y.axis(axis), y.element)


@function(SoftmaxPlan, gradient="log_softmax_backward", kind=Softmax)
def log_softmax(x: View, axis: int = -1, *, dtype: Dtype | None = None) -> SoftmaxDescriptor:
    """The logarithm of softmax."""
    return _described(SoftmaxKind.LOG_SOFTMAX, x, axis, dtype)


@function(SoftmaxBackwardPlan, kind=AlongAxis)
def log_softmax_backward(dy: View, y: View, axis: int = -1) -> SoftmaxBackwardDescriptor:
    """The gradient of log_softmax, from its output y."""
    return SoftmaxBackwardDescriptor(SoftmaxKind.LOG_SOFTMAX, y.shape, y.axis(axis), y.element)
