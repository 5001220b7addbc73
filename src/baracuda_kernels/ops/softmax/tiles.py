"""How much of a softmax one program of a CUDA kernel takes: pure functions of the problem, so the same call gives the same bits.

Nothing here depends on how many rows there are: a row's bits are the same alone and among others.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor

__all__ = ["Tile", "columns_tile", "rows_tile"]


class Tile(NamedTuple):
    """`rows` by `cols` elements at a time, by `warps` warps."""

    rows: int
    cols: int
    warps: int


def rows_tile(direction: str, problem: SoftmaxDescriptor) -> Tile:
    cols = power_of_two(problem.extent)
    on_chip = 16384 if direction == "forward" else 16384
    if problem.element.size == 8:
        on_chip //= 2
    if cols > on_chip:
        return Tile(1, 4096, 8)
    rows = max(1, 1024 // cols)
    warps = min(16, max(1, rows * cols // 512))
    return Tile(rows, cols, warps)


def columns_tile(direction: str, problem: SoftmaxDescriptor, width: int) -> Tile:
    cols = min(32, power_of_two(width))
    return Tile(128, cols, 8)


def power_of_two(number: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, number - 1).bit_length()
