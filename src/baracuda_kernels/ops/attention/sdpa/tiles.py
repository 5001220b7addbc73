"""How attention is dealt out to the programs of a CUDA kernel: pure functions of the problem.

How many queries or heads there are has no say in it.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.gpu.tiles import power_of_two
from baracuda_kernels.ops.attention.sdpa.descriptor import AttentionShapes

__all__ = ["Tile", "columns_again_tile", "columns_tile", "forward_tile", "row_block", "rows_tile", "workspace_bytes"]

SHARED_BYTES = 163 * 1024  # the most that a block uses: blocks read ahead
NARROWEST = 16  # features of the smallest product
MOST_FEATURES = 128  # that are multiplied at a time
MOST_EXACT = 32  # without the matrix units, where operands take registers
LONGEST_ROW = 4096  # keys of a softmax that one program takes at a time
MENDED = 32  # queries that one program looks through


class Tile(NamedTuple):
    """`queries` by `keys` scores at a time, by `warps` warps, `stages - 1` blocks read ahead."""

    queries: int
    keys: int
    warps: int
    stages: int
    registers: int | None = None


def features(d: int, element: ElementKind, exact: bool) -> int:
    """How many features are taken at a time."""
    return min(MOST_EXACT if exact else MOST_FEATURES, max(NARROWEST, power_of_two(d)))


def forward_tile(problem: AttentionShapes, exact: bool) -> Tile:
    if exact:
        return Tile(32, 32, 4, 1)
    return Tile(128, 64, 8, 3)


def rows_tile(problem: AttentionShapes, exact: bool) -> Tile:
    if exact:
        return Tile(32, 32, 4, 1)
    return Tile(128, 64, 8, 3)


def columns_tile(problem: AttentionShapes, exact: bool) -> Tile:
    if exact:
        return Tile(32, 32, 4, 1)
    return Tile(64, 128, 8, 3)


def columns_again_tile(problem: AttentionShapes) -> Tile:
    return Tile(64, 128, 8, 2)


def row_block(keys: int) -> int:
    """How much of a row one program of a softmax takes at a time."""
    return min(LONGEST_ROW, power_of_two(keys))


def row_warps(block: int) -> int:
    return min(8, max(1, block // 256))


def workspace_bytes(problem: AttentionShapes) -> int:
    """Room for one sum of every query."""
    return problem.batch_size * problem.num_heads * problem.query_len * 16
