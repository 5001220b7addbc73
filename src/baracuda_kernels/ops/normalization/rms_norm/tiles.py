"""How an RMSNorm is distributed over the programs of a CUDA kernel: pure functions of the problem.

A row is computed the same way however many there are, and the groups of rows that dgamma is summed in depend on the shape alone,
never on the device: the same call gives the same bits everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor
from baracuda_kernels.targets.cuda.tiles import power_of_two

__all__ = [
    "NormTile",
    "backward_tile",
    "forward_tile",
    "group_count",
    "other_backward_tiles",
    "other_forward_tiles",
    "workspace_bytes",
]

SHARED_BYTES = 99 * 1024  # the most that a block uses: tiles read ahead, and a little to exchange sums
READ_AHEAD_BYTES = 96 * 1024
MOST_STRIDED = 4096  # elements of a row held on chip if they are not contiguous: each has addresses of its own to hold
SUM_ROWS, SUM_STRIP = 64, 32  # partial sums of dgamma that one program adds at a time, for how many columns
LONG_ENOUGH = 8192  # bytes of a row that are enough for a program
ROOMY = 16384  # bytes of each operand to a step of the backward
NARROW = 8  # rows of f32 shorter than this have their gradient in f64: with so few elements the two terms of dx cancel
SEGMENT, MOST_SEGMENTS = 16384, 64  # how much of a long row is projected by one program, unless there were too many


class NormTile(NamedTuple):
    """`rows` by `cols` elements at a time, by `warps` warps, `stages - 1` tiles read ahead; at most `programs` share the tiles."""

    rows: int
    cols: int
    warps: int
    stages: int
    programs: int
    registers: int | None = None  # the most a thread may have

    def without_vectors(self) -> NormTile:
        """The same tile where addresses take registers too, and elements are too small to be read ahead one by one."""
        return self._replace(stages=1, registers=_registers(self.warps, 1))


SEGMENT_TILE = NormTile(1, 4096, 8, 2, 0)


def forward_tile(problem: RMSNormDescriptor, contiguous: bool = True) -> NormTile:
    cols, size, sums = power_of_two(problem.norm_total_extent), problem.element.size, sums_of(problem)
    if cols * sums.size > 65536 or (cols > MOST_STRIDED and not contiguous):
        return NormTile(1, 4096, 8, 1, problem.row_count)
    if cols * size >= LONG_ENOUGH and size < 8:
        # A row for each program, 64 bytes to a thread: as many programs as there can be hide each other's waiting.
        warps = min(16, cols * size // (32 * 64))
        return NormTile(1, cols, warps, 1, problem.row_count, None if warps < 16 else _registers(warps, 1))
    rows = _rows(cols, sums)
    warps = min(16, _warps(rows * cols, sums))
    return NormTile(rows, cols, warps, _stages(rows * cols * size), 2112, None if warps < 16 and size < 8 else _registers(warps, 1))


def backward_tile(problem: RMSNormBackwardDescriptor, contiguous: bool = True) -> NormTile:
    cols, size, sums = power_of_two(problem.norm_total_extent), problem.element.size, sums_of(problem)
    whole = cols == problem.norm_total_extent  # masks take registers too
    if cols * size > (32768 if size < 8 and whole else 16384) or (cols > MOST_STRIDED and not contiguous):
        return NormTile(_rows(1024, sums), 1024, 8, 3 if size < 8 else 2, 528, _registers(8, 2 if size < 8 else 1))
    if cols >= 1024 and cols * size <= ROOMY and sums is ElementKind.F32:
        # One program for each of the H200's multiprocessors, with many registers.
        return NormTile(ROOMY // size // cols, cols, 8, _stages(2 * ROOMY), 132, _registers(8, 1))
    rows = _rows(cols, sums)
    warps = _warps(rows * cols, sums)
    # Two programs for each of the H200's multiprocessors, or one where that takes most of the registers.
    programs = 2 if warps <= 8 and sums is ElementKind.F32 else 1
    # The compiler finds the right number of registers for single rows; left to itself with several, it spills some.
    registers = None if rows == 1 and sums is ElementKind.F32 else _registers(warps, programs)
    tile = NormTile(rows, cols, warps, 1, 132 * programs, registers)
    return tile._replace(stages=_stages((2 if holds_gamma(tile) else 3) * rows * cols * size))


def _rows(cols: int, sums: ElementKind) -> int:
    """Rows of a tile: enough for some kilobytes."""
    return min(1024, max(1, 16384 // sums.size // cols))


def _warps(elements: int, sums: ElementKind) -> int:
    """16 elements to a thread, or 8 of f64."""
    return min(32, max(1, elements * sums.size // 2048))


def _registers(warps: int, programs: int) -> int:
    """What a thread may have for that many programs to share a multiprocessor."""
    return min(255, 65536 // (32 * warps * programs))


def _stages(tile_bytes: int) -> int:
    return min(3, 1 + READ_AHEAD_BYTES // tile_bytes)


def holds_gamma(tile: NormTile) -> bool:
    """Whether gamma stays in registers beside dgamma, or is read again for every row."""
    return tile.rows * tile.cols <= 8192


def group_count(problem: RMSNormBackwardDescriptor, tile: NormTile) -> int:
    """How many groups the rows are split into, each with partial sums of dgamma."""
    strips = -(-problem.norm_total_extent // tile.cols)
    return min(-(-problem.row_count // tile.rows), max(1, tile.programs // max(strips, 1)))


def segment_count(problem: RMSNormBackwardDescriptor) -> int:
    """How many programs project a row that is too long for one."""
    return min(MOST_SEGMENTS, -(-problem.norm_total_extent // SEGMENT))


def segment_span(problem: RMSNormBackwardDescriptor) -> int:
    """Elements of a segment: whole tiles."""
    return -(-problem.norm_total_extent // (segment_count(problem) * SEGMENT_TILE.cols)) * SEGMENT_TILE.cols


def partial_pitch(extent: int) -> int:
    """The distance from one group's partial sums to the next."""
    return -(-extent // SUM_STRIP) * SUM_STRIP


def sums_of(problem: Any) -> ElementKind:
    """What sums are taken and kept in."""
    narrow = isinstance(problem, RMSNormBackwardDescriptor) and problem.norm_total_extent < NARROW
    return ElementKind.F64 if problem.element is ElementKind.F32 and narrow else problem.element.accumulator


def partial_bytes(problem: RMSNormBackwardDescriptor, tile: NormTile) -> int:
    pitch = partial_pitch(problem.norm_total_extent)
    return sums_of(problem).size * group_count(problem, tile) * pitch if problem.has_gamma else 0


def workspace_bytes(problem: RMSNormBackwardDescriptor) -> int:
    """The largest workspace that any layout needs."""
    return max(bytes_with(problem, backward_tile(problem, contiguous)) for contiguous in (True, False))


def bytes_with(problem: RMSNormBackwardDescriptor, tile: NormTile) -> int:
    """Partial sums of dgamma, a row of them for each group; behind them the projections of long rows, segment by segment."""
    is_long = tile.cols < problem.norm_total_extent
    projections = problem.row_count * segment_count(problem) * sums_of(problem).size if is_long else 0
    return partial_bytes(problem, tile) + projections


def other_forward_tiles(problem: RMSNormDescriptor) -> list[NormTile]:
    return _others(forward_tile(problem))


def other_backward_tiles(problem: RMSNormBackwardDescriptor) -> list[NormTile]:
    return _others(backward_tile(problem))


def _others(tile: NormTile) -> list[NormTile]:
    """The rule's tile with half and with twice as many warps. The workspace does not depend on them."""
    changed = (tile._replace(warps=warps, registers=None) for warps in (tile.warps // 2, tile.warps * 2))
    return [other for other in changed if 1 <= other.warps <= 32]
