"""How the gradients of a scan are distributed over the programs of CUDA kernels: pure functions of the problem.

States are kept span by span. Spans are as short as the workspace allows; within a longer one, states are computed anew.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.tiles import MULTIPROCESSORS, PARTS, padded
from baracuda_kernels.targets.cuda.runtime.triton_launch import MOST_REGISTERS

__all__ = ["BackwardCut", "SsdBackwardTile", "SsdBlock", "backward_bytes", "backward_tile", "cut", "other_tiles"]

BACKWARD_SHARED_BYTES = 160 * 1024  # the most that a block uses
SHORTEST_WALK = 16  # chunks of a segment, at least: readers add what came before it
FEW_WALKS = MULTIPROCESSORS // 8  # up to which sequences are cut: chunks then look for their states, which takes longer
LONGEST_SPAN = 8  # chunks, unless a sequence in segments would not fit the workspace anyway
SUM_ROWS, RATE_PLACES, PASS_PLACES = 16, 1024, 1024  # what one program adds up or passes on


class SsdBlock(NamedTuple):
    """`rows` by `cols` of a state, by `warps` warps, `stages - 1` chunks or heads read ahead."""

    rows: int
    cols: int
    warps: int
    stages: int = 1
    registers: int | None = None  # the most a thread may have
    by_pairs: bool = False  # whether a walk reads x and dy as pairs


class SsdBackwardTile(NamedTuple):
    """Chunks of `chunk` steps, and what a program has of a state where it walks, has one head, or adds up the heads of a group."""

    chunk: int
    walk: SsdBlock
    head: SsdBlock
    group: SsdBlock
    fits: bool = False  # whether a program can hold all that belongs to a chunk of one head


class BackwardCut(NamedTuple):
    """How sequences are cut, in chunks: states are kept every `span`, a program walks `segment`, `slot` add up to a share of d_a.

    The heads of a group are dealt out to `slices` programs. Groups are taken in `rounds`, which use the same workspace in turn."""

    chunks: int
    span: int
    segment: int
    slot: int
    slices: int
    rounds: int = 1
    is_prepared: bool = False  # whether what depends on dt and a alone is computed beforehand

    @property
    def spans(self) -> int:
        return -(-self.chunks // self.span)

    @property
    def segments(self) -> int:
        return max(1, -(-self.chunks // self.segment))

    @property
    def slots(self) -> int:
        return -(-self.chunks // self.slot)


def backward_tile(problem: SsdChunkScanDescriptor) -> SsdBackwardTile:
    rows, cols = padded(problem.head_dim), padded(problem.state_dim)
    if problem.element is ElementKind.F64:
        block = SsdBlock(16, 16, 4, registers=MOST_REGISTERS)
        return SsdBackwardTile(16, SsdBlock(16, min(cols, 32), 4), block, block)
    if problem.element is ElementKind.F32:
        block = SsdBlock(min(rows, 32), min(cols, 32), 4, registers=MOST_REGISTERS)
        return SsdBackwardTile(32, SsdBlock(min(rows, 32), min(cols, 64), 4), block._replace(rows=16), block)
    part = SsdBlock(min(rows, 32), min(cols, 64), 4, registers=MOST_REGISTERS)
    short = SsdBackwardTile(32, part._replace(stages=2), part._replace(cols=min(cols, 32)), part)
    if problem.element is ElementKind.F16:
        return short
    whole = SsdBlock(min(rows, 64), min(cols, 128), 4, 3)
    fits = rows <= whole.rows and cols <= whole.cols
    block = whole if fits else part
    walk = whole._replace(by_pairs=True)
    if (
        2 * problem.batch_size * problem.num_heads <= MULTIPROCESSORS
    ):  # a walk alone on its multiprocessor waits less with less to do
        walk = walk._replace(cols=min(cols, 64), stages=4)
    long = SsdBackwardTile(64, walk, block, block, fits)
    # Where decays are not prepared, d_dt of chunks of 64 came out wrong on Hopper with Triton 3.6, in products of whole warp groups.
    return long if cut(problem, long).is_prepared else short


def narrowed(tile: SsdBackwardTile, cut: BackwardCut, adds: bool) -> SsdBlock:
    """Where states are not read as they are but computed, or heads are added up too, fewer rows and columns take as many registers."""
    block = tile.group if adds else tile.head
    if cut.span == cut.segments == 1:
        return block
    cols, warps = (32, 8) if adds and cut.span > 1 else (64, block.warps)
    return SsdBlock(min(block.rows, 32), min(block.cols, cols), warps, registers=MOST_REGISTERS)


def scattered(block: SsdBlock, rows: int, cols: int) -> SsdBlock:
    """The largest tile for operands that allow no vector loads: addresses take registers too."""
    return SsdBlock(min(block.rows, rows), min(block.cols, cols), 8, registers=MOST_REGISTERS)


def kept_element(problem: SsdChunkScanDescriptor) -> ElementKind:
    """The dtype of the states in the workspace: of 16-bit floats only bf16 has their range."""
    return problem.element if problem.element is ElementKind.BF16 else problem.state_element


@functools.lru_cache(maxsize=1024)
def cut(problem: SsdChunkScanDescriptor, tile: SsdBackwardTile) -> BackwardCut:
    """The first way to cut that fits the workspace."""
    return next(cut for cut in _cuts(problem, tile) if regions(problem, tile, cut)["end"] <= _budget(problem))


def blocks(problem: SsdChunkScanDescriptor, block: SsdBlock) -> tuple[int, int]:
    """How many of them a state has, by rows and columns."""
    return max(1, -(-problem.head_dim // block.rows)), max(1, -(-problem.state_dim // block.cols))


def _cuts(problem: SsdChunkScanDescriptor, tile: SsdBackwardTile) -> Iterator[BackwardCut]:
    """Possible cuts, from the fastest to the smallest, which keeps two states and one share of d_a."""
    chunks = -(-problem.seq_len // tile.chunk)
    walks = 2 * problem.batch_size * problem.num_heads * math.prod(blocks(problem, tile.walk))
    groups = 2 * problem.batch_size * problem.groups * chunks * blocks(problem, tile.group)[1]
    wanted = min(-(-2 * MULTIPROCESSORS // max(walks, 1)), chunks // SHORTEST_WALK) if walks <= FEW_WALKS else 1
    slices = min(-(-4 * MULTIPROCESSORS // max(groups, 1)), problem.heads_per_group)
    for segments in _halvings(wanted):
        for span in _doublings(min(chunks, LONGEST_SPAN) if segments > 1 else chunks):
            segment = max(1, -(-chunks // (segments * span))) * span
            for rounds in _doublings(max(1, problem.batch_size * problem.groups)):
                for part in _halvings(slices):
                    for slot in (1, max(chunks, 1)):
                        for is_prepared in (True, False) if problem.element.size == 2 else (False,):
                            yield BackwardCut(chunks, span, segment, slot, part, rounds, is_prepared)


def _halvings(number: int) -> Iterator[int]:
    while number > 1:
        yield number
        number //= 2
    yield 1


def _doublings(most: int) -> Iterator[int]:
    number = 1
    while number < most:
        yield number
        number *= 2
    yield number


def _budget(problem: SsdChunkScanDescriptor) -> int:
    """Three states for each chunk as requested."""
    chunks = -(-problem.seq_len // problem.chunk_size)
    states = problem.batch_size * problem.num_heads * chunks * problem.head_dim * problem.state_dim
    return 3 * states * problem.state_element.size


def families(problem: SsdChunkScanDescriptor, cut: BackwardCut) -> int:
    """How many groups, of all batches, a round has; the last one may have fewer."""
    return -(-problem.batch_size * problem.groups // cut.rounds)


def regions(problem: SsdChunkScanDescriptor, tile: SsdBackwardTile, cut: BackwardCut) -> dict[str, int]:
    """Where in the workspace everything lies, and where it ends: whole vectors first wherever rows are whole vectors."""
    pairs, state, sums = problem.batch_size * problem.num_heads, problem.head_dim * problem.state_dim, problem.state_element.size
    at_once = families(problem, cut) * problem.heads_per_group
    segments = cut.segments if cut.segments > 1 else 0
    steps = problem.batch_size * problem.seq_len * problem.groups * problem.state_dim if cut.slices > 1 else 0
    records = at_once * cut.spans * state * kept_element(problem).size
    fades = at_once * (cut.spans + segments) * sums if segments else 0
    shares = pairs * cut.slots * sums if state else 0
    sizes = {
        "ends": at_once * segments * state * sums,
        "ends_back": at_once * segments * state * sums,
        "shares_b": cut.slices * steps * sums,
        "shares_c": cut.slices * steps * sums,
        "prepared": pairs * cut.chunks * PARTS * tile.chunk * sums if cut.is_prepared else 0,
        "kept": records,
        "kept_back": records,
        "shares": shares,
        "keeps": pairs * cut.chunks * sums if cut.is_prepared else 0,
        "fades": fades,
        "fades_back": fades,
    }
    places, place = {}, 0
    for name, size in sizes.items():
        if name == "shares":
            place = -(-place // sums) * sums
        places[name] = place
        place += size
    return places | {"end": place}


def backward_bytes(problem: SsdChunkScanDescriptor) -> int:
    tile = backward_tile(problem)
    return regions(problem, tile, cut(problem, tile))["end"]


def other_tiles(problem: SsdChunkScanDescriptor) -> list[SsdBackwardTile]:
    """Other tiles to time, for 16-bit floats: one chunk less read ahead where sequences are walked, more warps for a chunk. The workspace is the same."""
    tile = backward_tile(problem)
    if problem.element.size > 2:
        return []
    walk, head = tile.walk._replace(stages=tile.walk.stages - 1), tile.head._replace(warps=8, registers=MOST_REGISTERS)
    return [tile._replace(walk=walk), tile._replace(head=head)]
