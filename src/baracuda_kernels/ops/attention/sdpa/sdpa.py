"""Scaled dot-product attention that materializes its weights.

scores = q kᵀ · scale (+ mask) ; causal: key j is hidden from query i where j > i
attn = softmax(scores)         ; y = attn v
dv = attnᵀ dy                  ; dattn = dy vᵀ
dscores = attn · (dattn - Σ_j attn_j dattn_j)
dq = dscores k · scale         ; dk = dscoresᵀ q · scale
"""

from __future__ import annotations

from collections.abc import Iterator

from baracuda_kernels.core.args import Args, contiguous, read, scratch, unit_last_axis, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, cublas_order, exact_order, matrix_units
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.attention.kind import AttentionKind
from baracuda_kernels.ops.attention.sdpa import reference
from baracuda_kernels.ops.attention.sdpa.cases import SdpaBackwardCases, SdpaCases
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor
from baracuda_kernels.ops.attention.sdpa.tiles import (
    MOST_FEATURES,
    SHARED_BYTES,
    other_backward_tiles,
    other_forward_tiles,
    workspace_bytes,
)

__all__ = ["SdpaArgs", "SdpaBackwardArgs", "SdpaBackwardPlan", "SdpaPlan"]

HALVES, WIDER = (ElementKind.F16, ElementKind.BF16), (ElementKind.F32, ElementKind.F64)


def tf32_units(descriptor: Descriptor) -> PrecisionGuarantee:
    return PrecisionGuarantee(MathPrecision.TF32, ElementKind.F32, True, True, batch_invariant=False)


def many_features(descriptor: Descriptor) -> Iterator[Reason]:
    """Where cuBLAS's products of 16-bit floats are worth it: gradients of weights are rounded between them."""
    assert isinstance(descriptor, SdpaBackwardDescriptor)
    most = max(descriptor.d_k, descriptor.d_v)
    if most <= MOST_FEATURES:
        yield Reason(ReasonCode.LIMIT, "d_k and d_v", most, f"more than {MOST_FEATURES}; up to there the Triton kernel is faster")
    if descriptor.kv_heads != descriptor.num_heads:
        yield Reason(
            ReasonCode.LIMIT, "num_kv_heads", descriptor.kv_heads, "num_heads: sums over heads would be rounded in between"
        )


class SdpaArgs(Args):
    q: TensorRef = read("q_shape", "the queries", layout=unit_last_axis)
    k: TensorRef = read("k_shape", "the keys", layout=unit_last_axis)
    v: TensorRef = read("v_shape", "the values", layout=unit_last_axis)
    mask: TensorRef = read("attn_shape", "what is added to the scores; -inf hides a key", present="has_mask")
    y: TensorMut = write("y_shape", "the weighted values", layout=unit_last_axis)
    attn: TensorMut = write("attn_shape", "the attention weights", layout=contiguous)


class SdpaPlan(Plan[SdpaDescriptor, SdpaArgs]):
    """Attention of q to k and v that materializes its weights."""

    category, op = OpCategory.ATTENTION, AttentionKind.SDPA
    reference = staticmethod(reference.sdpa)
    cases = SdpaCases()
    kernels = (
        Kernel("numba.sdpa", BackendKind.NUMBA, "numba:forward", exact_order),
        Kernel(
            "triton.sdpa",
            BackendKind.TRITON,
            "triton:forward",
            matrix_units,
            HALVES,
            shared_bytes=SHARED_BYTES,
            other_tiles=other_forward_tiles,
        ),
        Kernel("triton.sdpa_tf32", BackendKind.TRITON, "triton:forward", tf32_units, (ElementKind.F32,), shared_bytes=SHARED_BYTES),
        Kernel("aten.sdpa_cuda", BackendKind.ATEN, "vendor:forward", cublas_order, WIDER, on=DeviceKind.CUDA),
        Kernel("triton.sdpa_exact", BackendKind.TRITON, "triton:forward_exact", exact_order, WIDER),
    )


class SdpaBackwardArgs(Args):
    q: TensorRef = read("q_shape", "the queries", layout=unit_last_axis)
    k: TensorRef = read("k_shape", "the keys", layout=unit_last_axis)
    v: TensorRef = read("v_shape", "the values", layout=unit_last_axis)
    attn: TensorRef = read("attn_shape", "the saved attention weights", layout=contiguous)
    dy: TensorRef = read("y_shape", "the gradient of y", layout=unit_last_axis)
    dscores_ws: TensorMut = scratch("attn_shape", "workspace for the gradient of the scores", layout=contiguous)
    dq: TensorMut = write("q_shape", "the gradient of q", layout=unit_last_axis)
    dk: TensorMut = write("k_shape", "the gradient of k", layout=unit_last_axis, shared_axes=(1,))
    dv: TensorMut = write("v_shape", "the gradient of v", layout=unit_last_axis, shared_axes=(1,))


class SdpaBackwardPlan(Plan[SdpaBackwardDescriptor, SdpaBackwardArgs]):
    """The gradients of attention, from its saved weights."""

    category, op = OpCategory.ATTENTION, AttentionKind.SDPA
    reference = staticmethod(reference.sdpa_backward)
    cases = SdpaBackwardCases()
    kernels = (
        Kernel("numba.sdpa_backward", BackendKind.NUMBA, "numba:backward", exact_order),
        Kernel(
            "aten.sdpa_backward_wide_cuda",
            BackendKind.ATEN,
            "vendor:backward",
            matrix_units,
            (ElementKind.BF16,),
            limits=(many_features,),
            on=DeviceKind.CUDA,
        ),
        Kernel(
            "triton.sdpa_backward",
            BackendKind.TRITON,
            "triton:backward",
            matrix_units,
            HALVES,
            workspace=workspace_bytes,
            shared_bytes=SHARED_BYTES,
            other_tiles=other_backward_tiles,
        ),
        Kernel(
            "triton.sdpa_backward_tf32",
            BackendKind.TRITON,
            "triton:backward",
            tf32_units,
            (ElementKind.F32,),
            shared_bytes=SHARED_BYTES,
        ),
        Kernel("aten.sdpa_backward_cuda", BackendKind.ATEN, "vendor:backward", cublas_order, WIDER, on=DeviceKind.CUDA),
        Kernel("triton.sdpa_backward_exact", BackendKind.TRITON, "triton:backward_exact", exact_order, WIDER),
    )
