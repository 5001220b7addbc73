"""Reductions on CUDA, for operands of any layout.

A program takes a tile of results and elements. Every place of the tile combines what comes by on its way through the elements, and in the
end the places become one for each result. Few long sums are split into segments, which programs leave in the workspace, and others
combine. All of it is fixed by the shape and the layout, and no two programs write to one place.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.reduction import Reduction
from baracuda_kernels.targets.cuda.formulas.reduction_tiles import MERGED, segments_for, tile_for
from baracuda_kernels.targets.cuda.formulas.source import formula, function, inputs_of
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, Count, Lent, Step, TritonLaunch, bits_of, is_wide
from baracuda_kernels.targets.cuda.tiles import power_of_two
from baracuda_kernels.targets.cuda.triton.indexing import dims, filled, offset
from baracuda_kernels.targets.geometry import Dim, collapse, is_contiguous_or_broadcast, merged

__all__ = ["calls", "chosen", "levels", "reduced_tile", "reduction_formulas", "there"]


class ReductionFunctions(NamedTuple):
    """The functions of a reduction, and which of their inputs they take."""

    start: Any
    append: Any
    finish: Any
    append_inputs: tuple[int, ...]
    finish_inputs: tuple[int, ...]
    several: Any  # None where there is no formula for it
    pair: Any  # combines two contributions
    tile: Any  # reduces a tile along its second axis


# --- bodies --------------------------------------------------------------------------------------------------------------------


@triton.jit
def reduce_tiles(
    inputs, targets, results, count, segment, segments, extents, input_steps, result_steps, reduced_extents, reduced_steps, numbers,
    START: tl.constexpr, APPEND: tl.constexpr, SEVERAL: tl.constexpr, FINISH: tl.constexpr, PAIR: tl.constexpr,
    TILE: tl.constexpr, APPEND_INPUTS: tl.constexpr, FINISH_INPUTS: tl.constexpr,
    IN_PAIRS: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr, IS_PART: tl.constexpr, KEPT: tl.constexpr, REDUCED: tl.constexpr, TOGETHER: tl.constexpr, STAGES: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """`BESIDE`: results are contiguous; `ALONG`: the elements of one do; `SEVERAL`: appends `TOGETHER` tiles at a time."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    part = program % segments
    result = program // segments * KEPT + tl.arange(0, KEPT)
    is_there = result < results
    sources = ()
    for i in tl.static_range(len(inputs)):
        sources += (inputs[i] + (result if BESIDE else offset(result, extents, input_steps[i]))[:, None],)  # type: ignore[assignment]
    first = tl.load(sources[0], mask=is_there[:, None] & (count > 0))  # type: ignore[misc]
    state = filled(START((), numbers), (KEPT, REDUCED))
    begin = part.to(tl.int64) * segment
    end = tl.minimum(begin + segment, count)
    if SEVERAL is not None:
        together = end - (end - begin) % (TOGETHER * REDUCED)
        for at in tl.range(begin, together, TOGETHER * REDUCED, num_stages=STAGES):
            given = state
            for i in tl.static_range(TOGETHER):
                place = at + i * REDUCED + tl.arange(0, REDUCED)[None, :]
                source = sources[0] + (place if ALONG else offset(place, reduced_extents, reduced_steps[0]))  # type: ignore[misc]
                given += (tl.load(source, mask=is_there[:, None]),)
            state = filled(SEVERAL(given, numbers), (KEPT, REDUCED))
        begin = together
    rest = end - (end - begin) % REDUCED  # where elements of a tile have to be tested one by one
    for at in tl.range(begin, rest, REDUCED, loop_unroll_factor=TOGETHER if SEVERAL is None else 1, num_stages=STAGES):
        state = _appended(
            state, sources, first, at, is_there[:, None], reduced_extents, reduced_steps, numbers,
            APPEND, APPEND_INPUTS, ALONG, KEPT, REDUCED,
        )  # fmt: skip
    if rest < end:
        inside = is_there[:, None] & (rest + tl.arange(0, REDUCED)[None, :] < end)
        last = _appended(
            state, sources, first, rest, inside, reduced_extents, reduced_steps, numbers, APPEND, APPEND_INPUTS, ALONG, KEPT, REDUCED,
        )  # fmt: skip
        state = there(inside, last, state)
    whole = reduced_tile(state, TILE, PAIR, IN_PAIRS)
    if IS_PART:
        slot = result.to(tl.int64) * segments + part
        for i in tl.static_range(len(whole)):
            tl.store(targets[i] + slot, whole[i], mask=is_there)
    else:
        _finish(FINISH(chosen(whole, FINISH_INPUTS), numbers), targets, result, extents, result_steps, is_there)


@triton.jit
def merge_segments(
    parts, targets, results, segments, extents, result_steps, numbers,
    START: tl.constexpr, PAIR: tl.constexpr, TILE: tl.constexpr, FINISH: tl.constexpr, FINISH_INPUTS: tl.constexpr,
    IN_PAIRS: tl.constexpr, KEPT: tl.constexpr, SEGMENTS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    result = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * KEPT + tl.arange(0, KEPT)
    is_there = result < results
    segment = tl.arange(0, SEGMENTS)[None, :]
    slot = result.to(tl.int64)[:, None] * segments + segment
    inside = is_there[:, None] & (segment < segments)
    state = ()
    for i in tl.static_range(len(parts)):
        state += (tl.load(parts[i] + slot, mask=inside),)  # type: ignore[assignment]
    state = there(inside, state, filled(START((), numbers), (KEPT, SEGMENTS)))
    whole = reduced_tile(state, TILE, PAIR, IN_PAIRS)
    _finish(FINISH(chosen(whole, FINISH_INPUTS), numbers), targets, result, extents, result_steps, is_there)


@triton.jit
def _appended(
    state, sources, first, at, inside, reduced_extents, reduced_steps, numbers,
    APPEND: tl.constexpr, INPUTS: tl.constexpr, ALONG: tl.constexpr, KEPT: tl.constexpr, REDUCED: tl.constexpr,
):  # fmt: skip
    """The state with a tile of elements from `at` on appended; elements that are not `inside` are undefined."""
    place = at + tl.arange(0, REDUCED)[None, :]
    given = state
    for i in tl.static_range(len(sources)):
        source = sources[i] + (place if ALONG else offset(place, reduced_extents, reduced_steps[i]))
        given += (tl.load(source, mask=inside),)
        if i == 0:
            given += (place, first)
    return filled(APPEND(chosen(given, INPUTS), numbers), (KEPT, REDUCED))


@triton.jit
def _finish(values, targets, result, extents, result_steps, is_there):
    for i in tl.static_range(len(targets)):
        value = values[i].to(targets[i].dtype.element_ty)
        tl.store(targets[i] + offset(result, extents, result_steps[i]), value, mask=is_there)


@triton.jit
def there(inside, state, outside):
    there = ()
    for i in tl.static_range(len(state)):
        there += (tl.where(inside, state[i], outside[i]),)  # type: ignore[assignment]
    return there


@triton.jit
def chosen(values, PLACES: tl.constexpr):
    """The values that a formula reads."""
    chosen = ()
    for i in tl.static_range(len(PLACES)):
        chosen += (values[PLACES[i]],)  # type: ignore[assignment]
    return chosen


@triton.jit
def reduced_tile(state, TILE: tl.constexpr, PAIR: tl.constexpr, IN_PAIRS: tl.constexpr):
    """Along the second axis. The interpreter takes a function for each element in `tl.reduce`; in pairs it is done in a blink."""
    if not IN_PAIRS:
        return TILE(state)
    else:
        for _ in tl.static_range(IN_PAIRS):
            left, right = (), ()
            for i in tl.static_range(len(state)):
                one, other = tl.split(tl.reshape(state[i], (state[i].shape[0], state[i].shape[1] // 2, 2)))
                left += (one,)  # type: ignore[assignment]
                right += (other,)  # type: ignore[assignment]
            state = PAIR(left, right)
        whole = ()
        for i in tl.static_range(len(state)):
            whole += (tl.reshape(state[i], (state[i].shape[0],)),)  # type: ignore[assignment]
        return whole


# --- formulas ------------------------------------------------------------------------------------------------------------------


@functools.cache
def reduction_formulas(reduction: Reduction) -> ReductionFunctions:
    start, append, finish = map(formula, (reduction.start, reduction.append, reduction.finish))
    append_inputs, finish_inputs = map(inputs_of, (reduction.append, reduction.finish))
    several = None if reduction.several is None else formula(reduction.several)
    return ReductionFunctions(start, append, finish, append_inputs, finish_inputs, several, *_pair(reduction))


def _pair(reduction: Reduction) -> tuple[Any, Any]:
    """Makes the function that combines two contributions, and the one that reduces a tile with it. `tl.reduce` passes them number by number."""
    states, name = len(reduction.state), hashlib.sha256(reduction.combine.text().encode()).hexdigest()[:16]
    arguments = [f"{side}{number}" for side in "ab" for number in range(states)]
    given = "".join(f"{arguments[place]}, " for place in inputs_of(reduction.combine))
    everything = "".join(f"{side}[{number}], " for side in "ab" for number in range(states))
    pair = f"""\
def pair_{name}({", ".join(arguments)}):
    found = FORMULA(({given}), ())
    return {", ".join(f"found[{number}]" for number in range(states))}
"""
    of_two = f"""\
def of_two_{name}(a, b):
    found = PAIR({everything})
    return {"(found,)" if states == 1 else "found"}
"""
    tile = f"""\
def tile_{name}(state):
    return {"(tl.reduce(state[0], 1, PAIR),)" if states == 1 else "tl.reduce(state, 1, PAIR)"}
"""
    names = {"PAIR": function(f"pair_{name}", pair, {"FORMULA": formula(reduction.combine)})}
    return function(f"of_two_{name}", of_two, names), function(f"tile_{name}", tile, names)


def levels(width: int) -> int:
    """The levels of a binary tree, if one is used."""
    return width.bit_length() - 1 if is_interpreted() else 0


# --- launching -----------------------------------------------------------------------------------------------------------------


def calls(
    reduction: Reduction,
    shape: Shape,
    axes: Collection[int],
    strides: Sequence[Sequence[int]],
    result_strides: Sequence[Sequence[int]],
    parameters: Sequence[float] = (),
    operands: Sequence[Any] | None = None,
    workspace: int = 0,
) -> list[TritonLaunch]:
    """What is launched for inputs of these strides, and results of those along the kept axes.

    By default the operands are the first ones; segments begin at `workspace`.
    """
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = [shape[axis] for axis in kept_axes]
    count, results = math.prod(shape[axis] for axis in axes), math.prod(kept_shape)
    if not results:
        return []
    elements = (*reduction.elements, *reduction.results)
    everything = tuple(operands or map(At, range(len(elements)), elements))
    sources, targets = everything[: reduction.operands], everything[reduction.operands :]
    made = reduction_formulas(reduction)
    numbers = bits_of((count, *parameters))
    reduced = merged(shape, strides, axes)
    kept_strides = [*([stride[axis] for axis in kept_axes] for stride in strides), *result_strides]
    kept = collapse(kept_shape, kept_strides) or [Dim(1, (1,) * len(elements))]

    def is_direct(dim: Dim) -> bool:
        return all(step == 1 for step in dim.steps[: reduction.operands])

    is_along = len(reduced) == 1 and is_direct(reduced[0])
    is_dense = not is_along and len(kept) == 1 and is_direct(kept[0])
    smallest = min(reduction.elements, key=lambda element: element.size)  # of which a vector has the most
    by_row, by_column = (smallest if each else None for each in (is_along, is_dense))
    by_columns = not is_direct(reduced[-1]) and is_contiguous_or_broadcast(kept[-1].steps[: reduction.operands])
    tile = tile_for(reduction, results, count, by_rows=not by_columns)
    segments, length = segments_for(results, count, tile)
    extents, steps = dims(kept, len(elements), None)
    result_steps = tuple(steps[reduction.operands :])
    input_steps = tuple(dims(kept, len(elements), by_row)[1][: reduction.operands])
    reduced_extents, reduced_steps = dims(reduced, reduction.operands, by_column)
    slots = [Lent(workspace + 8 * results * segments * place, element) for place, element in enumerate(reduction.state)]
    common = {
        "START": made.start, "FINISH": made.finish, "PAIR": made.pair, "TILE": made.tile, "FINISH_INPUTS": made.finish_inputs,
    }  # fmt: skip
    first = TritonLaunch(
        reduce_tiles,
        -(-results // tile.kept) * segments,
        (
            sources, tuple(slots) if segments > 1 else targets, Count(results, by_column), Step(count, by_row),
            Step(length, by_row), Count(segments), extents,
            input_steps, result_steps, reduced_extents, tuple(reduced_steps), numbers,
        ),
        common | {
            "APPEND": made.append, "SEVERAL": made.several, "APPEND_INPUTS": made.append_inputs,
            "BESIDE": is_dense, "ALONG": is_along, "IS_PART": segments > 1, "KEPT": tile.kept, "REDUCED": tile.reduced, "TOGETHER": tile.together, "STAGES": tile.stages,
            "WIDE": is_wide(results), "IN_PAIRS": levels(tile.reduced),
        },
        tile.warps,
        contracts=False,
    )  # fmt: skip
    if segments == 1:
        return [first]
    width = power_of_two(segments)
    together = max(1, MERGED // width)
    merge = TritonLaunch(
        merge_segments,
        -(-results // together),
        (tuple(slots), targets, Count(results), Count(segments), extents, result_steps, numbers),
        common | {"KEPT": together, "SEGMENTS": width, "WIDE": is_wide(results), "IN_PAIRS": levels(width)},
        contracts=False,
    )
    return [first, merge]
