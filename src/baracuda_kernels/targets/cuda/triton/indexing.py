"""Offsets from the index of a row, for Triton bodies and for the calls that launch them."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.targets.cuda.runtime.triton_launch import Count, Step
from baracuda_kernels.targets.geometry import Dim

__all__ = ["along", "dims", "filled", "offset"]

_RANKS = (1, 3, 8)  # ranks that bodies are compiled for; others are filled up with extents of 1


def dims(outer: Sequence[Dim], operands: int, element: ElementKind | None) -> tuple[tuple[Count, ...], list[tuple[Step, ...]]]:
    """The extents, innermost first, and each operand's steps, as `offset` takes them; `element` where vectors depend on them.

    A step that is never taken is 0, which does not limit vector loads: a row alone is read as it is among others.
    """
    rank = next(rank for rank in _RANKS if rank >= len(outer))
    filled = [*reversed(outer), *[Dim(1, (0,) * operands)] * (rank - len(outer))]
    steps = [tuple(Step(dim.steps[operand] if dim.extent > 1 else 0, element) for dim in filled) for operand in range(operands)]
    return tuple(Count(dim.extent) for dim in filled), steps


@triton.jit
def offset(index, extents, steps):
    """The offset of element `index` in row-major order."""
    last: tl.constexpr = len(extents) - 1
    at = index.to(tl.int64) * 0
    for dim in tl.static_range(last):
        at += (index % extents[dim]).to(tl.int64) * steps[dim]
        index = index // extents[dim]
    return at + index.to(tl.int64) * steps[last]


@triton.jit
def along(index, step, CONTIGUOUS: tl.constexpr):
    """The offset of position `index` on one axis."""
    if CONTIGUOUS:
        return index
    else:
        return index.to(tl.int64) * step


@triton.jit
def filled(numbers, SHAPE: tl.constexpr):
    """Each a block of its own."""
    blocks = ()
    for i in tl.static_range(len(numbers)):
        blocks += (tl.broadcast_to(numbers[i], SHAPE),)  # type: ignore[assignment]
    return blocks
