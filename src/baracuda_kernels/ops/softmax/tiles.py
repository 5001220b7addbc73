"""How much of a softmax one program of a CUDA kernel takes: pure functions of the problem, so the same call gives the same bits.

Nothing here depends on how many rows there are: a row's bits are the same alone and among others.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.gpu.call import VECTOR_BYTES
from baracuda_kernels.gpu.tiles import power_of_two
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor

__all__ = ["Tile", "columns_tile", "rows_tile"]

MOST_ON_CHIP = 32768  # bytes of a row that a block holds while everything is computed from it


class Tile(NamedTuple):
    """`rows` by `cols` elements at a time, by `warps` warps; of what is walked twice, the first `held` places stay on chip."""

    rows: int
    cols: int
    warps: int
    held: int = 0

    def lanes(self, element: ElementKind) -> int:
        """Rows that all threads together hold at a time, each a vector of columns."""
        return max(1, 32 * self.warps * VECTOR_BYTES // element.size // self.cols)


def rows_tile(direction: str, problem: SoftmaxDescriptor, vectors: bool = True) -> Tile:
    """Timed on an H200: a forward likes 32 bytes of each operand per thread, a backward 16, and blocks of 16 warps at most."""
    cols, size = power_of_two(problem.extent), problem.element.size
    if cols * size <= MOST_ON_CHIP:
        rows = max(1, 1024 // cols)
        warps = rows * cols * size // (32 * (32 if direction == "forward" else 16))
        return Tile(rows, cols, min(16, max(1, warps)))
    piece = MOST_ON_CHIP // size
    if not vectors:  # addresses take registers too
        return Tile(1, piece // 2, 16, piece // 2)
    if direction == "forward":
        return Tile(1, piece, 16, piece)
    return Tile(1, piece, 32 if size == 2 else 16, 2 * piece) if cols > 2 * piece else Tile(1, piece // 2, 16, piece // 2)


def columns_tile(direction: str, problem: SoftmaxDescriptor, vectors: bool = True) -> Tile:
    """Strips that are wide enough for the memory's bursts, and narrow enough that much of a column can be held. Timed on an H200."""
    size = problem.element.size
    if direction == "forward":
        cols, most_rows, most_held, per_thread = 128 // size, 256 if size == 2 else 512, 64 if size == 2 else 512, 32
    else:
        cols, most_rows, most_held, per_thread = 64 // size, 512, 1024, 32 // size
    if not vectors or size == 8:  # addresses and f64 take registers too
        most_rows, most_held = most_rows // 2, most_held // 2
    rows, held = (min(power_of_two(problem.extent), most) for most in (most_rows, most_held))
    warps = min(16, max(1, rows * cols // (32 * per_thread)))
    lanes = Tile(0, cols, warps).lanes(problem.element)
    return Tile(max(lanes, rows), cols, warps, max(lanes, held))
