"""Derivatives of rope, which is linear: tangents are rotated, and gradients back."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _rope if function.name == "rope" else None


def composition(function: Function) -> Rule | None:
    return _rope_backward if function.name == "rope_backward" else None


def _rope(f: Any, t_x: Any, positions: Any, base: Any, style: Any, rotary_dim: Any, **_: Any) -> Any:
    return f("rope")(t_x, positions, base=base, style=style, rotary_dim=rotary_dim)


def _rope_backward(f: Any, dy: Any, positions: Any, **options: Any) -> Any:
    """By the opposite angles."""
    there = f.arange(dy.shape[2], dy) if positions is None else positions
    return f("rope")(dy, -there, **options)
