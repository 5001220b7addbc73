"""Running sums of what neighbours make, on CUDA: what is launched for operands of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.calculus.running import Running
from baracuda_kernels.ops.calculus.triton_bodies import scan_neighbours
from baracuda_kernels.ops.calculus.triton_columns import scan_columns, sums_before
from baracuda_kernels.ops.calculus.views import OperandView
from baracuda_kernels.ops.scan.tiles import ScanTile, columns_tile, lines_tile, split_for
from baracuda_kernels.ops.scan.triton import scan_calls
from baracuda_kernels.ops.scan.triton_bodies import functions
from baracuda_kernels.ops.scan.walk import Walk
from baracuda_kernels.targets.cuda.runtime.triton_launch import MOST_REGISTERS, VECTOR_BYTES, At, Count, Step, TritonLaunch, bits_of

__all__ = ["running_calls"]

WORD = 4  # bytes of a register


def running_calls(problem: Any, layouts: Sequence[Any]) -> tuple[list[TritonLaunch], list[OperandView]] | None:
    """The calls, and the views they are of; None where the problem is no such sum, or its lines lie otherwise."""
    running: Running | None = problem.running
    if running is None:
        return None
    numbers, element, extent = bits_of(problem.numbers), problem.element, running.shape[running.axis]
    strides = [problem.stride_of(each, layouts[each].stride) for each in (*running.operands, running.output)]
    if 0 in running.shape:
        return [], []
    walk = Walk.of(running.shape, running.axis, strides, running.is_back)
    tile = lines_tile(walk.beside.extent, extent, VECTOR_BYTES // element.size)
    # Of one area there is no telling how its two points lie from the steps of the walk.
    if extent > 1 and not walk.by_columns and split_for(walk.programs(tile), extent, by_columns=False).segments == 1:
        call = _in_groups(running, walk, element, numbers)
        return [call], [OperandView(each, 0) for each in (*running.operands, running.output)]
    if down := _down_columns(running, walk, element, numbers):
        return [down], [OperandView(each, 0) for each in (*running.operands, running.output)]
    if not running.is_inside:
        return None
    places = [(place, next_to) for place in range(len(running.operands)) for next_to in (0, running.next_to)] + [(-1, 0)]
    shifted = [strides[place] for place, _ in places]
    views = [
        OperandView((*running.operands, running.output)[place], by * strides[place][running.axis] * element.size)
        for place, by in places
    ]
    operands = tuple(At(number, element) for number in range(len(views)))
    return scan_calls(running.formulas, running.shape, running.axis, operands, shifted, running.is_back, numbers=numbers), views


def _in_groups(running: Running, walk: Walk, element: ElementKind, numbers: tuple[Step, ...]) -> TritonLaunch:
    """Each operand in vectors, if its lines begin with whole ones: those of a result are one shorter than those of what is integrated."""
    extent, group = walk.axis.extent, VECTOR_BYTES // element.size
    tile = lines_tile(walk.beside.extent, extent, group)
    lies: Any = walk.steps(tile, element)
    extents, outer, beside, axis = lies
    ends, made, programs = (*running.bounds, extent), functions(running.formulas), walk.programs(tile)
    begins_whole = not (running.is_back and extent % group)
    whole = [
        begins_whole and walk.axis.steps[place] == 1 and end % group == 0 and not any(step.value % step.multiple for step in steps)
        for place, (end, steps) in enumerate(
            zip(ends, ((*each, near) for each, near in zip(outer, beside, strict=True)), strict=True)
        )
    ]

    def call(vectors: Sequence[bool]) -> TritonLaunch:
        def hinted(step: Step, place: int) -> Step:
            return step if vectors[place] else replace(step, element=None)

        counts = [hinted(Count(end, element), place) for place, end in enumerate(ends)]
        begin = Count(extent, element) if running.is_back and any(vectors) else counts[-1]
        operands = [At(place, element, is_whole) for place, is_whole in enumerate(vectors)]
        steps = [tuple(hinted(step, place) for step in each) for place, each in enumerate(outer)]
        near = [hinted(step, place) for place, step in enumerate(beside)]
        return TritonLaunch(
            scan_neighbours,
            programs,
            (
                tuple(operands[:-1]), operands[-1], numbers, Count(walk.beside.extent), Count(walk.blocks(tile)), begin,
                tuple(counts[:-1]), Count(-(-extent // tile.steps)), extents, tuple(steps), tuple(near), axis,
            ),
            {"START": made.start, "TERM": made.term, "JOINED": made.joined, "VALUE": made.value, "SCAN": made.scan}
            | {"REVERSE": running.is_back, "NEXT": running.next_to, "VECTORS": tuple(vectors[:-1]), "GROUP": min(group, tile.steps)}
            | walk.constants(tile, programs),
            tile.warps,
            contracts=False,
        )  # fmt: skip

    return replace(call(whole), otherwise=call([False] * len(whole)))


def _down_columns(running: Running, walk: Walk, element: ElementKind, numbers: tuple[Step, ...]) -> TritonLaunch | None:
    """Columns in strips, two side by side if rows begin with whole vectors; None where columns lie otherwise, or are too few or too short."""
    extent, steps = walk.axis.extent, walk.beside.steps
    if not walk.by_columns or any(step not in (0, 1) for step in steps) or len(set(running.bounds)) > 1:
        return None
    wide = max(1, sum(step == 1 for step in steps[:-1]))  # operands that have a column for every line
    vector = 1 if element.size > WORD else 2
    tile, single = (
        columns_tile(walk.beside.extent, extent, wide * -(-lines * element.size // WORD), lines) for lines in (vector, 1)
    )
    if tile is None or single is None or split_for(walk.programs(tile), extent, by_columns=True).segments > 1:
        return None

    def call(tile: ScanTile) -> TritonLaunch:
        programs, made = walk.programs(tile), functions(running.formulas)
        operands = [At(place, element, step != 0) for place, step in enumerate(steps)]
        lies: Any = walk.steps(tile, element)
        extents, outer, _, along = lies
        constants = walk.constants(tile, programs)
        del constants["ALONG"]
        return TritonLaunch(
            scan_columns,
            programs,
            (
                tuple(operands[:-1]), operands[-1], numbers, *walk.counts(tile, element), Count(running.bounds[0]),
                Count(-(-extent // tile.height)), extents, outer, along,
            ),
            {"START": made.start, "TERM": made.term, "JOINED": made.joined, "VALUE": made.value}
            | {"SUMS_BEFORE": sums_before(running.formulas.states[0]), "REVERSE": running.is_back, "NEXT": running.next_to}
            | {"STRIPS": tile.strips}
            | constants,
            tile.warps,
            registers=MOST_REGISTERS,
            contracts=False,
        )  # fmt: skip

    return call(tile) if vector == 1 else replace(call(tile), otherwise=call(single))
