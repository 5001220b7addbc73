"""Formulas on CUDA, for operands of any layout.

Three forms. Flat: operands lie alike and without gaps, or are one number for all; vectors of 16 bytes are read and written. Tiled: two
axes are taken by tiles, one along which results are contiguous, and if operands are contiguous along another axis, that one: each
is read in its own order, and transposed on chip. Scattered: every element's offset is computed separately.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import triton
import triton.language as tl

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout, Shape
from baracuda_kernels.formula.expression import Program, in_order
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.targets.cuda.formulas.elementwise_tiles import block_for, operands_of, tile_for, vector_for
from baracuda_kernels.targets.cuda.formulas.source import formula, inputs_of, usual_formula
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import (
    MOST_REGISTERS,
    Argument,
    At,
    Count,
    Step,
    TritonLaunch,
    bits_of,
    is_wide,
)
from baracuda_kernels.targets.cuda.triton.indexing import dims, filled, offset
from baracuda_kernels.targets.geometry import Dim, collapse

__all__ = ["calls", "kernel"]

BROADCAST = tl.constexpr(0)  # steps that are known when a body is compiled; others are given
SIDE_BY_SIDE = tl.constexpr(1)
STRIDED = tl.constexpr(2)


# --- bodies --------------------------------------------------------------------------------------------------------------------


@triton.jit
def flat(
    inputs, outputs, count, whole, numbers,
    FORMULA: tl.constexpr, USUAL: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, HAS_REST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """`whole` elements are whole vectors. If there is a rest, they are whole blocks instead: where elements are tested one by one,
    there are no vectors."""
    first = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK
    place = _in_vectors(first + tl.arange(0, BLOCK), VECTOR)
    if HAS_REST:
        if first < whole:
            _flat(inputs, outputs, place, None, numbers, FORMULA, USUAL, STEPS, BLOCK)
        else:
            _flat(inputs, outputs, place, place < count, numbers, FORMULA, USUAL, STEPS, BLOCK)
    else:
        _flat(inputs, outputs, place, place < whole, numbers, FORMULA, USUAL, STEPS, BLOCK)


@triton.jit
def _flat(
    inputs, outputs, place, inside, numbers, FORMULA: tl.constexpr, USUAL: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr
):
    values = _flat_values(inputs, place, inside, STEPS, False)
    if USUAL is None:
        results = filled(FORMULA(values, numbers), (BLOCK,))
    else:
        results, is_asked = _usual_results(values, numbers, (BLOCK,), USUAL)
        if is_asked:  # read again, so that nothing is kept in registers for the slow path
            results = filled(FORMULA(_flat_values(inputs, place, inside, STEPS, True), numbers), (BLOCK,))
    for i in tl.static_range(len(outputs)):
        result = results[i].to(outputs[i].dtype.element_ty)
        tl.store(outputs[i] + place, result, mask=inside)


@triton.jit
def _flat_values(inputs, place, inside, STEPS: tl.constexpr, AGAIN: tl.constexpr):
    values = ()
    for i in tl.static_range(len(inputs)):
        if STEPS[i] == BROADCAST:
            values += (_read(inputs[i], None, AGAIN),)  # type: ignore[assignment]
        else:
            values += (_read(inputs[i] + place, inside, AGAIN),)  # type: ignore[assignment]
    return values


@triton.jit
def tiled(
    inputs, outputs, rows, cols, row_blocks, col_blocks, extents, outer_steps, row_steps, col_steps, numbers,
    FORMULA: tl.constexpr, USUAL: tl.constexpr, ROW_STEPS: tl.constexpr, COL_STEPS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    ROW_VECTOR: tl.constexpr, COL_VECTOR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """An operand that does not depend on the row or the column is read once for all of them."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    first_col = program % col_blocks * COLS
    first_row = program // col_blocks % row_blocks * ROWS
    outer = program // col_blocks // row_blocks
    row = _in_vectors(first_row + tl.arange(0, ROWS), ROW_VECTOR)[:, None]
    col = _in_vectors(first_col + tl.arange(0, COLS), COL_VECTOR)[None, :]
    values = ()
    for i in tl.static_range(len(inputs)):
        source = inputs[i] + offset(outer, extents, outer_steps[i])
        source = _along(_along(source, row, row_steps[i], ROW_STEPS[i]), col, col_steps[i], COL_STEPS[i])
        if ROW_STEPS[i] == BROADCAST and COL_STEPS[i] == BROADCAST:
            values += (_read(source, None),)  # type: ignore[assignment]
        elif ROW_STEPS[i] == BROADCAST:
            values += (_read(source, col < cols),)  # type: ignore[assignment]
        elif COL_STEPS[i] == BROADCAST:
            values += (_read(source, row < rows),)  # type: ignore[assignment]
        else:
            values += (_read(source, (row < rows) & (col < cols)),)  # type: ignore[assignment]
    results = _computed(values, numbers, (ROWS, COLS), FORMULA, USUAL)
    if len(outputs) > 1:
        tl.debug_barrier()  # an output may be an input that other threads have still to read
    for i in tl.static_range(len(outputs)):
        target = outputs[i] + offset(outer, extents, outer_steps[len(inputs) + i])
        target = _along(target, row, row_steps[len(inputs) + i], ROW_STEPS[len(inputs) + i])
        target = _along(target, col, col_steps[len(inputs) + i], COL_STEPS[len(inputs) + i])
        result = results[i].to(outputs[i].dtype.element_ty)
        tl.store(target, result, mask=(row < rows) & (col < cols))


@triton.jit
def scattered(
    inputs, outputs, count, extents, steps, numbers, FORMULA: tl.constexpr, USUAL: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = ()
    for i in tl.static_range(len(inputs)):
        values += (_read(inputs[i] + offset(place, extents, steps[i]), inside),)  # type: ignore[assignment]
    results = _computed(values, numbers, (BLOCK,), FORMULA, USUAL)
    for i in tl.static_range(len(outputs)):
        result = results[i].to(outputs[i].dtype.element_ty)
        tl.store(outputs[i] + offset(place, extents, steps[len(inputs) + i]), result, mask=inside)


@triton.jit
def _computed(values, numbers, SHAPE: tl.constexpr, FORMULA: tl.constexpr, USUAL: tl.constexpr):
    """The slow path is computed for all elements if one needs it, else for none."""
    if USUAL is None:
        return filled(FORMULA(values, numbers), SHAPE)
    else:
        results, is_asked = _usual_results(values, numbers, SHAPE, USUAL)
        if is_asked:
            results = filled(FORMULA(values, numbers), SHAPE)
        return results


@triton.jit
def _usual_results(values, numbers, SHAPE: tl.constexpr, USUAL: tl.constexpr):
    """Also whether any element needs the slow path. Booleans are summed as floats: packing their bits would take longer."""
    found = filled(USUAL(values, numbers), SHAPE)
    results = ()
    for i in tl.static_range(len(found) - 1):
        results += (found[i],)  # type: ignore[assignment]
    return results, tl.sum(tl.where(found[len(found) - 1], 1.0, 0.0)) > 0


@triton.jit
def _read(source, inside, AGAIN: tl.constexpr = False):
    """What is at an address; a place that is counted, and not an address, is itself."""
    if source.dtype.is_ptr():
        return tl.load(source, mask=inside, volatile=AGAIN)
    else:
        return source


@triton.jit
def _in_vectors(place, VECTOR: tl.constexpr):
    """Places, of which the compiler is to see no more than so many side by side."""
    return tl.max_contiguous(tl.multiple_of(place, VECTOR), VECTOR)


@triton.jit
def _along(pointer, place, step, STEP: tl.constexpr):
    if STEP == BROADCAST:
        return pointer
    elif STEP == SIDE_BY_SIDE:
        return pointer + place
    else:
        return pointer + place.to(tl.int64) * step


# --- launching -----------------------------------------------------------------------------------------------------------------

COUNTED = ElementKind.U8  # what takes no memory does not limit vector loads: the smallest element
WITH_RARE = 72  # registers, by what was measured: 28 warps share a multiprocessor
MORE_WITH_RARE = 96  # the same of four operands and more: twenty warps
LONG = 170  # operations of a formula from which on the compiler would spill
FEWEST_IN_TILES = 256  # elements of two axes; where these have less, programs take many axes at once


def kernel(program: Program, shape: Shape, device: Device, parameters: Sequence[float] = ()) -> Bind:
    """The kernel for operands of `shape`: bind(layouts of inputs and outputs) -> launch."""

    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *calls(program, shape, [layout.stride for layout in layouts if layout is not None], parameters))

    return bind


def calls(
    program: Program,
    shape: Shape,
    strides: Sequence[Sequence[int]],
    parameters: Sequence[float] = (),
    counted: Collection[int] = (),
) -> list[TritonLaunch]:
    """What is launched for operands of these strides, inputs before outputs. Inputs that are `counted` are in no memory: each is its offset."""
    if 0 in shape:
        return []
    operands = Operands.of(program, parameters, counted)
    axes = collapse(shape, [strides[place] for place in operands.places]) or [Dim(1, (1,) * len(operands.places))]
    if len(axes) == 1:
        return [_flat_call(operands, axes[0]) if set(axes[0].steps) <= {0, 1} else _scattered_call(operands, axes)]
    *others, col = axes
    row = max(reversed(others), key=lambda axis: _lying_along(axis, col))
    outer = [axis for axis in others if axis is not row]
    if outer and row.extent * col.extent < FEWEST_IN_TILES:
        return [_scattered_call(operands, axes)]
    return [_tiled_call(operands, outer, row, col)]


class Operands(NamedTuple):
    """The arguments of a program's body, for any form. Inputs that no result depends on are left out."""

    program: Program
    places: tuple[int, ...]  # among the op's operands
    elements: tuple[ElementKind, ...]
    numbers: tuple[Step, ...]  # the parameters' bits
    counted: frozenset[int]  # places of what is in no memory

    @classmethod
    def of(cls, program: Program, parameters: Sequence[float], counted: Collection[int]) -> Operands:
        count, inputs = len(program.inputs), inputs_of(program)
        return cls(
            program,
            (*inputs, *range(count, count + len(program.outputs))),
            (*(COUNTED if place in counted else program.inputs[place] for place in inputs), *program.outputs),
            bits_of(parameters),
            frozenset(counted),
        )

    def formulas(self) -> dict[str, Any]:
        return {"FORMULA": formula(self.program), "USUAL": usual_formula(self.program)}

    @property
    def has_rare(self) -> bool:
        return usual(self.program) is not None

    def registers(self) -> int | None:
        """The registers a thread may use: the slow path may spill, rather than take registers from the fast path."""
        if self.has_rare:
            return WITH_RARE if operands_of(self.program) <= 3 else MORE_WITH_RARE
        return MOST_REGISTERS if len(in_order(self.program.results)) >= LONG else None

    def pointers(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        """The pointers to inputs and to outputs."""
        pairs = zip(self.places, self.elements, strict=True)
        every = tuple(Step(0) if place in self.counted else At(place, element) for place, element in pairs)
        inputs = len(every) - len(self.program.outputs)
        return every[:inputs], every[inputs:]

    def largest(self, chosen: Sequence[bool]) -> ElementKind | None:
        """The largest element of the chosen operands."""
        elements = [element for element, is_chosen in zip(self.elements, chosen, strict=True) if is_chosen]
        return max(elements, key=lambda element: element.size, default=None)

    def in_vectors(self, chosen: Sequence[bool], extent: int, others: Sequence[Dim]) -> ElementKind | None:
        """The largest element of the chosen operands, which are contiguous along an axis, if it and all steps between axes are whole
        vectors of it."""
        largest = self.largest(chosen)
        places = [place for place, is_chosen in enumerate(chosen) if is_chosen]
        far = (extent, *(axis.steps[place] for axis in others for place in places))
        return None if any(step % vector_for(largest) for step in far) else largest


def _lying_along(axis: Dim, col: Dim) -> int:
    """How many operands are contiguous along that axis, and far apart along the columns."""
    return sum(abs(step) == 1 < abs(beside) for step, beside in zip(axis.steps, col.steps, strict=True))


def _flat_call(operands: Operands, axis: Dim) -> TritonLaunch:
    count, largest = axis.extent, operands.largest([step == 1 for step in axis.steps])
    block = block_for(operands.program, count, vector_for(largest))
    in_vectors = count % vector_for(largest) == 0
    whole = count if in_vectors else count // block.size * block.size

    def call(whole: Count, has_rest: bool) -> TritonLaunch:
        return TritonLaunch(
            flat,
            -(-count // block.size),
            (*operands.pointers(), Count(count), whole, operands.numbers),
            {
                **operands.formulas(),
                "STEPS": axis.steps,
                "BLOCK": block.size,
                "VECTOR": block.vector,
                "HAS_REST": has_rest,
                "WIDE": is_wide(count),
            },
            block.warps,
            registers=operands.registers(),
            may_spill=operands.has_rare,
            contracts=False,
        )

    one_by_one = call(Count(count), False)
    return replace(call(Count(whole, largest), not in_vectors), otherwise=one_by_one) if whole else one_by_one


def _tiled_call(operands: Operands, outer: Sequence[Dim], row: Dim, col: Dim) -> TritonLaunch:
    along_cols = [step == 1 for step in col.steps]
    along_rows = [step == 1 < abs(beside) for step, beside in zip(row.steps, col.steps, strict=True)]
    col_element = operands.in_vectors(along_cols, col.extent, [*outer, row])
    row_element = operands.in_vectors(along_rows, row.extent, [*outer, col])
    aligned = [
        col_element if by_cols else row_element if by_rows else None
        for by_cols, by_rows in zip(along_cols, along_rows, strict=True)
    ]
    outer_count = math.prod(axis.extent for axis in outer)
    col_vector, row_vector = (vector_for(operands.largest(chosen)) for chosen in (along_cols, along_rows))
    tile = tile_for(operands.program, row.extent, col.extent, outer_count, col_vector, _lying_along(row, col) > 0)
    row_blocks, col_blocks = -(-row.extent // tile.rows), -(-col.extent // tile.cols)
    extents, outer_steps = dims(outer, len(aligned), None)
    return TritonLaunch(
        tiled,
        row_blocks * col_blocks * outer_count,
        (
            *operands.pointers(),
            Count(row.extent, row_element),
            Count(col.extent, col_element),
            Count(row_blocks),
            Count(col_blocks),
            extents,
            tuple(
                _steps([step.value for step in each], [element] * len(each))
                for each, element in zip(outer_steps, aligned, strict=True)
            ),
            _steps(row.steps, aligned),
            _steps(col.steps, aligned),
            operands.numbers,
        ),
        {
            **operands.formulas(),
            "ROW_STEPS": tuple(step if step in (0, 1) else STRIDED.value for step in row.steps),
            "COL_STEPS": tuple(step if step in (0, 1) else STRIDED.value for step in col.steps),
            "ROWS": tile.rows,
            "COLS": tile.cols,
            "ROW_VECTOR": min(row_vector, tile.rows),
            "COL_VECTOR": min(col_vector, tile.cols),
            "WIDE": is_wide(row.extent) or is_wide(col.extent),
        },
        tile.warps,
        registers=MOST_REGISTERS,
        may_spill=operands.has_rare,
        contracts=False,
    )


def _steps(steps: Sequence[int], elements: Sequence[ElementKind | None]) -> tuple[Step, ...]:
    """Steps as a body takes them; of those with an element, all but single ones are whole vectors."""
    return tuple(Step(step, None if step == 1 else element) for step, element in zip(steps, elements, strict=True))


def _scattered_call(operands: Operands, axes: Sequence[Dim]) -> TritonLaunch:
    count = math.prod(axis.extent for axis in axes)
    block = block_for(operands.program, count, 2)
    extents, steps = dims(axes, len(operands.places), None)
    return TritonLaunch(
        scattered,
        -(-count // block.size),
        (*operands.pointers(), Count(count), extents, tuple(steps), operands.numbers),
        {**operands.formulas(), "BLOCK": block.size, "WIDE": is_wide(count)},
        block.warps,
        registers=MOST_REGISTERS,
        may_spill=operands.has_rare,
        contracts=False,
    )
