"""Layouts of the inputs of a timed problem: row-major unless stated otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baracuda_kernels.core.layout import Shape

__all__ = ["LAYOUTS", "TRANSPOSED", "Layouts", "describe_layouts", "place", "stored_shape"]

TRANSPOSED = "transposed"  # the last two axes change places in memory
KEPT_AXIS = {"row": -1, "column": -2}  # one row, or one column, for all
LAYOUTS = (TRANSPOSED, *KEPT_AXIS)
Layouts = Mapping[str, str]  # by the input's name


def stored_shape(shape: Shape, layout: str | None) -> Shape:
    """The shape in memory, which is broadcast to the rest."""
    if layout not in KEPT_AXIS:
        return shape
    kept = len(shape) + KEPT_AXIS[layout]
    return tuple(extent if axis == kept else 1 for axis, extent in enumerate(shape))


def place(values: Any, shape: Shape, layout: str | None, dtype: Any, device: str) -> Any:
    """A tensor of the shape in that layout, filled with the values; a broadcast one with a part of them."""
    import torch

    stored = stored_shape(shape, layout)
    if layout == TRANSPOSED:
        tensor = torch.empty((*stored[:-2], stored[-1], stored[-2]), dtype=dtype, device=device).transpose(-1, -2)
    else:
        tensor = torch.empty(stored, dtype=dtype, device=device)
    tensor.copy_(torch.as_tensor(values)[tuple(slice(extent) for extent in stored)])
    return tensor.expand(shape)


def describe_layouts(layouts: Layouts) -> str:
    """The layouts as text, such as "input transposed, other row"."""
    return ", ".join(f"{name} {layout}" for name, layout in layouts.items())
