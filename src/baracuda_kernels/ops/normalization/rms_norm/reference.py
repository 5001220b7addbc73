"""The formulas in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor


def rms_norm(descriptor: RMSNormDescriptor, x: Any, gamma: Any = None) -> tuple[Any, Any]:
    import numpy

    axes = tuple(range(len(descriptor.outer_shape), x.ndim))
    with numpy.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # The mean over nothing is taken as 0: rms is sqrt(eps) there.
        mean = (x * x).sum(axis=axes, keepdims=True) / max(descriptor.norm_total_extent, 1)
        rms = numpy.sqrt(mean + descriptor.eps)
        y = x / rms
        return (y if gamma is None else y * gamma.reshape(descriptor.row_shape)), rms


def rms_norm_backward(descriptor: RMSNormBackwardDescriptor, dy: Any, x: Any, rms: Any, gamma: Any = None) -> tuple[Any, Any]:
    import numpy

    outer = len(descriptor.outer_shape)
    axes, rows = tuple(range(outer, x.ndim)), tuple(range(outer))
    # The two terms of dx cancel in short rows, almost wholly where M is 1, so they are taken in more than float64 where there is more.
    if descriptor.norm_total_extent < 64:
        dy, x, rms = (array.astype(numpy.longdouble) for array in (dy, x, rms))
    with numpy.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scaled = dy if gamma is None else dy * gamma.reshape(descriptor.row_shape)
        projection = (scaled * x).sum(axis=axes, keepdims=True)
        dx = scaled / rms - x * projection / (rms**3 * max(descriptor.norm_total_extent, 1))
        dgamma = None if gamma is None else (dy * x / rms).sum(axis=rows).reshape(descriptor.gamma_shape)
        return dx, dgamma
