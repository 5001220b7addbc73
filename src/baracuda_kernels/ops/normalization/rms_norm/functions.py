"""RMSNorm as functions."""

from __future__ import annotations

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import Axes, View
from baracuda_kernels.ops.normalization.rms_norm.descriptor import HALVES, RMSNormBackwardDescriptor, RMSNormDescriptor
from baracuda_kernels.ops.normalization.rms_norm.rms_norm import RMSNormBackwardPlan, RMSNormPlan

__all__ = ["rms_norm", "rms_norm_backward"]


def _mask(x: View, axes: Axes) -> int:
    return sum(1 << axis for axis in x.axes(axes))


@function(RMSNormPlan, gradient="rms_norm_backward")
def rms_norm(
    x: View, gamma: View | None = None, *, axes: Axes = -1, eps: float = 1e-6, return_rms: bool = False
) -> RMSNormDescriptor:
    """x divided by its root mean square over the last axes, times gamma; for 16-bit floats, rms is f32."""
    rms_element = ElementKind.F32 if x.element in HALVES else None
    return RMSNormDescriptor(x.shape, _mask(x, axes), eps, gamma is not None, x.element, rms_element)


@function(RMSNormBackwardPlan)
def rms_norm_backward(dy: View, x: View, gamma: View | None, rms: View, *, axes: Axes = -1) -> RMSNormBackwardDescriptor:
    """The gradients of rms_norm by x and by gamma, from its root mean squares."""
    return RMSNormBackwardDescriptor(x.shape, _mask(x, axes), gamma is not None, x.element, rms.element)
