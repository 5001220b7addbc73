"""RMSNorm as functions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import Axes, View
from baracuda_kernels.ops.normalization.rms_norm.descriptor import HALVES, RMSNormBackwardDescriptor, RMSNormDescriptor
from baracuda_kernels.ops.normalization.rms_norm.rms_norm import RMSNormBackwardPlan, RMSNormPlan

__all__ = ["rms_norm", "rms_norm_backward"]


def _mask(x: View, axes: Axes) -> int:
    return sum(1 << axis for axis in x.axes(axes))


class OfAShape(Function):
    """Also by the arguments of torch.nn.functional: rms_norm(x, normalized_shape, weight, eps), where the second is a shape."""

    also = MappingProxyType({"input": "x", "weight": "gamma", "dim": "axes", "axis": "axes"})

    def meant(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        if len(given) > 1 and isinstance(given[1], int | tuple | list) and _is_shape(given[1]):
            behind = dict(zip(("normalized_shape", "weight", "eps"), given[1:], strict=False))
            if len(given) - 1 == len(behind) and not [name for name in behind if name in named]:
                given, named = given[:1], {**behind, **named}
        if not named:
            return given, named
        given, named = super().meant(given, named)
        if "normalized_shape" not in named:
            return given, named
        return given, self._over(given[0] if given else named.get("x"), dict(named))

    def _over(self, x: Any, named: dict[str, Any]) -> dict[str, Any]:
        """The named arguments of a call over the last axes of x, which have that shape."""
        wanted, gamma = named.pop("normalized_shape"), named.pop("gamma", None)
        shape = (wanted,) if isinstance(wanted, int) else tuple(wanted)
        last = tuple(getattr(x, "shape", ()))[-len(shape) :]
        reasons = []
        if not shape or last != shape:
            reasons.append(Reason(ReasonCode.SHAPE, "normalized_shape", shape, f"the last extents of x, {last}"))
        if gamma is not None and tuple(gamma.shape) != shape:
            reasons.append(Reason(ReasonCode.SHAPE, "weight", tuple(gamma.shape), shape))
        if "axes" in named:
            reasons.append(Reason(ReasonCode.UNEXPECTED_OPERAND, "axes", named["axes"], "one of axes and normalized_shape"))
        if reasons:
            raise InvalidProblem(self.name, reasons)
        if named.get("eps") is None:  # that of what sums are taken in, as PyTorch has it
            named["eps"] = 2.0**-52 if ElementKind.of(x.dtype) is ElementKind.F64 else 2.0**-23
        if gamma is not None:
            named["gamma"] = gamma if len(shape) == 1 else gamma.reshape(-1)
        return {**named, "axes": tuple(range(-len(shape), 0))}


def _is_shape(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, tuple | list) and all(isinstance(each, int) for each in value))


@function(RMSNormPlan, gradient="rms_norm_backward", kind=OfAShape)
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
