"""How much of a softmax one program of a CUDA kernel takes: pure functions of the problem, so the same call gives the same bits.

Nothing here depends on how many rows there are: a row's bits are the same alone and among others.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = ["SoftmaxTile", "columns_tile", "other_backward_tiles", "other_forward_tiles", "rows_tile"]

MOST_ON_CHIP = 32768  # bytes of a row that a block holds while everything is computed from it


class SoftmaxTile(NamedTuple):
    """`rows` by `cols` elements at a time, by `warps` warps; of what is walked twice, the first `held` places stay on chip."""

    rows: int
    cols: int
    warps: int
    held: int = 0

    @property
    def is_for_columns(self) -> bool:
        return self.held > 0 and self.rows > 1

    def is_whole(self, element: ElementKind) -> bool:
        """Whether all threads have something to hold, and the same number of vectors each."""
        vector = VECTOR_BYTES // element.size
        if not 1 <= self.warps <= 32 or self.cols < vector:
            return False
        if not self.held:
            return True
        if not self.is_for_columns:  # a long row
            return self.cols % (32 * self.warps * vector) == 0 and self.held % (32 * self.warps * vector) == 0
        return self.rows % self.lanes(element) == 0 and self.held % self.lanes(element) == 0

    def lanes(self, element: ElementKind) -> int:
        """Rows that all threads together hold at a time, each a vector of columns."""
        return max(1, 32 * self.warps * VECTOR_BYTES // element.size // self.cols)


def rows_tile(direction: str, problem: SoftmaxDescriptor, vectors: bool = True) -> SoftmaxTile:
    """Timed on an H200: a forward likes 32 bytes of each operand per thread, a backward 16, and blocks of 16 warps at most."""
    cols, size = power_of_two(problem.extent), problem.element.size
    if cols * size <= MOST_ON_CHIP:
        rows = max(1, 1024 // cols)
        warps = rows * cols * size // (32 * (32 if direction == "forward" else 16))
        return SoftmaxTile(rows, cols, min(16, max(1, warps)))
    piece = MOST_ON_CHIP // size
    if not vectors:  # addresses take registers too
        return SoftmaxTile(1, piece // 2, 16, piece // 2)
    if direction == "forward":
        return SoftmaxTile(1, piece, 16, piece)
    return (
        SoftmaxTile(1, piece, 32 if size == 2 else 16, 2 * piece)
        if cols > 2 * piece
        else SoftmaxTile(1, piece // 2, 16, piece // 2)
    )


def columns_tile(direction: str, problem: SoftmaxDescriptor, vectors: bool = True) -> SoftmaxTile:
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
    lanes = SoftmaxTile(0, cols, warps).lanes(problem.element)
    return SoftmaxTile(max(lanes, rows), cols, warps, max(lanes, held))


def other_forward_tiles(problem: SoftmaxDescriptor) -> list[SoftmaxTile]:
    return _others("forward", problem)


def other_backward_tiles(problem: SoftmaxDescriptor) -> list[SoftmaxTile]:
    return _others("backward", problem)


def _others(direction: str, problem: SoftmaxDescriptor) -> list[SoftmaxTile]:
    """Neighbours of the rule's tile for contiguous operands: what another device, or another shape, may like better."""
    if problem.inner == 1:
        tile = rows_tile(direction, problem)
        changed = [tile._replace(warps=tile.warps // 2), tile._replace(warps=tile.warps * 2)]
        if not tile.held:
            changed += [tile._replace(rows=tile.rows * 2, warps=tile.warps * 2)]
    else:
        tile = columns_tile(direction, problem)
        changed = [tile._replace(cols=tile.cols * 2), tile._replace(cols=tile.cols // 2), tile._replace(rows=tile.rows // 2)]
    return [other for other in changed if other != tile and other.is_whole(problem.element)]
