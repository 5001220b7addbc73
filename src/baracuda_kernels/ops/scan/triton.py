"""Scans on CUDA, and their gradients: what is launched for operands of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.expression import HALVES
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor, ScanKind
from baracuda_kernels.ops.scan.rows import PREFIX, SUFFIX, ScanFormulas, tree_formulas_of
from baracuda_kernels.ops.scan.tiles import (
    ENOUGH_ROWS,
    SLOT,
    ScanSplit,
    ScanTile,
    gradient_tile,
    lines_tile,
    of_group,
    product_tile,
    split_for,
    strips_for,
    tile_for,
)
from baracuda_kernels.ops.scan.triton_back import scan_back
from baracuda_kernels.ops.scan.triton_bodies import SEGMENTS, TOTALS, WHOLE, functions, scan_tiles
from baracuda_kernels.ops.scan.triton_factors import factor_functions, scan_factors
from baracuda_kernels.ops.scan.triton_product import backwards, product_gradients
from baracuda_kernels.ops.scan.triton_product_lines import product_gradients_of_lines
from baracuda_kernels.ops.scan.walk import Walk
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import MOST_REGISTERS, VECTOR_BYTES, At, Count, Lent, Step, TritonLaunch

__all__ = ["calls", "scan", "scan_backward", "scan_calls"]

LONG = 8  # tiles of a walk that are worth reading ahead, down columns: rows have more programs to wait with
Operand = At | Lent


def scan(problem: ScanDescriptor, device: Device) -> Bind:
    """The kernel for a scan: bind(layouts of the operands) -> launch."""
    return _bind(problem, device, problem.reverse)


def scan_backward(problem: ScanBackwardDescriptor, device: Device) -> Bind:
    """The launch of a gradient: a scan in the other direction, except for that of a product."""
    return _bind(problem, device, problem.reverse is (problem.kind in PRODUCTS))


def _bind(problem: ScanDescriptor, device: Device, is_back: bool) -> Bind:
    def bind(layouts: Sequence[Any]) -> Launch:
        given = [place for place, layout in enumerate(layouts) if layout is not None]
        return launcher(device, *calls(problem, [layouts[place].stride for place in given], is_back, given))

    return bind


def calls(problem: ScanDescriptor, strides: Sequence[Sequence[int]], is_back: bool, given: Sequence[int]) -> list[TritonLaunch]:
    """What is launched for operands of these strides, by their places among the args, in the direction of the walk."""
    if 0 in problem.shape:
        return []
    formulas = tree_formulas_of(problem)
    operands = tuple(map(At, given, (*formulas.inputs, *formulas.outputs)))
    if isinstance(problem, ScanBackwardDescriptor) and problem.kind in PRODUCTS:
        return _product_calls(problem, formulas, operands, strides, is_back)
    if problem.kind in PRODUCTS and problem.element in HALVES:
        walk = Walk.of(problem.shape, problem.axis, strides, is_back)
        tile = lines_tile(walk.beside.extent, problem.extent, VECTOR_BYTES // problem.element.size)
        if not walk.by_columns and split_for(walk.programs(tile), problem.extent, by_columns=False).segments == 1:
            return [_factors_call(problem, operands, walk, tile)]
    return scan_calls(formulas, problem.shape, problem.axis, operands, strides, is_back)


def scan_calls(
    formulas: ScanFormulas,
    shape: Shape,
    axis: int,
    operands: tuple[Operand, ...],
    strides: Sequence[Sequence[int]],
    is_back: bool,
    may_split: bool = True,
    numbers: tuple[Step, ...] = (),
) -> list[TritonLaunch]:
    """The calls of a scan, for operands of these strides, inputs before outputs, and the bits of parameters."""
    walk, element, inputs = Walk.of(shape, axis, strides, is_back), formulas.inputs[0], len(formulas.inputs)
    lines, extent = walk.lines, walk.axis.extent
    tile = tile_for(formulas, walk.beside.extent, extent, walk.by_columns, walk.in_strips)
    split = split_for(walk.programs(tile), extent, walk.by_columns) if may_split else ScanSplit(1, extent)
    totals = tuple(Lent(SLOT * number * lines * split.segments, each) for number, each in enumerate(formulas.states))
    is_long = walk.by_columns and split.length >= LONG * tile.height
    ahead = is_long and tile.vector > 0

    def call(part: Any, writes: tuple[Operand, ...]) -> TritonLaunch:
        if tile.vector == 1:
            return staged(part, writes, tile)
        if tile.vector:
            return replace(staged(part, writes, tile), otherwise=staged(part, writes, strips_for(formulas, extent, 1)))
        one_by_one = staged(part, writes, tile)
        return replace(staged(part, writes, tile, 2), otherwise=one_by_one) if is_long else one_by_one

    def staged(part: Any, writes: tuple[Operand, ...], tile: ScanTile, stages: int = 1) -> TritonLaunch:
        programs = walk.programs(tile) * split.segments
        given = (operands[:inputs], writes, totals if split.segments > 1 else ())
        common = functions(formulas).constants() | walk.constants(tile, programs)
        common |= {"PART": part.value, "TOTALS_AT_ONCE": tile.totals, "FALLS": formulas.falls}
        if is_back and not walk.by_columns:
            of_body = {"GROUP": walk.group(tile, formulas)}
        else:
            of_body = {"COMMUTES": formulas.commutes, "REVERSE": is_back, "STRIPS": tile.strips, "VECTOR": tile.vector}
            of_body |= {"AHEAD": ahead, "STAGES": stages}
        return TritonLaunch(
            scan_back if is_back and not walk.by_columns else scan_tiles,
            programs,
            (
                *given,
                numbers,
                *walk.counts(tile, element),
                Count(-(-split.length // tile.height)),
                Count(split.segments),
                *walk.steps(tile, element),
            ),
            common | of_body,
            tile.warps,
            registers=MOST_REGISTERS if tile.vector else None,
            contracts=False,
        )

    if split.segments == 1:
        return [call(WHOLE, operands[inputs:])]
    return [call(TOTALS, ()), call(SEGMENTS, operands[inputs:])]


def _factors_call(problem: ScanDescriptor, operands: tuple[Operand, ...], walk: Walk, tile: ScanTile) -> TritonLaunch:
    """Products of 16-bit floats, whose numbers are small enough for f32."""
    programs = walk.programs(tile)
    return TritonLaunch(
        scan_factors,
        programs,
        (
            *operands,
            *walk.counts(tile, problem.element),
            Count(-(-problem.extent // tile.steps)),
            *walk.steps(tile, problem.element),
        ),
        factor_functions()
        | {"SKIPS_NAN": problem.kind is ScanKind.NANCUMPROD, "REVERSE": walk.is_back}
        | {"GROUP": min(VECTOR_BYTES // problem.element.size, tile.steps)}
        | walk.constants(tile, programs),
        tile.warps,
        contracts=False,
    )


def _product_calls(
    problem: ScanDescriptor, formulas: ScanFormulas, operands: tuple[Operand, ...], strides: Sequence[Sequence[int]], is_back: bool
) -> list[TritonLaunch]:
    """The calls for a product's gradient; for a line longer than a tile, first the states before and after every tile."""
    walk = Walk.of(problem.shape, problem.axis, strides, is_back)
    tile = gradient_tile(walk.beside.extent, problem.extent, walk.by_columns)
    segments = -(-problem.extent // tile.steps)
    shape = (problem.lines, segments)
    totals = tuple(
        Lent(SLOT * number * problem.lines * segments, each) for number, each in enumerate((*PREFIX.states, *SUFFIX.states))
    )
    if not (walk.by_columns or is_back) and walk.programs(tile) >= ENOUGH_ROWS and all(step == 1 for step in walk.axis.steps):
        return [_lines_call(problem, operands, walk, totals[0])]
    programs = walk.programs(tile) * segments

    def call(part: Any) -> TritonLaunch:
        given = (*operands, totals if segments > 1 else ())
        return TritonLaunch(
            product_gradients,
            programs,
            (*given, *walk.counts(tile, problem.element), Count(segments), *walk.steps(tile, problem.element)),
            {"TERM": functions(formulas).term, "VALUE": functions(formulas).value, "PREFIXES": functions(PREFIX).scan}
            | {"SUFFIXES": backwards(SUFFIX), "PART": part.value, "REVERSE": is_back}
            | walk.constants(tile, programs),
            tile.warps,
            contracts=False,
        )

    if segments == 1:
        return [call(WHOLE)]
    joined: list[TritonLaunch] = []
    for each, first, is_reverse in ((PREFIX, 0, False), (SUFFIX, len(PREFIX.states), True)):
        there = totals[first : first + len(each.states)]
        joined += scan_calls(each, shape, 1, (*there, *there), [(segments, 1)] * 2 * len(there), is_reverse, may_split=False)
    return [call(TOTALS), *joined, call(SEGMENTS)]


def _lines_call(problem: ScanDescriptor, operands: tuple[Operand, ...], walk: Walk, befores: Operand) -> TritonLaunch:
    """The call that walks along whole lines."""
    tile = product_tile(walk.beside.extent, problem.extent, problem.element)
    programs, tiles = walk.programs(tile), -(-problem.extent // tile.steps)
    group = min(of_group(problem.element), tile.steps)
    in_f32 = problem.element in HALVES and group == of_group(problem.element)  # which is worth it where groups are long
    return TritonLaunch(
        product_gradients_of_lines,
        programs,
        (
            *operands,
            (befores,) if tiles > 1 else (),
            *walk.counts(tile, problem.element),
            Count(tiles),
            *walk.steps(tile, problem.element),
        ),
        {"PREFIXES": functions(PREFIX).scan, "SUFFIXES": functions(SUFFIX).scan, "SEVERAL": tiles > 1}
        | {"SKIPS_NAN": problem.kind is ScanKind.NANCUMPROD, "IN_F32": in_f32}
        | {"GROUP": group, "VECTOR": min(VECTOR_BYTES // problem.element.size, group)}
        | walk.constants(tile, programs),
        tile.warps,
        contracts=False,
    )
