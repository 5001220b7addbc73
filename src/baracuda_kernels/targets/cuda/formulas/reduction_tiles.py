"""How much of a reduction one program takes on CUDA: computed from the extents and the reduction."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.reduction import SEVERAL, Reduction
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES
from baracuda_kernels.targets.cuda.tiles import power_of_two
from baracuda_kernels.targets.geometry import kept_axes

__all__ = ["MERGED", "ReduceTile", "segments_for", "tile_for", "workspace_bytes"]

TILE = 2048  # contributions of one number, for one operand or two: with more, places of scattered elements do not fit the registers
PROGRAMS = 1024  # so many keep any device busy
STEPS = 4  # of a tile, the fewest that are worth a segment
MOST = 1024  # segments of one sum
MERGED = 1024  # segments that one program combines
WARPS = 4
LONG = 8  # steps through a row from which on it is a long way
MANY = 8192  # rows that keep any device busy with a warp each
MOST_WORDS = 24  # of a thread's contributions, if two tiles are read at once down columns
BESIDE = 64  # contiguous results that make whole lines of memory
FEW_BYTES = 64 << 20  # of operands: so few that a second launch, to combine segments, takes longer than reading parts of lines does


class ReduceTile(NamedTuple):
    kept: int
    reduced: int
    warps: int
    together: int  # tiles that are read at once
    stages: int  # of loading: how far the tiles that are copied ahead are from those that are combined; 1 without copies
    is_whole: bool = False  # whether a program goes all the way


TALL = ReduceTile(kept=16, reduced=256, warps=16, together=2, stages=1, is_whole=True)
BY_WARP = ReduceTile(kept=1, reduced=32 * VECTOR_BYTES // 2, warps=1, together=4, stages=3)


def tile_for(reduction: Reduction, results: int, count: int, by_rows: bool) -> ReduceTile:
    if by_rows and _takes_a_warp(reduction, results, count):
        return BY_WARP
    if not by_rows and _takes_one_launch(reduction, results, count):
        return TALL
    is_double, is_many = _of_doubles(reduction, by_rows), reduction.operands > 2
    size = TILE // len(reduction.state) // (2 if is_double else 1) // (reduction.operands // 2 * 2 if is_many else 1)
    size = 1 << (size.bit_length() - 1)
    vector = WARPS * 32 * VECTOR_BYTES // max(element.size for element in reduction.elements)  # of every thread one
    if reduction.several is not None:  # the more tiles are appended at once, the fewer numbers are scaled
        size = vector if by_rows or reduction.elements[0].size > 2 else vector // 2
    if by_rows:
        reduced = min(size, power_of_two(max(count, 1)))
        together = SEVERAL if reduction.several is not None else _along(reduction) if count > reduced and not is_many else 1
        return ReduceTile(
            min(size // reduced, power_of_two(results)), reduced, WARPS, together, _stages(reduction, count // (together * reduced))
        )
    kept = min(BESIDE, power_of_two(results))
    together = SEVERAL if reduction.several is not None else 1 if is_many else _down(reduction, size, vector)
    return ReduceTile(kept, min(size // kept, power_of_two(max(count, 1))), WARPS, together, _stages(reduction, 0))


def _takes_one_launch(reduction: Reduction, results: int, count: int) -> bool:
    """Down columns, by what was measured: of so many that narrow tiles keep a device busy, and so few elements that it does not take long."""
    is_simple = len(reduction.state) == 1 and reduction.operands == 1
    read = results * count * reduction.elements[0].size
    return is_simple and count >= 4 * TALL.reduced and results >= 128 * TALL.kept and read <= FEW_BYTES


def _takes_a_warp(reduction: Reduction, results: int, count: int) -> bool:
    """Along a long row of 16-bit floats, each: to make one of several numbers of many threads takes as many instructions as to append the
    elements, if several warps share a row."""
    is_costly = len(reduction.state) > 1 and reduction.operands == 1 and reduction.several is None
    return is_costly and _of_halves(reduction) and results >= MANY and count >= LONG * BY_WARP.reduced


def _stages(reduction: Reduction, steps: int) -> int:
    """By what was measured: combining contributions of several numbers takes long enough that loads had better not wait for it. Several
    elements at once wait less; only of 16-bit floats a long way along a row is better copied ahead."""
    if reduction.several is None:
        return 3 if len(reduction.state) > 1 else 1
    return 4 if steps >= LONG and _of_halves(reduction) else 1


def _of_doubles(reduction: Reduction, by_rows: bool) -> bool:
    """Whether elements are, or contributions of one number along rows: what takes twice the registers leaves fewer warps to wait for loads."""
    largest = max(element.size for element in reduction.elements)
    return largest == 8 or (by_rows and largest == 4 and reduction.state == (ElementKind.F64,))


def _of_halves(reduction: Reduction) -> bool:
    return max(element.size for element in reduction.elements) < 4


def _along(reduction: Reduction) -> int:
    """Along rows, by what was measured: the threads of a contribution of three numbers have half a vector of 16-bit floats each."""
    return 4 if len(reduction.state) > 2 and reduction.operands == 1 and _of_halves(reduction) else 2


def _down(reduction: Reduction, size: int, vector: int) -> int:
    """Down columns, by what was measured: of 16-bit floats, two tiles are worth it where contributions are several numbers, and four where threads
    have half a vector each; of words two where contributions are one. With more registers not all programs are on the device at
    once, and the last few have it alone."""
    if _of_halves(reduction):
        return 1 if len(reduction.state) == 1 else 4 if size < vector else 2
    words = size // (32 * WARPS) * sum(-(-element.size // 4) for element in reduction.state)
    return 2 if words <= MOST_WORDS and len(reduction.state) == 1 else 1


def segments_for(results: int, count: int, tile: ReduceTile) -> tuple[int, int]:
    """The number of segments in which each result is computed, and the elements of a segment: whole tiles."""
    programs, steps = max(1, -(-results // tile.kept)), max(1, -(-count // tile.reduced))
    wanted = 1 if tile.is_whole else max(1, min(PROGRAMS // programs, steps // max(STEPS, tile.together), MOST))
    each = -(-steps // wanted)
    return -(-steps // each), each * tile.reduced


def workspace_bytes(reduction: Reduction, shape: Shape, axes: Collection[int]) -> int:
    """What programs pass to each other, for any layout."""
    count = math.prod(shape[axis] for axis in axes)
    results = math.prod(kept_axes(shape, axes))
    most = max(segments_for(results, count, tile_for(reduction, results, count, by_rows))[0] for by_rows in (True, False))
    return 8 * len(reduction.state) * results * most if most > 1 else 0
