"""The formulas in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor, SoftmaxKind


def softmax(descriptor: SoftmaxDescriptor, x: Any) -> Any:
    import numpy

    axis = descriptor.softmax_axis
    if x.size == 0:
        return x.copy()
    with numpy.errstate(invalid="ignore", divide="ignore"):
        shifted = x - x.max(axis=axis, keepdims=True)
        total = numpy.exp(shifted).sum(axis=axis, keepdims=True)
        return numpy.exp(shifted) / total if descriptor.kind is SoftmaxKind.SOFTMAX else shifted - numpy.log(total)


def softmax_backward(descriptor: SoftmaxDescriptor, dy: Any, y: Any) -> Any:
    import numpy

    axis = descriptor.softmax_axis
    with numpy.errstate(invalid="ignore", over="ignore"):
        if descriptor.kind is SoftmaxKind.SOFTMAX:
            return y * (dy - (y * dy).sum(axis=axis, keepdims=True))
        return dy - numpy.exp(y) * dy.sum(axis=axis, keepdims=True)
