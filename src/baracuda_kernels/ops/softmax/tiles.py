"""How much of a softmax one program of a CUDA kernel takes: pure functions of the problem, so the same call gives the same bits.

Nothing here depends on how many rows there are: a row's bits are the same alone and among others.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor

__all__ = ["Tile", "columns_tile", "rows_tile"]


class Tile(NamedTuple):
    """`rows` by `cols` elements at a time, by `warps` warps; of what is walked twice, the first `held` places stay on chip."""

    rows: int
    cols: int
    warps: int
    held: int = 0
    registers: int | None = None

    def lanes(self, element: ElementKind) -> int:
        """Rows that all threads together hold at a time, each a vector of columns."""
        return max(1, 32 * self.warps * 16 // element.size // self.cols)


def rows_tile(direction: str, problem: SoftmaxDescriptor) -> Tile:
    cols = power_of_two(problem.extent)
    if cols * max(problem.element.size, 4) > 65536:
        return Tile(1, 8192, 16, 8192)
    rows = max(1, 1024 // cols)
    return Tile(rows, cols, min(16, max(1, rows * cols // 256)))


def columns_tile(direction: str, problem: SoftmaxDescriptor, width: int) -> Tile:
    cols = min(64 // problem.element.size, power_of_two(width))
    tile = Tile(128, cols, 8, 128)
    lanes = tile.lanes(problem.element)
    return tile._replace(rows=max(128, lanes), held=max(128, lanes))


def power_of_two(number: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, number - 1).bit_length()
