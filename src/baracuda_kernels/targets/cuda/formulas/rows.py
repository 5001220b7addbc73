"""Formulas on CUDA of elements and of what their rows come to, in one launch: every program holds whole rows, and reads them once."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import triton
import triton.language as tl

from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.expression import Program
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.formula.reduction import ELEMENT, OTHER, PLACE, Reduction
from baracuda_kernels.targets.cuda.formulas.reduction import chosen, levels, reduced_tile, reduction_formulas, there
from baracuda_kernels.targets.cuda.formulas.source import formula, function, inputs_of
from baracuda_kernels.targets.cuda.runtime.triton_launch import MOST_REGISTERS, At, Count, TritonLaunch, bits_of, is_wide
from baracuda_kernels.targets.cuda.tiles import power_of_two
from baracuda_kernels.targets.cuda.triton.indexing import dims, filled, offset
from baracuda_kernels.targets.geometry import Dim, collapse, is_contiguous, merged

__all__ = ["call"]

MOST_BYTES, MOST_ELEMENTS = 65536, 8192  # of all operands of a row, and of one of them, that a program can hold
MOST_WARPS = 16
PER_THREAD = 64  # bytes of its elements
FEWEST, FEWEST_WARPS = 1024, 4  # elements of a program, and who has them, if rows are short: each has a place of its own


# --- body ----------------------------------------------------------------------------------------------------------------------


@triton.jit
def from_rows(
    shared, inputs, outputs, rows, count, extents, shared_steps, input_steps, output_steps, numbers,
    HELPERS: tl.constexpr, FORMULA: tl.constexpr, ORDER: tl.constexpr, KEPT: tl.constexpr, REDUCED: tl.constexpr, IN_PAIRS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """`shared` are one number for a row. The formula takes these, elements and what rows come to in the `ORDER` given."""
    row = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * KEPT + tl.arange(0, KEPT)
    is_there = (row < rows)[:, None]
    place = tl.arange(0, REDUCED)[None, :]
    inside = is_there & (place < count)
    values = ()
    for i in tl.static_range(len(shared)):
        values += (tl.load(shared[i] + offset(row, extents, shared_steps[i])[:, None], mask=is_there),)  # type: ignore[assignment]
    elements = ()
    for i in tl.static_range(len(inputs)):
        elements += (tl.load(inputs[i] + offset(row, extents, input_steps[i])[:, None] + place, mask=inside),)  # type: ignore[assignment]
    values += elements + HELPERS(elements, place, inside, numbers, KEPT, REDUCED, IN_PAIRS)
    results = filled(FORMULA(chosen(values, ORDER), numbers), (KEPT, REDUCED))
    for i in tl.static_range(len(outputs)):
        target = outputs[i] + offset(row, extents, output_steps[i])[:, None] + place
        tl.store(target, results[i].to(outputs[i].dtype.element_ty), mask=inside)


@functools.cache
def _helpers(reductions: tuple[Reduction, ...]) -> Any:
    """What rows come to by each of these reductions, which take no element as the first, as one function."""
    name = f"helpers_{hashlib.sha256(''.join(each.text() for each in reductions).encode()).hexdigest()[:16]}"
    names: dict[str, Any] = {"filled": filled, "there": there, "reduced_tile": reduced_tile}
    lines = [f"def {name}(elements, place, inside, numbers, KEPT: tl.constexpr, REDUCED: tl.constexpr, IN_PAIRS: tl.constexpr):"]
    for number, each in enumerate(reductions):
        made, states = reduction_formulas(each), len(each.state)
        functions = {"START": made.start, "APPEND": made.append, "FINISH": made.finish, "TILE": made.tile, "PAIR": made.pair}
        names |= {f"{what}{number}": function for what, function in functions.items()}
        given = {state: f"start[{state}]" for state in range(states)} | {states + ELEMENT: "elements[0]", states + PLACE: "place"}
        given |= {states + OTHER + other: f"elements[{1 + other}]" for other in range(each.operands - 1)}
        lines += [
            f"    start = filled(START{number}((), numbers), (KEPT, REDUCED))",
            f"    state = filled(APPEND{number}({_tuple(given[place] for place in made.append_inputs)}, numbers), (KEPT, REDUCED))",
            f"    whole = reduced_tile(there(inside, state, start), TILE{number}, PAIR{number}, IN_PAIRS)",
            f"    (found{number},) = FINISH{number}({_tuple(f'whole[{place}]' for place in made.finish_inputs)}, numbers)",
        ]
    lines.append(f"    return {_tuple(f'found{number}[:, None]' for number in range(len(reductions)))}")
    return function(name, "\n".join([*lines, ""]), names)


def _tuple(parts: Any) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


# --- launching -----------------------------------------------------------------------------------------------------------------


class RowTile(NamedTuple):
    rows: int
    cols: int
    warps: int


def tile_for(count: int, operands: int, size: int) -> RowTile | None:
    """The tile for rows of so many elements of that size in each of several operands; None if a program cannot hold one. How many rows there are
    does not matter, so that the bits of one do not depend on others."""
    cols = power_of_two(max(count, 1))
    if cols > min(MOST_ELEMENTS, MOST_BYTES // (size * operands)):
        return None
    rows = max(1, FEWEST // cols)
    return RowTile(rows, cols, min(MOST_WARPS, max(FEWEST_WARPS, rows * cols * size * operands // (32 * PER_THREAD))))


def call(
    reductions: tuple[Reduction, ...],
    program: Program,
    shape: Shape,
    axes: Collection[int],
    strides: Sequence[Sequence[int]],
    of_elements: Collection[int],
    parameters: Sequence[float],
) -> TritonLaunch | None:
    """The launch of a program whose inputs are operands, those `of_elements` and others that are one number for a row, and after them what
    the reductions make of the former; None where rows are too long or are not contiguous, or the program has a slow path, which
    would take the registers that rows are held in. Strides are along the axes of `shape`, of inputs before outputs."""
    count = math.prod(shape[axis] for axis in axes)
    given = len(strides) - len(program.outputs)
    shared = [place for place in inputs_of(program) if place < given and place not in of_elements]
    inputs, outputs = list(of_elements), range(given, len(strides))
    element = program.outputs[0]
    tile = tile_for(count, len(inputs), element.size)
    along = merged(shape, [strides[place] for place in (*inputs, *outputs)], axes)
    if tile is None or usual(program) is not None or len(along) != 1 or not is_contiguous(along[0]):
        return None
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    every = (*shared, *inputs, *outputs)
    kept_shape = [shape[axis] for axis in kept_axes]
    kept = collapse(kept_shape, [[strides[place][axis] for axis in kept_axes] for place in every]) or [Dim(1, (1,) * len(every))]
    rows = math.prod(kept_shape)
    extents, steps = dims(kept, len(every), None)
    steps[len(shared) :] = dims(kept, len(every), element)[1][len(shared) :]
    places = {place: number for number, place in enumerate((*shared, *inputs))}
    order = tuple(places.get(place, len(places) + place - given) for place in inputs_of(program))
    ends = len(shared) + len(inputs)
    return TritonLaunch(
        from_rows,
        -(-rows // tile.rows),
        (
            tuple(At(place, program.inputs[place], is_whole=False) for place in shared), tuple(At(place, element) for place in inputs),
            tuple(At(place, element) for place in outputs), Count(rows), Count(count, element), extents,
            tuple(steps[: len(shared)]), tuple(steps[len(shared) : ends]), tuple(steps[ends:]), bits_of(parameters),
        ),
        {
            "HELPERS": _helpers(reductions), "FORMULA": formula(program), "ORDER": order, "KEPT": tile.rows, "REDUCED": tile.cols,
            "IN_PAIRS": levels(tile.cols), "WIDE": is_wide(rows),
        },
        tile.warps,
        registers=MOST_REGISTERS,
        contracts=False,
    )  # fmt: skip
