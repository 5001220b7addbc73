"""How a scan is dealt out to the programs of CUDA kernels: pure functions of the problem.

Nothing here asks the device: the same call gives the same bits everywhere, and its workspace is known beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.gpu.tiles import power_of_two
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor

__all__ = ["Tile", "forward_tile", "segment_count", "workspace_bytes"]

SHARED_BYTES = 160 * 1024  # the most that a block uses
MULTIPROCESSORS = 132  # of an H200
SMALLEST = 16  # of an extent on the matrix units


class Tile(NamedTuple):
    """Chunks of `chunk` steps and strips of `cols` columns of a head, by `warps` warps, `stages - 1` chunks read ahead."""

    chunk: int
    cols: int
    warps: int
    stages: int
    registers: int | None = None  # the most a thread may have


PASS_BLOCK, PASS_STAGES = 512, 4  # numbers of a state that one program passes on, and how many states are on their way


def forward_tile(problem: SsdChunkScanDescriptor) -> Tile:
    """The same for any number of sequences: their bits must not depend on it."""
    cols, states = padded(problem.head_dim), padded(problem.state_dim)
    if problem.element is ElementKind.F64:
        return Tile(16, min(cols, 16), 4, 1)
    if problem.element is ElementKind.F32:
        return Tile(32, min(cols, 32), 4, 1)
    return Tile(64, min(cols, 64 if states < 256 else 32), 4, 2 if states < 256 else 1)


def padded(extent: int) -> int:
    """What rows of so many elements are filled up to."""
    return max(SMALLEST, power_of_two(extent))


def strip_count(problem: SsdChunkScanDescriptor, tile: Tile) -> int:
    return -(-problem.head_dim // tile.cols)


def segment_count(problem: SsdChunkScanDescriptor, tile: Tile) -> int:
    """How many segments a sequence is cut into: enough to fill the machine, but no more than there are chunks as requested."""
    programs = problem.batch_size * problem.num_heads * strip_count(problem, tile)
    wanted = -(-2 * MULTIPROCESSORS // max(programs, 1))
    if 2 * programs > 3 * MULTIPROCESSORS:
        wanted = 1
    most = min(-(-problem.seq_len // max(problem.chunk_size, tile.chunk)), problem.head_dim * problem.state_dim)
    segments = max(1, min(wanted, most))
    return max(1, -(-problem.seq_len // segment_span(problem, tile, segments)))


def segment_span(problem: SsdChunkScanDescriptor, tile: Tile, segments: int) -> int:
    """Steps of a segment: whole chunks."""
    return max(1, -(-problem.seq_len // (segments * tile.chunk))) * tile.chunk


def workspace_bytes(problem: SsdChunkScanDescriptor) -> int:
    """The state that each segment but the last ends with, and how much of the state before it that has kept."""
    return bytes_with(problem, segment_count(problem, forward_tile(problem)))


def bytes_with(problem: SsdChunkScanDescriptor, segments: int) -> int:
    kept = problem.batch_size * problem.num_heads * (segments - 1)
    return kept * (problem.head_dim * problem.state_dim + 1) * problem.state_element.size
