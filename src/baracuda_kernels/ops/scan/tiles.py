"""How much of a scan one program takes on CUDA: plain reckoning, from the extents and what is joined."""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.gpu.tiles import power_of_two
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor
from baracuda_kernels.ops.scan.rows import PREFIX, SUFFIX, Formulas, tree_formulas_of
from baracuda_kernels.ops.scan.scaled import MOST_FACTORS

__all__ = ["SLOT", "ScanTile", "Split", "backward_bytes", "gradient_tile", "split_bytes", "split_for", "tile_for"]

TILE, PAIR_TILE = 2048, 1024  # elements of four warps, whose states are one number each, or two
WARPS = 4
LANES, WORD = 32, 4  # threads of a warp, bytes of a register
STRIPS, STRIP_WORDS = 8, 64  # of columns: one for each warp, and what a thread has of states
SHORT = 64  # steps of columns that are not worth it
BESIDE = 32  # lines side by side that make whole lines of memory
PROGRAMS = 1024  # so many keep any device busy
FEWEST = 8  # segments that are worth reading everything twice
UNIT = 4096  # elements: segments are whole tiles, whatever their size
SLOT = 8  # bytes of one number in the workspace
TOTALS_AT_ONCE = 256


class ScanTile(NamedTuple):
    lines: int
    steps: int  # of a strip
    warps: int
    totals: int  # of segments that are joined at once
    strips: int = 1  # one after the other along a line
    vector: int = 0  # lines that a thread reads at once, if it has whole strips of them

    @property
    def height(self) -> int:
        return self.steps * self.strips


class Split(NamedTuple):
    """Into how many segments a line is split, and how long they are."""

    segments: int
    length: int


def tile_for(formulas: Formulas, lines: int, extent: int, by_columns: bool) -> ScanTile:
    """Of so many lines beside each other."""
    vector = max(1, WORD // formulas.inputs[0].size)
    if by_columns and lines >= LANES * vector and extent >= SHORT:
        return _strips(formulas, extent, vector)
    return _tile(formulas, lines, extent, by_columns)


def _strips(formulas: Formulas, extent: int, vector: int) -> ScanTile:
    """Of columns that each fill a lane of a warp, or share it with neighbours if they are of less than a word."""
    words = vector * sum(element.size for element in formulas.states) // WORD
    steps = power_of_two(STRIP_WORDS // words + 1) // 2
    strips = min(STRIPS, max(1, power_of_two(extent) // steps))
    beside = LANES * vector
    return ScanTile(beside, steps, strips, max(1, TOTALS_AT_ONCE // beside), strips, vector)


def _tile(formulas: Formulas, lines: int, extent: int, by_columns: bool) -> ScanTile:
    size = TILE if len(formulas.states) == 1 else PAIR_TILE
    per_warp = size // WARPS
    most = min(size, MOST_FACTORS) if formulas.settle is not None else size
    beside = min(BESIDE, power_of_two(lines)) if by_columns else 1
    steps = min(size // beside, most, power_of_two(extent))
    beside = beside if by_columns else min(size // steps, power_of_two(lines))
    # A program of one warp reads all of a small tile before it writes any.
    return ScanTile(beside, steps, max(1, beside * steps // per_warp), max(1, TOTALS_AT_ONCE // beside))


def split_for(lines: int, extent: int, by_columns: bool) -> Split:
    programs = -(-lines // BESIDE) if by_columns else lines
    wanted = min(PROGRAMS // max(programs, 1), -(-extent // UNIT))
    if wanted < FEWEST:
        return Split(1, extent)
    length = -(-extent // (wanted * UNIT)) * UNIT
    return Split(-(-extent // length), length)


def split_bytes(problem: ScanDescriptor) -> int:
    """What programs hand to each other, however the operands lie."""
    most = max(split_for(problem.lines, problem.extent, by_columns).segments for by_columns in (True, False))
    return SLOT * len(tree_formulas_of(problem).states) * problem.lines * most if most > 1 and problem.lines else 0


def gradient_tile(lines: int, extent: int, by_columns: bool) -> ScanTile:
    """Of a product, whose programs take one tile each."""
    return _tile(SUFFIX, lines, extent, by_columns)


def backward_bytes(problem: ScanBackwardDescriptor) -> int:
    if problem.kind not in PRODUCTS:
        return split_bytes(problem)
    steps = min(gradient_tile(problem.lines, problem.extent, by_columns).steps for by_columns in (True, False))
    tiles = -(-problem.extent // steps)
    return SLOT * (len(PREFIX.states) + len(SUFFIX.states)) * problem.lines * tiles if tiles > 1 else 0
