"""Gated activations, of two halves of a tensor: glu is gated by the second half, as in PyTorch, the others by the first."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.elementwise.activation_rows import relu, silu
from baracuda_kernels.ops.elementwise.arithmetic import times_sigmoid
from baracuda_kernels.ops.elementwise.gelu import gelu
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["ROWS"]

_GATED_BY_THE_FIRST: Any = {"operands": ("gate", "up"), "former": {"input": "gate", "gate": "up"}}

ROWS = (
    ElementwiseRow("glu", times_sigmoid, "The first operand, or half, times sigmoid of the second.", operands=("input", "gate")),
    ElementwiseRow("swiglu", lambda gate, up: silu(gate) * up, "silu(gate) times up.", **_GATED_BY_THE_FIRST),
    ElementwiseRow("geglu", lambda gate, up: gelu(gate) * up, "gelu(gate) times up; at -inf gelu is 0.",
        **_GATED_BY_THE_FIRST),
    ElementwiseRow("reglu", lambda gate, up: relu(gate) * up, "relu(gate) times up.", **_GATED_BY_THE_FIRST),
)  # fmt: skip
