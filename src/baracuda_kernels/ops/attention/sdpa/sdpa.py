"""Scaled dot-product attention with the attention matrix kept.

scores = q kᵀ · scale (+ mask) ; causal: key j is hidden from query i where j > i
attn = softmax(scores)         ; y = attn v
dv = attnᵀ dy                  ; dattn = dy vᵀ
dscores = attn · (dattn - Σ_j attn_j dattn_j)
dq = dscores k · scale         ; dk = dscoresᵀ q · scale
"""

from __future__ import annotations

from baracuda_kernels.core.args import Args, contiguous, read, scratch, unit_last_axis, write
from baracuda_kernels.core.kernel import Kernel, exact_order
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.attention.kind import AttentionKind
from baracuda_kernels.ops.attention.sdpa import reference
from baracuda_kernels.ops.attention.sdpa.cases import SdpaBackwardCases, SdpaCases
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor

__all__ = ["SdpaArgs", "SdpaBackwardArgs", "SdpaBackwardPlan", "SdpaPlan"]


class SdpaArgs(Args):
    q: TensorRef = read("q_shape", "the queries", layout=unit_last_axis)
    k: TensorRef = read("k_shape", "the keys", layout=unit_last_axis)
    v: TensorRef = read("v_shape", "the values", layout=unit_last_axis)
    mask: TensorRef = read("attn_shape", "what is added to the scores; -inf hides a key", present="has_mask")
    y: TensorMut = write("y_shape", "the weighted values", layout=unit_last_axis)
    attn: TensorMut = write("attn_shape", "the attention weights", layout=contiguous)


class SdpaPlan(Plan[SdpaDescriptor, SdpaArgs]):
    """Attention of q to k and v, with the weights kept."""

    category, op = OpCategory.ATTENTION, AttentionKind.SDPA
    reference = staticmethod(reference.sdpa)
    cases = SdpaCases()
    kernels = (Kernel("numba.sdpa", BackendKind.NUMBA, "numba:forward", exact_order),)


class SdpaBackwardArgs(Args):
    q: TensorRef = read("q_shape", "the queries", layout=unit_last_axis)
    k: TensorRef = read("k_shape", "the keys", layout=unit_last_axis)
    v: TensorRef = read("v_shape", "the values", layout=unit_last_axis)
    attn: TensorRef = read("attn_shape", "the saved attention weights", layout=contiguous)
    dy: TensorRef = read("y_shape", "the gradient of y", layout=unit_last_axis)
    dscores_ws: TensorMut = scratch("attn_shape", "room for the gradient of the scores", layout=contiguous)
    dq: TensorMut = write("q_shape", "the gradient of q", layout=unit_last_axis)
    dk: TensorMut = write("k_shape", "the gradient of k", layout=unit_last_axis, shared_axes=(1,))
    dv: TensorMut = write("v_shape", "the gradient of v", layout=unit_last_axis, shared_axes=(1,))


class SdpaBackwardPlan(Plan[SdpaBackwardDescriptor, SdpaBackwardArgs]):
    """The gradients of attention, from its saved weights."""

    category, op = OpCategory.ATTENTION, AttentionKind.SDPA
    reference = staticmethod(reference.sdpa_backward)
    cases = SdpaBackwardCases()
    kernels = (Kernel("numba.sdpa_backward", BackendKind.NUMBA, "numba:backward", exact_order),)
