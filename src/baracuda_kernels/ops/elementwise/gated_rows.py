"""Gated activations, of two halves of a tensor: glu is gated by the second half, as in PyTorch; the others activate the first."""

from __future__ import annotations

from baracuda_kernels.ops.elementwise.activation_rows import relu, silu
from baracuda_kernels.ops.elementwise.gelu import gelu
from baracuda_kernels.ops.elementwise.rows import Row
from baracuda_kernels.ops.elementwise.scalars import times_sigmoid

__all__ = ["ROWS"]

ROWS = (
    Row("glu", times_sigmoid, "The first half times sigmoid of the second."),
    Row("swiglu", lambda a, b: silu(a) * b, "silu of the first half times the second."),
    Row("geglu", lambda a, b: gelu(a) * b, "gelu of the first half times the second; 0 of minus infinity, as of gelu."),
    Row("reglu", lambda a, b: relu(a) * b, "relu of the first half times the second."),
)
