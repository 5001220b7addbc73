"""How attention is distributed over the programs of a CUDA kernel: pure functions of the problem.

Where results are exact, how many queries or heads there are does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.ops.attention.sdpa.descriptor import AttentionShapes, SdpaDescriptor
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = [
    "SdpaBackwardTile",
    "SdpaTile",
    "columns_again_tile",
    "columns_tile",
    "forward_tile",
    "other_backward_tiles",
    "other_forward_tiles",
    "row_block",
    "rows_tile",
    "workspace_bytes",
]

SHARED_BYTES = 163 * 1024  # the most that a block uses: blocks read ahead
NARROWEST = 16  # features of the smallest product
NARROW = 64  # features up to which blocks are dealt out more finely
MOST_FEATURES = 128  # that are multiplied at a time
MOST_EXACT = 32  # without the tensor cores, where operands take registers
LONGEST_ROW = 4096  # keys of a softmax that one program takes at a time
MENDED = 32  # queries that one program looks through


Capability = tuple[int, int]
HOPPER: Capability = (9, 0)


class SdpaTile(NamedTuple):
    """`queries` by `keys` scores at a time, by `warps` warps, `stages - 1` blocks read ahead."""

    queries: int
    keys: int
    warps: int
    stages: int
    sum_stages: int = 1  # where sums of the gradient are taken first, for those
    registers: int | None = None  # the most a thread may have


class SdpaBackwardTile(NamedTuple):
    """The tiles of the row kernel, which computes the sums, and of the column kernel, which needs them."""

    rows: SdpaTile
    columns: SdpaTile


EXACT = SdpaTile(32, 32, 8, 1)
WITHOUT_VECTORS = SdpaTile(16, 32, 8, 1)  # every element's address takes registers


def features(d: int, exact: bool) -> int:
    """How many features are taken at a time."""
    return min(MOST_EXACT if exact else MOST_FEATURES, max(NARROWEST, power_of_two(d)))


def forward_tile(problem: SdpaDescriptor, exact: bool) -> SdpaTile:
    """16-bit floats were timed on an H200, as were those of the backward. Where half of the scores are hidden, small blocks waste less."""
    if exact:
        return EXACT
    if problem.element.size > 2:
        return _tile_of_wider(problem)
    if _width(problem) <= NARROW:
        return SdpaTile(64, 32, 4, 4) if problem.is_causal else SdpaTile(128, 32, 8, 4)
    # Two programs to a multiprocessor are worth more than the registers.
    return SdpaTile(128, 32, 8, 3, registers=128 if _width(problem) <= MOST_FEATURES else None)


def rows_tile(problem: AttentionShapes, exact: bool) -> SdpaTile:
    if exact:
        return EXACT
    if problem.element.size > 2:
        return _tile_of_wider(problem)
    return SdpaTile(64, 64, 4, 4, 4) if _width(problem) <= NARROW else SdpaTile(128, 64, 8, 3, 4)


def columns_tile(problem: AttentionShapes, exact: bool) -> SdpaTile:
    if exact:
        return EXACT
    return SdpaTile(64, 128, 8, 3) if problem.element.size == 2 else SdpaTile(32, 64, 8, 2)


def columns_again_tile(problem: AttentionShapes, capability: Capability = HOPPER) -> SdpaTile:
    narrow = _width(problem) <= NARROW
    if capability[0] != HOPPER[0]:
        return SdpaTile(32, 64, 4, 4) if narrow else SdpaTile(64, 64, 8, 2)
    chosen = SdpaTile(64, 64, 4, 3, registers=168) if narrow else SdpaTile(64, 128, 8, 3)
    filled = all(d == features(d, False) for d in (problem.d_k, problem.d_v))
    if filled and problem.query_len % chosen.queries == problem.key_len % chosen.keys == 0:
        return chosen
    return SdpaTile(32, 64, 4, 4) if narrow else SdpaTile(32, 128, 8, 4)  # looking out for the end takes registers


def _tile_of_wider(problem: AttentionShapes) -> SdpaTile:
    if _width(problem) <= NARROW:
        return SdpaTile(64, 32, 4, 2, 2)
    return SdpaTile(64, 32, 8, 2, 2) if _width(problem) <= MOST_FEATURES else WITHOUT_VECTORS


def _width(problem: AttentionShapes) -> int:
    return max(problem.d_k, problem.d_v)


def row_block(keys: int) -> int:
    """How much of a row one program of a softmax takes at a time."""
    return min(LONGEST_ROW, power_of_two(keys))


def row_warps(block: int) -> int:
    return min(8, max(1, block // 256))


def workspace_bytes(problem: AttentionShapes) -> int:
    """One sum for every query, in a vector of its own."""
    return problem.batch_size * problem.num_heads * problem.query_len * VECTOR_BYTES


def other_forward_tiles(problem: SdpaDescriptor) -> list[SdpaTile]:
    """Other tiles to time, for 16-bit floats: as many queries per warp in larger or smaller blocks, and fewer blocks read ahead."""
    tile = forward_tile(problem, exact=False)
    queries = 128 if tile.queries == 64 else tile.queries // 2
    return [tile._replace(queries=queries, warps=tile.warps * queries // tile.queries), tile._replace(stages=tile.stages - 1)]


def other_backward_tiles(problem: AttentionShapes) -> list[SdpaBackwardTile]:
    """Other tiles to time, for 16-bit floats; the default columns depend on the layouts, so the others go with either."""
    rows, columns = rows_tile(problem, exact=False), columns_again_tile(problem)
    fewer = rows._replace(stages=rows.stages - 1, sum_stages=rows.sum_stages - 1)
    return [SdpaBackwardTile(fewer, columns), SdpaBackwardTile(rows, columns._replace(stages=columns.stages - 1))]
