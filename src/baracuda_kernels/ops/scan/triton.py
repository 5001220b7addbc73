"""Scans on CUDA, and their gradients: what is launched for operands of any layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.gpu.call import At, Call, Count, Lent, Step, is_wide
from baracuda_kernels.gpu.indexing import dims
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.lang.geometry import Dim, collapse, dim_of
from baracuda_kernels.ops.scan.descriptor import ScanDescriptor
from baracuda_kernels.ops.scan.rows import tree_formulas_of
from baracuda_kernels.ops.scan.tiles import SLOT, split_for, tile_for
from baracuda_kernels.ops.scan.triton_bodies import SEGMENTS, TOTALS, WHOLE, functions, scan_tiles

__all__ = ["scan"]

LONG = 8  # tiles of a walk that are worth reading ahead


def scan(problem: ScanDescriptor, device: Device) -> Bind:
    """The kernel for a scan: bind(layouts of the operands) -> launch."""

    def bind(layouts: Any) -> Launch:
        return launcher(device, *calls(problem, layouts, problem.reverse))

    return bind


def calls(problem: ScanDescriptor, layouts: Sequence[Any], is_back: bool) -> list[Call]:
    """What is launched for operands of these layouts, walked from the first element on or back from the last."""
    if 0 in problem.shape:
        return []
    given = [place for place, layout in enumerate(layouts) if layout is not None]
    strides = [layouts[place].stride for place in given]
    formulas = tree_formulas_of(problem)
    operands = tuple(map(At, given, (*formulas.inputs, *formulas.outputs)))
    axis, others = dim_of(problem.shape, strides, problem.axis), collapse(problem.shape, strides, [problem.axis])
    beside = others.pop() if others else Dim(1, (1,) * len(given))  # the results' steps are smallest there
    by_columns = beside.steps[-1] == 1 < abs(axis.steps[-1]) and beside.extent > 1
    tile = tile_for(formulas, beside.extent, axis.extent, by_columns)
    split = split_for(problem.lines, problem.extent, by_columns)
    vectors = None if is_back and not by_columns else problem.element  # whose steps matter for vectors
    extents, outer_steps = dims(others, len(given), vectors)
    blocks = -(-beside.extent // tile.lines)
    count = blocks * math.prod(dim.extent for dim in others) * split.segments
    totals = tuple(Lent(SLOT * number * problem.lines * split.segments, element) for number, element in enumerate(formulas.states))
    made = functions(formulas)
    inputs = len(formulas.inputs)

    def call(part: Any, reads: tuple[At, ...], writes: tuple[At, ...]) -> Call:
        return Call(
            scan_tiles,
            count,
            (
                reads, writes, totals if split.segments > 1 else (), Count(beside.extent, vectors if by_columns else None), Count(blocks),
                Count(axis.extent, None if by_columns else vectors), Count(split.length), Count(split.segments), extents,
                tuple(outer_steps), _steps(beside, None if by_columns else vectors), _steps(axis, vectors if by_columns else None),
            ),
            {name.upper(): each for name, each in made._asdict().items()} | {
                "PART": part.value, "REVERSE": is_back, "BESIDE": _side_by_side(beside), "ALONG": _side_by_side(axis), "LINES": tile.lines,
                "STEPS": tile.steps, "TOTALS_AT_ONCE": tile.totals, "STAGES": 2 if split.length >= LONG * tile.steps else 1,
                "WIDE": is_wide(count),
            },
            tile.warps,
            contracts=False,
        )  # fmt: skip

    if split.segments == 1:
        return [call(WHOLE, operands[:inputs], operands[inputs:])]
    return [call(TOTALS, operands[:inputs], ()), call(SEGMENTS, operands[:inputs], operands[inputs:])]


def _steps(dim: Dim, vectors: ElementKind | None) -> tuple[Step, ...]:
    """Of each operand; those that matter for vectors are whole ones, but for single steps."""
    return tuple(Step(step if dim.extent > 1 else 0, None if step == 1 else vectors) for step in dim.steps)


def _side_by_side(dim: Dim) -> tuple[bool, ...]:
    return tuple(step == 1 for step in dim.steps)
