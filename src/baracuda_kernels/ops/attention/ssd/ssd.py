"""The Mamba-2 SSD chunk scan.

h[t] = exp(dt[t] A) h[t-1] + dt[t] x[t] ⊗ B[t]         h is [head_dim, state_dim], one for each batch and head
y[t] = h[t] C[t]
"""

from __future__ import annotations

from dataclasses import replace

from baracuda_kernels.core.args import Args, read, unit_last_axis, write
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, at_most, exact_order, matrix_units
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind, LayoutSku, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.attention.kind import AttentionKind
from baracuda_kernels.ops.attention.ssd import reference, tiles, tiles_backward
from baracuda_kernels.ops.attention.ssd.cases import SsdChunkScanBackwardCases, SsdChunkScanCases
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanBackwardDescriptor, SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.spans import MOST_COLUMNS, backward_workspace, forward_workspace

__all__ = ["SsdChunkScanArgs", "SsdChunkScanBackwardArgs", "SsdChunkScanBackwardPlan", "SsdChunkScanPlan"]

LIMITS = (at_most("head_dim", MOST_COLUMNS), at_most("state_dim", MOST_COLUMNS))
ROWS = {"layout": unit_last_axis}
STEPS = {"element": "step_element"}
STATE = {"element": "state_element", "layout": unit_last_axis}


def one_walk(descriptor: SsdChunkScanDescriptor) -> PrecisionGuarantee:
    """The guarantee of a kernel on the tensor cores that treats every sequence alike."""
    return replace(matrix_units(descriptor), batch_invariant=True)


def gradients_order(descriptor: SsdChunkScanBackwardDescriptor) -> PrecisionGuarantee:
    """bf16 with a state too large for one program gave other bits in some of a thousand runs, so nothing is promised of those."""
    steady = descriptor.element is not ElementKind.BF16 or tiles_backward.backward_tile(descriptor).fits
    return replace(matrix_units(descriptor), deterministic=steady, bit_stable_on_same_hardware=steady)


class SsdChunkScanArgs(Args):
    x: TensorRef = read("x_shape", "the input", **ROWS)
    dt: TensorRef = read("dt_shape", "the length of each step", **STEPS)
    a: TensorRef = read("a_shape", "the rate of each head, negative for a decay", **STEPS)
    b: TensorRef = read("b_shape", "how the input enters the state", **ROWS)
    c: TensorRef = read("b_shape", "how the output reads the state", **ROWS)
    initial_state: TensorRef = read("state_shape", "the state before the first step", present="has_initial_state", **STATE)
    y: TensorMut = write("x_shape", "the output", **ROWS)
    final_state: TensorMut = write("state_shape", "the state after the last step", present="has_final_state", **STATE)


class SsdChunkScanPlan(Plan[SsdChunkScanDescriptor, SsdChunkScanArgs]):
    """The scan, in chunks: matrix products within one, states passed from one to the next."""

    category, op, aux_element = OpCategory.ATTENTION, AttentionKind.SSD_CHUNK_SCAN, "step_element"
    reference = staticmethod(reference.scan)
    cases = SsdChunkScanCases(SsdChunkScanDescriptor)
    kernels = (
        Kernel(
            "numba.ssd_chunk_scan",
            BackendKind.NUMBA,
            "numba:forward",
            exact_order,
            limits=LIMITS,
            workspace=forward_workspace,
            layout=LayoutSku.UNIT_LAST_AXIS,
        ),
        Kernel(
            "triton.ssd_chunk_scan",
            BackendKind.TRITON,
            "triton:forward",
            matrix_units,
            limits=LIMITS,
            workspace=tiles.workspace_bytes,
            layout=LayoutSku.UNIT_LAST_AXIS,
            shared_bytes=tiles.SHARED_BYTES,
            other_tiles=tiles.other_forward_tiles,
        ),
        Kernel(
            "triton.ssd_chunk_scan_walk",
            BackendKind.TRITON,
            "triton:forward_walk",
            one_walk,
            limits=LIMITS,
            layout=LayoutSku.UNIT_LAST_AXIS,
            shared_bytes=tiles.SHARED_BYTES,
        ),
    )


class SsdChunkScanBackwardArgs(Args):
    x: TensorRef = read("x_shape", "the input", **ROWS)
    dt: TensorRef = read("dt_shape", "the length of each step", **STEPS)
    a: TensorRef = read("a_shape", "the rate of each head, negative for a decay", **STEPS)
    b: TensorRef = read("b_shape", "how the input enters the state", **ROWS)
    c: TensorRef = read("b_shape", "how the output reads the state", **ROWS)
    dy: TensorRef = read("x_shape", "the gradient of the output", **ROWS)
    initial_state: TensorRef = read("state_shape", "the state before the first step", present="has_initial_state", **STATE)
    d_final_state: TensorRef = read("state_shape", "the gradient of the final state", present="has_final_state", **STATE)
    dx: TensorMut = write("x_shape", "the gradient of x", **ROWS)
    d_b: TensorMut = write("b_shape", "the gradient of b, summed over the heads of a group", **ROWS)
    d_c: TensorMut = write("b_shape", "the gradient of c, summed over the heads of a group", **ROWS)
    d_dt: TensorMut = write("dt_shape", "the gradient of dt", **STEPS)
    d_a: TensorMut = write("a_shape", "the gradient of a, summed over batch and steps", **STEPS)
    d_initial_state: TensorMut = write("state_shape", "the gradient of the initial state", present="has_initial_state", **STATE)


class SsdChunkScanBackwardPlan(Plan[SsdChunkScanBackwardDescriptor, SsdChunkScanBackwardArgs]):
    """The gradients of the scan, in the same chunks; states are computed anew."""

    category, op, aux_element = OpCategory.ATTENTION, AttentionKind.SSD_CHUNK_SCAN, "step_element"
    reference = staticmethod(reference.scan_backward)
    cases = SsdChunkScanBackwardCases()
    kernels = (
        Kernel(
            "numba.ssd_chunk_scan_backward",
            BackendKind.NUMBA,
            "numba:backward",
            exact_order,
            limits=LIMITS,
            workspace=backward_workspace,
            layout=LayoutSku.UNIT_LAST_AXIS,
        ),
        Kernel(
            "triton.ssd_chunk_scan_backward",
            BackendKind.TRITON,
            "calls_backward:backward",
            gradients_order,
            limits=LIMITS,
            workspace=tiles_backward.backward_bytes,
            layout=LayoutSku.UNIT_LAST_AXIS,
            shared_bytes=tiles_backward.BACKWARD_SHARED_BYTES,
            other_tiles=tiles_backward.other_tiles,
        ),
    )
