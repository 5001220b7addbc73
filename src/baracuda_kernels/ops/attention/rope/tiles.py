"""How much of a rotary embedding one program of a CUDA kernel takes: a pure function of the problem.

Every element is computed by itself, so its bits depend on none of this.
"""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = ["RopeTile", "other_tiles", "tile_for"]

WARPS = 4
LOAD_BYTES = WARPS * 32 * 16  # one vector for each thread
MOST_TOGETHER = 2  # more take registers that other programs need
MOST_PAIRS = 256
ENOUGH_PROGRAMS, BUSY_PROGRAMS = 64, 2048  # about one for two multiprocessors; more than they hold at a time
MOST_TURNS = 8  # of one table; more gain nothing


class RopeTile(NamedTuple):
    """`heads` by `positions` by `pairs` to a load, and `steps` times `together` loads for each table of cosines and sines."""

    heads: int
    positions: int
    pairs: int
    together: int  # loads that are under way at a time
    steps: int
    warps: int
    stages: int = 1  # more than 1: loads go to shared memory, this many steps ahead

    @property
    def each(self) -> int:
        """How many heads a program takes."""
        return self.heads * self.together * self.steps


def tile_for(element: ElementKind, interleaved: bool, heads: int, positions: int, pairs: int) -> RopeTile:
    """`heads` are all that share `positions`. A table of few pairs per thread leaves registers for loads of several heads."""
    room = LOAD_BYTES // ((2 if interleaved else 1) * element.size)  # pairs
    wide = min(power_of_two(pairs), MOST_PAIRS)
    high = min(power_of_two(positions), max(1, room // wide))
    deep = min(power_of_two(heads), max(1, room // (wide * high)))
    blocks, turns = -(-positions // high) * -(-pairs // wide), -(-heads // deep)
    together = min(MOST_TOGETHER, power_of_two(turns))
    while together > 1 and blocks * -(-turns // together) < ENOUGH_PROGRAMS:
        together //= 2
    most = min(MOST_TURNS // together, max(1, blocks * turns // together // BUSY_PROGRAMS))
    groups = -(-turns // (together * most))
    steps = -(-turns // (together * groups))  # as even as can be
    return RopeTile(deep, high, wide, together, steps, max(1, min(WARPS, WARPS * deep * high * wide // room)))


def other_tiles(problem: RopeDescriptor) -> list[RopeTile]:
    """Neighbours of the rule's tile where all heads share their positions: other warps, other numbers of heads to a table."""
    batch, heads, length, _ = problem.input_shape
    if 0 in problem.input_shape:
        return []
    tile = tile_for(problem.element, problem.style is RopeStyle.INTERLEAVED, batch * heads, length, problem.rotated // 2)
    changed = [tile._replace(warps=2 * tile.warps), tile._replace(steps=2 * tile.steps)]
    if tile.steps > 1:
        changed.append(tile._replace(steps=tile.steps // 2))
    return changed
