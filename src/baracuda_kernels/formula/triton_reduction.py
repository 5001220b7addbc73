"""Reductions on CUDA, for operands of any layout.

A program takes a tile of results and elements. Every place of the tile combines what comes by on its way through the elements, and in the
end the places become one for each result. Few long sums are split into segments, which programs leave in the workspace, and others
combine. All of it is fixed by the shape and the layout, and no two programs write to one place.
"""

from __future__ import annotations

import functools
import hashlib
import linecache
import math
import struct
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.llvm_reduction_launch import reduced_dims
from baracuda_kernels.formula.reduction import Reduction
from baracuda_kernels.formula.triton_reduction_tiles import MERGED, segments_for, tile_for
from baracuda_kernels.formula.triton_source import formula, inputs_of
from baracuda_kernels.gpu.call import At, Call, Count, Lent, Step, is_wide
from baracuda_kernels.gpu.indexing import dims, offset
from baracuda_kernels.gpu.tiles import power_of_two
from baracuda_kernels.lang.geometry import Dim, collapse

__all__ = ["calls"]


class Formulas(NamedTuple):
    """The functions of a reduction, and which of their inputs they take."""

    start: Any
    term: Any
    combine: Any
    finish: Any
    term_inputs: tuple[int, ...]
    combine_inputs: tuple[int, ...]
    finish_inputs: tuple[int, ...]
    pair: Any  # combines numbers that are given one by one
    tile: Any  # reduces a tile along its second axis


# --- bodies --------------------------------------------------------------------------------------------------------------------


@triton.jit
def reduce_tiles(
    input, targets, results, count, segment, segments, extents, input_steps, result_steps, reduced_extents, reduced_steps, numbers,
    START: tl.constexpr, TERM: tl.constexpr, COMBINE: tl.constexpr, FINISH: tl.constexpr, PAIR: tl.constexpr,
    TILE: tl.constexpr, TERM_INPUTS: tl.constexpr, COMBINE_INPUTS: tl.constexpr, FINISH_INPUTS: tl.constexpr, STATES: tl.constexpr,
    IN_PAIRS: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr, IS_PART: tl.constexpr, KEPT: tl.constexpr, REDUCED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """`BESIDE`: results lie side by side; `ALONG`: the elements of one do."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    part = program % segments
    result = program // segments * KEPT + tl.arange(0, KEPT)
    is_there = result < results
    input += (result if BESIDE else offset(result, extents, input_steps))[:, None]
    first = tl.load(input, mask=is_there[:, None] & (count > 0))
    start = START((), numbers)
    one = tl.broadcast_to(start[0], (KEPT, REDUCED))
    two = tl.broadcast_to(start[STATES - 1], (KEPT, REDUCED))
    begin = part.to(tl.int64) * segment
    for at in range(begin, tl.minimum(begin + segment, count), REDUCED):
        place = at + tl.arange(0, REDUCED)[None, :]
        inside = is_there[:, None] & (place < count)
        values = tl.load(input + (place if ALONG else offset(place, reduced_extents, reduced_steps)), mask=inside)
        term = TERM(_chosen((values, tl.broadcast_to(place, (KEPT, REDUCED)).to(tl.int64), first), TERM_INPUTS), numbers)
        of_one = tl.where(inside, tl.broadcast_to(term[0], (KEPT, REDUCED)), tl.broadcast_to(start[0], (KEPT, REDUCED)))
        if STATES == 1:
            combined = COMBINE(_chosen((one, of_one), COMBINE_INPUTS), numbers)
            one = combined[0]
        else:
            of_two = tl.where(inside, tl.broadcast_to(term[1], (KEPT, REDUCED)), tl.broadcast_to(start[1], (KEPT, REDUCED)))
            combined = COMBINE(_chosen((one, two, of_one, of_two), COMBINE_INPUTS), numbers)
            one = combined[0]
            two = combined[1]
    state = _reduced(one, two, TILE, PAIR, STATES, IN_PAIRS)
    if IS_PART:
        slot = result.to(tl.int64) * segments + part
        for i in tl.static_range(STATES):
            tl.store(targets[i] + slot, state[i], mask=is_there)
    else:
        value = FINISH(_chosen(state, FINISH_INPUTS), numbers)[0].to(targets[0].dtype.element_ty)
        tl.store(targets[0] + offset(result, extents, result_steps), value, mask=is_there)


@triton.jit
def merge_segments(
    parts, target, results, segments, extents, result_steps, numbers,
    START: tl.constexpr, PAIR: tl.constexpr, TILE: tl.constexpr, FINISH: tl.constexpr, FINISH_INPUTS: tl.constexpr, STATES: tl.constexpr,
    IN_PAIRS: tl.constexpr, KEPT: tl.constexpr, SEGMENTS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    result = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * KEPT + tl.arange(0, KEPT)
    is_there = result < results
    segment = tl.arange(0, SEGMENTS)[None, :]
    slot = result.to(tl.int64)[:, None] * segments + segment
    inside = is_there[:, None] & (segment < segments)
    start = START((), numbers)
    one = tl.where(inside, tl.load(parts[0] + slot, mask=inside), tl.broadcast_to(start[0], (KEPT, SEGMENTS)))
    two = one
    if STATES == 2:
        two = tl.where(inside, tl.load(parts[1] + slot, mask=inside), tl.broadcast_to(start[1], (KEPT, SEGMENTS)))
    value = FINISH(_chosen(_reduced(one, two, TILE, PAIR, STATES, IN_PAIRS), FINISH_INPUTS), numbers)[0].to(target.dtype.element_ty)
    tl.store(target + offset(result, extents, result_steps), value, mask=is_there)


@triton.jit
def _chosen(values, PLACES: tl.constexpr):
    """Those that a formula takes."""
    chosen = ()
    for i in tl.static_range(len(PLACES)):
        chosen += (values[PLACES[i]],)  # type: ignore[assignment]
    return chosen


@triton.jit
def _reduced(one, two, TILE: tl.constexpr, PAIR: tl.constexpr, STATES: tl.constexpr, IN_PAIRS: tl.constexpr):
    """Along the second axis. The interpreter takes a function for each element in `tl.reduce`; in pairs it is done in a blink."""
    if not IN_PAIRS:
        return TILE(one, two)
    else:
        for _ in tl.static_range(IN_PAIRS):
            a, c = tl.split(tl.reshape(one, (one.shape[0], one.shape[1] // 2, 2)))
            b, d = tl.split(tl.reshape(two, (two.shape[0], two.shape[1] // 2, 2)))
            if STATES == 1:
                one = PAIR(a, c)
                two = one
            else:
                one, two = PAIR(a, b, c, d)
        return (tl.reshape(one, (one.shape[0],)), tl.reshape(two, (two.shape[0],)))


# --- formulas ------------------------------------------------------------------------------------------------------------------


@functools.cache
def _formulas(reduction: Reduction) -> Formulas:
    start, term, combine, finish = map(formula, (reduction.start, reduction.term, reduction.combine, reduction.finish))
    term_inputs, combine_inputs, finish_inputs = map(inputs_of, (reduction.term, reduction.combine, reduction.finish))
    pair, tile = _pair(reduction)
    return Formulas(start, term, combine, finish, term_inputs, combine_inputs, finish_inputs, pair, tile)


def _pair(reduction: Reduction) -> tuple[Any, Any]:
    """Of contributions number by number, as `tl.reduce` gives them; and what reduces a tile so."""
    states, name = len(reduction.state), hashlib.sha256(reduction.combine.text().encode()).hexdigest()[:16]
    arguments = [f"{side}{number}" for side in "ab" for number in range(states)]
    given = "".join(f"{arguments[place]}, " for place in inputs_of(reduction.combine))
    pair = f"""\
def pair_{name}({", ".join(arguments)}):
    found = FORMULA(({given}), ())
    return {"found[0]" if states == 1 else "found[0], found[1]"}
"""
    tile = f"""\
def tile_{name}(one, two):
    return {"(tl.reduce(one, 1, PAIR),)" if states == 1 else "tl.reduce((one, two), 1, PAIR)"}
"""
    made = _function(f"pair_{name}", pair, {"FORMULA": formula(reduction.combine)})
    return made, _function(f"tile_{name}", tile, {"PAIR": made})


def _function(name: str, source: str, names: dict[str, Any]) -> Any:
    """A Triton function of its text."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # where Triton looks for it
    everything: dict[str, Any] = names | {"tl": tl, "__name__": __name__}
    exec(compile(source, file, "exec"), everything)
    return triton.jit(everything[name])


def _levels(width: int) -> int:
    """Of a tree of pairs, where it is to be used."""
    return width.bit_length() - 1 if is_interpreted() else 0


# --- launching -----------------------------------------------------------------------------------------------------------------


def calls(
    reduction: Reduction,
    shape: Shape,
    axes: Collection[int],
    strides: tuple[Sequence[int], Sequence[int]],
    parameters: Sequence[float] = (),
    operands: tuple[Any, Any] | None = None,
    workspace: int = 0,
) -> list[Call]:
    """What is launched for an input of these strides, and a result of those along the kept axes.

    By default the operands are the first two; segments begin at `workspace`.
    """
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = [shape[axis] for axis in kept_axes]
    count, results = math.prod(shape[axis] for axis in axes), math.prod(kept_shape)
    if not results:
        return []
    source, target = operands or (At(0, reduction.element), At(1, reduction.result))
    made = _formulas(reduction)
    words = struct.unpack(f"{1 + len(parameters)}q", struct.pack(f"{1 + len(parameters)}d", count, *parameters))
    numbers = tuple(map(Step, words))
    reduced = reduced_dims(shape, strides[0], axes)
    kept = collapse(kept_shape, [[strides[0][axis] for axis in kept_axes], strides[1]]) or [Dim(1, (1, 1))]
    is_along = len(reduced) == 1 and reduced[0].steps[0] == 1
    is_beside = not is_along and len(kept) == 1 and kept[0].steps[0] == 1
    by_row, by_column = (reduction.element if each else None for each in (is_along, is_beside))  # what vectors depend on
    tile = tile_for(reduction, results, count, by_rows=reduced[-1].steps[0] == 1 or kept[-1].steps[0] != 1)
    segments, length = segments_for(results, count, tile)
    extents, (_, result_steps) = dims(kept, 2, None)
    _, (input_steps, _) = dims(kept, 2, by_row)
    reduced_extents, (reduced_steps,) = dims(reduced, 1, by_column)
    states = len(reduction.state)
    slots = [Lent(workspace + 8 * results * segments * place, element) for place, element in enumerate(reduction.state)]
    common = {
        "START": made.start, "FINISH": made.finish, "PAIR": made.pair, "TILE": made.tile, "FINISH_INPUTS": made.finish_inputs,
        "STATES": states,
    }  # fmt: skip
    first = Call(
        reduce_tiles,
        -(-results // tile.kept) * segments,
        (
            source, tuple(slots) if segments > 1 else (target,), Count(results, by_column), Step(count, by_row),
            Step(length, by_row), Count(segments), extents,
            input_steps, result_steps, reduced_extents, reduced_steps, numbers,
        ),
        common | {
            "TERM": made.term, "COMBINE": made.combine, "TERM_INPUTS": made.term_inputs, "COMBINE_INPUTS": made.combine_inputs,
            "BESIDE": is_beside, "ALONG": is_along, "IS_PART": segments > 1, "KEPT": tile.kept, "REDUCED": tile.reduced,
            "WIDE": is_wide(results), "IN_PAIRS": _levels(tile.reduced),
        },
        tile.warps,
        contracts=False,
    )  # fmt: skip
    if segments == 1:
        return [first]
    width = power_of_two(segments)
    together = max(1, MERGED // width)
    merge = Call(
        merge_segments,
        -(-results // together),
        (tuple(slots), target, Count(results), Count(segments), extents, result_steps, numbers),
        common | {"KEPT": together, "SEGMENTS": width, "WIDE": is_wide(results), "IN_PAIRS": _levels(width)},
        contracts=False,
    )
    return [first, merge]
