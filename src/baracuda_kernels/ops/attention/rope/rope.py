"""Rotary position embedding. For pair i of the R rotated features and position p, θ = p · base^(-2i/R):

y_a = x_a cos θ - x_b sin θ        dx_a = dy_a cos θ + dy_b sin θ
y_b = x_b cos θ + x_a sin θ        dx_b = dy_b cos θ - dy_a sin θ

PyTorch has no rotary kernel, so there is no vendor candidate here.
"""

from __future__ import annotations

from baracuda_kernels.core.args import Args, read, unit_last_axis, write
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, exact_order
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind, LayoutSku, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.attention.kind import AttentionKind
from baracuda_kernels.ops.attention.rope import reference
from baracuda_kernels.ops.attention.rope.cases import RopeCases
from baracuda_kernels.ops.attention.rope.descriptor import RopeBackwardDescriptor, RopeDescriptor
from baracuda_kernels.ops.attention.rope.tiles import other_tiles

__all__ = ["RopeArgs", "RopeBackwardArgs", "RopeBackwardPlan", "RopePlan"]

POSITIONS = ("shared_positions", "batch_positions")
POSITIONS_DOC = "the position of each row, [S] or [B, S]; left out, row s is at position s"


class RopeArgs(Args):
    x: TensorRef = read("input_shape", "queries or keys", layout=unit_last_axis)
    positions: TensorRef | None = read(POSITIONS, POSITIONS_DOC, element=ElementKind.I64, present=False)
    y: TensorMut = write("input_shape", "x, rotated", layout=unit_last_axis, may_be=("x",))


class RopePlan(Plan[RopeDescriptor, RopeArgs]):
    """Rotary position embedding: pairs of features rotated by angles that grow with the position."""

    category, op = OpCategory.ATTENTION, AttentionKind.ROPE
    reference = staticmethod(reference.rope)
    cases = RopeCases(RopeDescriptor)
    kernels = (
        Kernel("numba.rope", BackendKind.NUMBA, "numba:forward", exact_order, layout=LayoutSku.UNIT_LAST_AXIS),
        Kernel(
            "triton.rope",
            BackendKind.TRITON,
            "triton:forward",
            exact_order,
            layout=LayoutSku.UNIT_LAST_AXIS,
            other_tiles=other_tiles,
        ),
    )


class RopeBackwardArgs(Args):
    dy: TensorRef = read("input_shape", "the gradient of the output", layout=unit_last_axis)
    positions: TensorRef | None = read(POSITIONS, POSITIONS_DOC, element=ElementKind.I64, present=False)
    dx: TensorMut = write("input_shape", "the gradient of the input", layout=unit_last_axis, may_be=("dy",))


class RopeBackwardPlan(Plan[RopeBackwardDescriptor, RopeBackwardArgs]):
    """The gradient of a rotary embedding: the inverse rotation."""

    category, op = OpCategory.ATTENTION, AttentionKind.ROPE
    reference = staticmethod(reference.rope_backward)
    cases = RopeCases(RopeBackwardDescriptor)
    kernels = (
        Kernel("numba.rope_backward", BackendKind.NUMBA, "numba:backward", exact_order, layout=LayoutSku.UNIT_LAST_AXIS),
        Kernel(
            "triton.rope_backward",
            BackendKind.TRITON,
            "triton:backward",
            exact_order,
            layout=LayoutSku.UNIT_LAST_AXIS,
            other_tiles=other_tiles,
        ),
    )
