"""RMSNorm on CUDA: what is launched for which problem, in which layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.normalization.rms_norm import tiles
from baracuda_kernels.ops.normalization.rms_norm.geometry import geometry
from baracuda_kernels.ops.normalization.rms_norm.tiles import NormTile
from baracuda_kernels.ops.normalization.rms_norm.triton_bodies import (
    add_partials,
    backward_rows,
    forward_long,
    forward_rows,
    project_segments,
)
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import Argument, At, Count, Lent, Step, TritonLaunch, is_wide
from baracuda_kernels.targets.cuda.tiles import for_contiguous, power_of_two
from baracuda_kernels.targets.cuda.triton.indexing import dims
from baracuda_kernels.targets.geometry import Dim

__all__ = ["backward", "calls", "forward"]


def forward(problem: Any, device: Device, tile: NormTile | None = None) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, gamma, y, rms) -> launch."""
    return _kernel("forward", problem, device, tile)


def backward(problem: Any, device: Device, tile: NormTile | None = None) -> Bind:
    """The kernel for a backward problem: bind(layouts of dy, x, gamma, rms, dx, dgamma) -> launch."""
    return _kernel("backward", problem, device, tile)


def _kernel(direction: str, problem: Any, device: Device, tile: NormTile | None) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *calls(direction, problem, layouts, for_contiguous(tile, layouts)))

    return bind


def calls(direction: str, problem: Any, layouts: Sequence[Layout | None], tile: NormTile | None = None) -> list[TritonLaunch]:
    """What is launched for operands of these layouts; `tile` is for trying others than the chosen one."""
    build = _forward_calls if direction == "forward" else _backward_calls
    return [call for call in build(problem, layouts, tile) if call.blocks]


def _forward_calls(problem: Any, layouts: Sequence[Layout | None], tile: NormTile | None) -> list[TritonLaunch]:
    x, gamma, y, rms = layouts
    rows, extent, element = problem.row_count, problem.norm_total_extent, problem.element
    if rows == 0:
        return []
    outer, within, side_by_side = geometry(problem, [x, y, rms], [x, gamma, y])
    contiguous = side_by_side or extent == 0
    tile = tile or tiles.forward_tile(problem, contiguous)
    is_long = tile.cols < extent
    arguments = (
        *_operands(layouts),
        Count(rows),
        _extent(extent, element, contiguous, is_long),
        *_leading(outer, element),
        *_inner(within, element),
    )
    constants = _constants(problem, contiguous) | {
        "EPS": problem.eps,
        "ROOT_EPS": math.sqrt(problem.eps),
        "RANGED": element in (ElementKind.F32, ElementKind.BF16),
        **_tile_constants(problem, tile),
    }
    programs = rows if is_long else min(tile.programs, -(-rows // tile.rows))
    return [_in_forms(forward_long if is_long else forward_rows, programs, arguments, constants, tile)]


def _backward_calls(problem: Any, layouts: Sequence[Layout | None], tile: NormTile | None) -> list[TritonLaunch]:
    dy, x, gamma, rms, dx, dgamma = layouts
    rows, extent, element, sums = problem.row_count, problem.norm_total_extent, problem.element, tiles.sums_of(problem)
    if extent == 0:
        return []
    outer, within, contiguous = geometry(problem, [dy, x, dx, rms], [dy, x, gamma, dx])
    tile = tile or tiles.backward_tile(problem, contiguous)
    is_long, groups, segments = tile.cols < extent, tiles.group_count(problem, tile), tiles.segment_count(problem)
    size, pitch, strips = _extent(extent, element, contiguous, is_long), tiles.partial_pitch(extent), -(-extent // tile.cols)
    inputs, unused = _operands(layouts[:4]), At(0, element)
    partials = Lent(0, sums) if problem.has_gamma else unused
    projections = Lent(tiles.partial_bytes(problem, tile), sums) if is_long else unused
    extents, dy_steps, x_steps, dx_steps, rms_steps = _leading(outer, element)
    dy_row, x_row, gamma_row, dx_row = _inner(within, element)
    project = _in_forms(
        project_segments,
        rows * segments if is_long else 0,
        (
            *(*inputs, projections, size, Count(segments), Step(tiles.segment_span(problem), element)),
            *(extents, dy_steps, x_steps, rms_steps, dy_row, x_row, gamma_row),
        ),
        _constants(problem, contiguous) | {"COLS": tiles.SEGMENT_TILE.cols},
        tiles.SEGMENT_TILE,
    )
    walk = _in_forms(
        backward_rows,
        groups * strips,
        (
            *(*inputs, At(4, element), partials, projections),
            *(Count(rows), size, Step(pitch, sums), Count(strips), Count(segments)),
            *(extents, dy_steps, x_steps, dx_steps, rms_steps, dy_row, x_row, gamma_row, dx_row),
        ),
        _constants(problem, contiguous)
        | _tile_constants(problem, tile)
        | {
            "PROJECTED": is_long,
            "SEGMENTS": power_of_two(segments) if is_long else 1,
            "SINGLE": extent == 1,
            "HELD": tiles.holds_gamma(tile),
        },
        tile,
    )
    return [project, walk] + ([] if dgamma is None else [_sum_call(problem, dgamma, groups, pitch, sums)])


def _sum_call(problem: Any, dgamma: Layout, groups: int, pitch: int, sums: ElementKind) -> TritonLaunch:
    step = dgamma.stride[0] if problem.norm_total_extent > 1 else 1
    return TritonLaunch(
        add_partials,
        pitch // tiles.SUM_STRIP,
        (
            Lent(0, sums) if groups else At(5, problem.element),
            At(5, problem.element),
            Step(problem.norm_total_extent),
            Count(groups),
            Step(pitch, sums),
            Step(step),
        ),
        {
            "ACC": f"tl.float{8 * sums.size}",
            "ROWS": tiles.SUM_ROWS,
            "COLS": tiles.SUM_STRIP,
            "BATCHES": -(-groups // tiles.SUM_ROWS),
        },
        8,
    )


def _operands(layouts: Sequence[Layout | None]) -> tuple[At, ...]:
    """The operands in their order; the first one stands in for an absent gamma, which is not read."""
    given = ((place, layout) if layout is not None else (0, layouts[0]) for place, layout in enumerate(layouts))
    return tuple(At(place, layout.element) for place, layout in given if layout is not None)


def _in_forms(body: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any], tile: NormTile) -> TritonLaunch:
    """The call for operands that allow vectors, and the one for others; both deal out the same rows to the same programs."""

    def form(tile: NormTile) -> TritonLaunch:
        return TritonLaunch(body, programs, arguments, constants | {"STAGES": tile.stages}, tile.warps, registers=tile.registers)

    scalar = form(tile.without_vectors())
    return replace(form(tile), otherwise=scalar) if constants["CONTIGUOUS"] else scalar


def _constants(problem: Any, contiguous: bool) -> dict[str, Any]:
    return {"SCALED": problem.has_gamma, "ACC": f"tl.float{8 * tiles.sums_of(problem).size}", "CONTIGUOUS": contiguous}


def _tile_constants(problem: Any, tile: NormTile) -> dict[str, Any]:
    whole = problem.norm_total_extent % tile.cols == 0 and problem.norm_total_extent > 0
    return {"ROWS": tile.rows, "COLS": tile.cols, "WHOLE": whole, "WIDE": is_wide(problem.row_count)}


def _extent(extent: int, element: ElementKind, contiguous: bool, is_long: bool) -> Step:
    """Positions in a row that is walked may pass 32 bits."""
    return (Step if is_long else Count)(extent, element if contiguous else None)


def _leading(outer: list[Dim], element: ElementKind) -> Any:
    """The extents that lead to a row, and the steps of each operand; those of rms, the last one, do not limit vector loads."""
    extents, steps = dims(outer, len(outer[0].steps), element)
    return extents, *steps[:-1], _any_steps(steps[-1])


def _inner(within: list[list[Dim]], element: ElementKind) -> Any:
    """The extents and steps of each operand within a row."""
    lies = (dims(each or [Dim(1, (0,))], 1, element) for each in within)
    return tuple((extents, _any_steps(steps)) for extents, (steps,) in lies)


def _any_steps(steps: tuple[Step, ...]) -> tuple[Argument, ...]:
    return tuple(Step(step.value) for step in steps)
