"""RMSNorm. With M the product of the normalized extents:

rms = sqrt(mean(x²) + eps)        y = x / rms · gamma
dx_i = dy_i gamma_i / rms - x_i (sum_j dy_j gamma_j x_j) / (rms³ M)        dgamma_i = sum over all rows of dy_i x_i / rms

PyTorch has no RMSNorm that writes into given memory, so there is no vendor kernel here.
"""

from __future__ import annotations

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.kernel import Kernel, Limit, exact_order, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.normalization.kind import NormalizationKind
from baracuda_kernels.ops.normalization.rms_norm import reference
from baracuda_kernels.ops.normalization.rms_norm.cases import RMSNormBackwardCases, RMSNormCases
from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor
from baracuda_kernels.ops.normalization.rms_norm.groups import partial_bytes
from baracuda_kernels.ops.normalization.rms_norm.tiles import (
    SHARED_BYTES,
    other_backward_tiles,
    other_forward_tiles,
    workspace_bytes,
)

__all__ = ["RMSNormArgs", "RMSNormBackwardArgs", "RMSNormBackwardPlan", "RMSNormPlan"]

LIMITS: tuple[Limit, ...] = (rank_at_most("input_shape", 8),)


class RMSNormArgs(Args):
    x: TensorRef = read("input_shape", "the input")
    gamma: TensorRef | None = read("gamma_shape", "the scale of each normalized element", present="has_gamma")
    y: TensorMut = write("input_shape", "the normalized input", may_be=("x",))
    rms: TensorMut = write("rms_shape", "the root mean square of each row, for the backward", element="stored_rms_element")


class RMSNormPlan(Plan[RMSNormDescriptor, RMSNormArgs]):
    """x divided by its root mean square over the trailing axes, times gamma."""

    category, op, aux_element = OpCategory.NORMALIZATION, NormalizationKind.RMS_NORM, "stored_rms_element"
    reference = staticmethod(reference.rms_norm)
    cases = RMSNormCases(RMSNormDescriptor)
    kernels = (
        Kernel("numba.rms_norm", BackendKind.NUMBA, "numba:forward", exact_order, limits=LIMITS),
        Kernel(
            "triton.rms_norm",
            BackendKind.TRITON,
            "triton:forward",
            exact_order,
            limits=LIMITS,
            shared_bytes=SHARED_BYTES,
            other_tiles=other_forward_tiles,
        ),
    )


class RMSNormBackwardArgs(Args):
    dy: TensorRef = read("input_shape", "the gradient of the output")
    x: TensorRef = read("input_shape", "the forward's input")
    gamma: TensorRef | None = read("gamma_shape", "the forward's scale", present="has_gamma")
    rms: TensorRef = read("rms_shape", "the saved root mean squares", element="stored_rms_element")
    dx: TensorMut = write("input_shape", "the gradient of the input", may_be=("dy",))
    dgamma: TensorMut | None = write("gamma_shape", "the gradient of gamma", present="has_gamma")


class RMSNormBackwardPlan(Plan[RMSNormBackwardDescriptor, RMSNormBackwardArgs]):
    """The gradients of RMSNorm by its input and by gamma, from the saved root mean squares."""

    category, op, aux_element = OpCategory.NORMALIZATION, NormalizationKind.RMS_NORM, "stored_rms_element"
    reference = staticmethod(reference.rms_norm_backward)
    cases = RMSNormBackwardCases(RMSNormBackwardDescriptor)
    kernels = (
        Kernel("numba.rms_norm_backward", BackendKind.NUMBA, "numba:backward", exact_order, limits=LIMITS, workspace=partial_bytes),
        Kernel(
            "triton.rms_norm_backward",
            BackendKind.TRITON,
            "triton:backward",
            exact_order,
            limits=LIMITS,
            workspace=workspace_bytes,
            shared_bytes=SHARED_BYTES,
            other_tiles=other_backward_tiles,
        ),
    )
