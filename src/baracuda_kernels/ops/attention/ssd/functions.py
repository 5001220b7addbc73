"""The Mamba-2 SSD chunk scan as functions."""

from __future__ import annotations

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanBackwardDescriptor, SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.ssd import SsdChunkScanBackwardPlan, SsdChunkScanPlan

__all__ = ["ssd_chunk_scan", "ssd_chunk_scan_backward"]


def _problem(
    x: View, dt: View, b: View, chunk_size: int
) -> tuple[int, int, int, int, int, int, ElementKind, ElementKind, int | None]:
    batch_size, seq_len, heads, head_dim = x.of_rank(4)
    _, _, groups, state_dim = b.of_rank(4)
    return batch_size, seq_len, heads, head_dim, state_dim, chunk_size, x.element, dt.element, None if groups == heads else groups


@function(SsdChunkScanPlan, gradient="ssd_chunk_scan_backward")
def ssd_chunk_scan(
    x: View,
    dt: View,
    a: View,
    b: View,
    c: View,
    *,
    chunk_size: int = 128,
    initial_state: View | None = None,
    return_final_state: bool = False,
) -> SsdChunkScanDescriptor:
    """Mamba-2's SSD scan: outputs y[t] = h[t] c[t] of states h[t] = exp(dt[t] a) h[t-1] + dt[t] x[t] ⊗ b[t], for each batch and head."""
    return SsdChunkScanDescriptor(*_problem(x, dt, b, chunk_size), initial_state is not None, return_final_state)


@function(SsdChunkScanBackwardPlan)
def ssd_chunk_scan_backward(
    x: View,
    dt: View,
    a: View,
    b: View,
    c: View,
    dy: View,
    initial_state: View | None = None,
    d_final_state: View | None = None,
    *,
    chunk_size: int = 128,
) -> SsdChunkScanBackwardDescriptor:
    """The gradients of ssd_chunk_scan by x, b, c, dt, a and the initial state, from its inputs."""
    problem = _problem(x, dt, b, chunk_size)
    return SsdChunkScanBackwardDescriptor(*problem, initial_state is not None, d_final_state is not None)
