"""How much of a scan one program takes on CUDA: computed from the extents and the operation."""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor
from baracuda_kernels.ops.scan.rows import PREFIX, SUFFIX, ScanFormulas, tree_formulas_of
from baracuda_kernels.ops.scan.scaled import MOST_FACTORS
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = [
    "ENOUGH_ROWS",
    "SLOT",
    "ScanSplit",
    "ScanTile",
    "backward_bytes",
    "columns_tile",
    "gradient_tile",
    "lines_tile",
    "of_group",
    "product_tile",
    "split_bytes",
    "split_for",
    "strips_for",
    "tile_for",
]

TILE, PAIR_TILE = 1024, 512  # elements along rows whose states are one number each, or more
PER_THREAD = 16
LANES, WORD = 32, 4  # threads of a warp, bytes of a register
STRIP_WORDS, PAIR_STRIP_WORDS = 192, 128  # what a thread has of operands and states down columns, of one number each or more
AHEAD_WORDS, AHEAD_WARPS = 32, 8  # that a thread reads ahead down columns, and of a program: the bytes that keep a device busy
SHORT = 64  # steps of columns that are not worth it
BESIDE = 32  # adjacent lines that make whole lines of memory
ENOUGH_ROWS, ENOUGH_COLUMNS = 512, 128  # programs of lines alone that keep a device as busy as reading everything twice
PROGRAMS = 16384  # of segments: so many that little of the device is idle in the end
FEWEST, MOST = 8, 2048  # segments that are worth reading everything twice, and whose totals are no burden to each other
UNIT = 4096  # elements: segments are whole tiles, whatever their size
SLOT = 8  # bytes of one number in the workspace
TOTALS_AT_ONCE = 1024
OF_GROUP = 16  # contiguous elements that a thread multiplies by itself
GROUP_BYTES = 64  # of them at most: what a warp reads at once is to have few lines of memory


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


class ScanSplit(NamedTuple):
    """Into how many segments a line is split, and how long they are."""

    segments: int
    length: int


def tile_for(formulas: ScanFormulas, lines: int, extent: int, by_columns: bool, in_strips: bool) -> ScanTile:
    """The tile for adjacent lines."""
    if in_strips and lines >= LANES * _vector(formulas) and extent >= SHORT:
        return strips_for(formulas, extent, _vector(formulas))
    return _tile(formulas, lines, extent, by_columns)


def _vector(formulas: ScanFormulas) -> int:
    """How many lines beside each other a thread has: two of 16-bit floats, or one whose states are several numbers."""
    return 2 if len(formulas.states) == 1 and formulas.inputs[0].size < WORD else 1


def strips_for(formulas: ScanFormulas, extent: int, vector: int) -> ScanTile:
    """The tile of columns: a warp for each strip. States of more numbers cost more to pass on."""
    words, read = (sum(-(-each.size // WORD) for each in elements) for elements in (formulas.states, formulas.inputs))
    most = STRIP_WORDS if len(formulas.states) == 1 else min(STRIP_WORDS, PAIR_STRIP_WORDS)
    steps = power_of_two(most // (vector * words + read) + 1) // 2
    strips = min(4 if words <= 2 else 2, power_of_two(-(-extent // steps)))
    beside = LANES * vector
    return ScanTile(beside, steps, strips, max(1, TOTALS_AT_ONCE // beside), strips, vector)


def _tile(formulas: ScanFormulas, lines: int, extent: int, by_columns: bool) -> ScanTile:
    """The tile of rows, or of a few columns. One warp passes nothing to others, if all fits; values that are only compared are cheap to pass on."""
    is_single = len(formulas.states) == 1
    size = TILE if is_single else min(TILE, PAIR_TILE)
    most = min(size, MOST_FACTORS) if formulas.settle is not None else size
    beside = min(BESIDE, power_of_two(lines)) if by_columns else 1
    steps = min(size // beside, most, power_of_two(extent))
    beside = beside if by_columns else min(size // steps, power_of_two(lines))
    is_light = is_single or (steps == size and not formulas.exact and formulas.inputs[0].size < 8)
    per_warp = LANES * (PER_THREAD if is_light else PER_THREAD // 2)
    # A program of one warp reads all of a small tile before it writes any.
    return ScanTile(beside, steps, max(1, beside * steps // per_warp), max(1, TOTALS_AT_ONCE // beside))


def split_for(programs: int, extent: int, by_columns: bool) -> ScanSplit:
    """Where lines alone make so many programs."""
    wanted = min(PROGRAMS // max(programs, 1), -(-extent // UNIT), MOST)
    if programs >= (ENOUGH_COLUMNS if by_columns else ENOUGH_ROWS) or wanted < FEWEST:
        return ScanSplit(1, extent)
    length = -(-extent // (wanted * UNIT)) * UNIT
    return ScanSplit(-(-extent // length), length)


def split_bytes(problem: ScanDescriptor) -> int:
    """What programs pass to each other, for any layout: the fewer there are, the more segments."""
    formulas, lines = tree_formulas_of(problem), problem.lines
    fewest = -(-lines // (LANES * _vector(formulas)))
    most = max(split_for(*each).segments for each in ((fewest, problem.extent, True), (lines, problem.extent, False)))
    return SLOT * len(formulas.states) * lines * most if most > 1 and lines else 0


def gradient_tile(lines: int, extent: int, by_columns: bool) -> ScanTile:
    """The tile of a product's gradient; each program takes one."""
    return _tile(SUFFIX, lines, extent, by_columns)


def lines_tile(lines: int, extent: int, per_thread: int) -> ScanTile:
    """The tile of programs that walk along whole lines: one warp, so that nothing waits for others."""
    steps = min(LANES * per_thread, power_of_two(extent))
    return ScanTile(min(LANES * per_thread // steps, power_of_two(lines)), steps, 1, 0)


def columns_tile(lines: int, extent: int, row_words: int, vector: int) -> ScanTile | None:
    """The tile of columns whose strips are read ahead, in so many words for each row of a strip; None where there are too few of them, or of rows."""
    if lines < LANES or extent < SHORT:
        return None
    steps = AHEAD_WORDS // row_words
    strips = min(AHEAD_WARPS * vector, power_of_two(-(-extent // steps)))
    return ScanTile(LANES, steps, strips // vector, 0, strips, vector)


def of_group(element: ElementKind) -> int:
    return min(OF_GROUP, GROUP_BYTES // element.size)


def product_tile(lines: int, extent: int, element: ElementKind) -> ScanTile:
    """The tile of programs that walk along whole lines for the gradient of a product: a group for every thread."""
    return lines_tile(lines, extent, of_group(element))


def backward_bytes(problem: ScanBackwardDescriptor) -> int:
    if problem.kind not in PRODUCTS:
        return split_bytes(problem)
    tiles_of = [gradient_tile(problem.lines, problem.extent, by_columns) for by_columns in (True, False)]
    steps = min(tile.steps for tile in (*tiles_of, product_tile(problem.lines, problem.extent, problem.element)))
    tiles = -(-problem.extent // steps)
    return SLOT * (len(PREFIX.states) + len(SUFFIX.states)) * problem.lines * tiles if tiles > 1 else 0
