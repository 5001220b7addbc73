"""How a scan is distributed over the programs of CUDA kernels: pure functions of the problem.

Nothing here asks the device: the same call gives the same bits everywhere, and its workspace is known beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor

__all__ = ["IN_ONE_PIECE", "Cut", "SsdTile", "forward_choice", "forward_tile", "other_forward_tiles", "room", "workspace_bytes"]

SHARED_BYTES = 96 * 1024  # the most that a block uses
MULTIPROCESSORS = 132  # of an H200
MOST_STEPS = 256  # no chunk has more
SIZES = (16, 64, 128, 256)  # that rows of a state are filled up to
MANY_SHARE = 8  # heads to a group
ENOUGH = 128  # steps of a segment


class SsdTile(NamedTuple):
    """Chunks of `chunk` steps and strips of `cols` columns of a head, by `warps` warps, `stages - 1` chunks read ahead."""

    chunk: int
    cols: int
    warps: int
    stages: int
    pieces: int = 1  # that a state is held in, to multiply with one at a time


PARTS = 4  # numbers that are prepared of every step
ALIGNED = 4  # numbers to a vector
ROUNDING = 4 * ALIGNED  # numbers that it takes at most to align all parts of the workspace
PREPARED_HEADS = 16  # that one program prepares a chunk of
RECUR_WARPS = 8  # that go through a sequence step by step
PASS_BLOCK, PASS_STAGES = 512, 4  # numbers of a state that one program passes on, and how many states are on their way


def forward_tile(problem: SsdChunkScanDescriptor, is_prepared: bool = True) -> SsdTile:
    """The same for any number of sequences: their bits must not depend on it."""
    states = padded(problem.state_dim)
    if problem.element is ElementKind.F64:  # step by step: its matrix products take more registers than there are
        return SsdTile(1, 32, RECUR_WARPS, 2)
    if problem.element is ElementKind.F32:
        if states == 128 and is_whole(problem, 64) and is_prepared:
            return SsdTile(16, 64, 4, 1, 4)
        piece = 16 if states == 128 and not is_prepared else 32
        return SsdTile(16, 64, 8 if states > 16 else 4, 1, max(1, states // piece))
    if states == 256:
        return SsdTile(16, 64, 8, 2, 2) if problem.element is ElementKind.F16 else SsdTile(32, 64, 8, 2)
    if problem.element is ElementKind.F16:
        return SsdTile(32 if is_prepared else 16, 64, 4, 2)
    # Where heads share b and c, these come from the cache: then fewer, longer chunks are better than more of them read ahead.
    return SsdTile(64, 64, 4, 2) if problem.heads_per_group >= MANY_SHARE and is_prepared else SsdTile(32, 64, 4, 3)


def scalar_tile(problem: SsdChunkScanDescriptor) -> SsdTile:
    """The tile for operands that allow no vector loads: addresses take registers too."""
    states = padded(problem.state_dim)
    piece = 16 if problem.element is ElementKind.F32 and states > 64 else 32
    return SsdTile(16, 64, 8 if states > 16 else 4, 1, max(1, states // piece))


def is_whole(problem: SsdChunkScanDescriptor, cols: int) -> bool:
    """Whether rows need not be filled up."""
    return problem.head_dim % cols == 0 and problem.state_dim == padded(problem.state_dim)


def padded(extent: int) -> int:
    """What rows of so many elements are filled up to: few sizes, for few kernels."""
    return next(size for size in SIZES if size >= extent)


def strip_count(problem: SsdChunkScanDescriptor, tile: SsdTile) -> int:
    return -(-problem.head_dim // tile.cols)


class Cut(NamedTuple):
    """How a problem is cut up: each sequence into `segments`, with what depends on dt and a alone prepared beforehand or not."""

    segments: int
    is_prepared: bool


IN_ONE_PIECE = Cut(1, False)  # needs no workspace, and does not depend on the number of sequences


def forward_cut(problem: SsdChunkScanDescriptor, tile: SsdTile) -> Cut:
    """Enough segments to fill the machine, within the workspace of one state for each chunk as requested."""
    if problem.element is ElementKind.F64:
        return IN_ONE_PIECE
    size = problem.head_dim * problem.state_dim
    room = -(-problem.seq_len // problem.chunk_size) * size
    room -= ROUNDING
    ahead = prepared_numbers(problem, tile)
    is_prepared = 0 < ahead <= room
    most = min(1 + (room - ahead * is_prepared) // (size + 1), -(-problem.seq_len // ENOUGH))
    programs = max(1, problem.batch_size * problem.num_heads * strip_count(problem, tile))
    wanted = 1 if 2 * programs > 3 * MULTIPROCESSORS else 4 * MULTIPROCESSORS // programs
    span = segment_span(problem, tile, max(1, min(wanted, most)))
    return Cut(max(1, -(-problem.seq_len // span)), is_prepared)


def forward_choice(problem: SsdChunkScanDescriptor) -> tuple[SsdTile, Cut]:
    tile = forward_tile(problem)
    if not forward_cut(problem, tile).is_prepared:
        tile = forward_tile(problem, is_prepared=False)
    return tile, forward_cut(problem, tile)


def segment_span(problem: SsdChunkScanDescriptor, tile: SsdTile, segments: int) -> int:
    """Steps of a segment: whole chunks."""
    return max(1, -(-problem.seq_len // (segments * tile.chunk))) * tile.chunk


def chunk_count(problem: SsdChunkScanDescriptor, tile: SsdTile) -> int:
    return -(-problem.seq_len // tile.chunk)


def prepared_numbers(problem: SsdChunkScanDescriptor, tile: SsdTile) -> int:
    """How many prepared numbers each sequence has: some per step, and one per chunk."""
    return chunk_count(problem, tile) * (PARTS * tile.chunk + 1)


class WorkspaceParts(NamedTuple):
    """Where the parts of the workspace begin, and how long it is, in bytes."""

    prepared: int
    kept: int
    states: int
    decays: int
    end: int


def room(problem: SsdChunkScanDescriptor, tile: SsdTile, cut: Cut) -> WorkspaceParts:
    """What is prepared of all steps and chunks; then, of each segment but the last, the state it ends with and how much it forgets."""
    sequences, chunks, ends = problem.batch_size * problem.num_heads, chunk_count(problem, tile) * cut.is_prepared, cut.segments - 1
    parts = (PARTS * tile.chunk * chunks, chunks, ends * problem.head_dim * problem.state_dim, ends)
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + -(-sequences * part // ALIGNED) * ALIGNED)
    return WorkspaceParts(*(start * problem.state_element.size for start in starts))


def workspace_bytes(problem: SsdChunkScanDescriptor) -> int:
    return room(problem, *forward_choice(problem)).end


def other_forward_tiles(problem: SsdChunkScanDescriptor) -> list[SsdTile]:
    """More and fewer warps and chunks read ahead; sequences are cut as with the rule's tile, and the workspace is the same."""
    tile, _ = forward_choice(problem)
    changed = [tile._replace(warps=2 * tile.warps)] if tile.warps < 8 else [tile._replace(warps=tile.warps // 2)]
    return [*changed, tile._replace(stages=tile.stages - 1)] if tile.stages > 1 else changed
