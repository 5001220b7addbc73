"""A reduction on the CPU: how its work is shared out, for operands of any layout."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Sequence
from ctypes import addressof
from typing import Any

from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.reduction import Reduction
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import build
from baracuda_kernels.targets.geometry import Dim, as_words, collapse, is_contiguous_or_broadcast, kept_axes, merged

__all__ = [
    "BLOCK",
    "LANES",
    "Lies",
    "ReductionForm",
    "ReductionWord",
    "chunks_of",
    "kernel",
    "workspace_bytes",
]

LANES = 32  # elements of a block that are reduced side by side
BLOCK = 2048  # elements, a power of two of LANES
SEGMENT = 8  # blocks, the fewest that are worth a thread of their own
SEGMENTS = 64  # of one sum, at most
FEW = 2048  # results up to which sums are split among threads
SIDE_BY_SIDE = 16  # results, the fewest that are worth a vector
SHORT = 16  # sums that are shorter are computed as columns, in any layout
STRIP_BYTES = 16 << 10  # of the first cache, for what a strip of columns has added up


class ReductionForm:
    ROWS, COLUMNS, MERGE = "rows", "columns", "merge"


class Lies:
    """How the elements that a form reads one after the other lie. For columns, where all is direct but that some operands are the same
    for all of them, it is the steps of the operands instead, such as "10"."""

    DIRECT, RUNS, STRIDED = "direct", "runs", "strided"


class ReductionWord:
    """Where a launch's numbers stand; after them the parameters, the steps of columns, the reduced dims, and the kept ones."""

    TASKS, PER_TASK, ITEMS, COUNT, BLOCKS, SEGMENT, SEGMENTS, COLUMNS, STRIPS, PARTS, SLOTS, NUMBERS = range(12)


def chunks_of(reduction: Reduction) -> int:
    """How many vectors of columns a strip has."""
    return max(1, min(8, STRIP_BYTES // (LANES * LANES * sum(element.size for element in reduction.state))))


def segment_of(count: int) -> int:
    """The blocks of a segment: a power of two of them, so that it is a subtree of the sum."""
    segment = SEGMENT
    while segment * BLOCK * SEGMENTS < count:
        segment *= 2
    return segment


def _parts(results: int, count: int) -> int:
    """The number of segments in which each result is computed."""
    return max(1, -(-count // (BLOCK * segment_of(count)))) if 0 < results <= FEW else 1


def workspace_bytes(reduction: Reduction, shape: Shape, axes: Collection[int]) -> int:
    """What threads pass to each other."""
    count = math.prod(shape[axis] for axis in axes)
    results = math.prod(kept_axes(shape, axes))
    parts = _parts(results, count)
    return 8 * len(reduction.state) * results * parts if parts > 1 else 0


def kernel(
    reduction: Reduction, shape: Shape, axes: Collection[int], parameters: Sequence[float] = ()
) -> Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], parallel.Launch]:
    """The kernel: bind(strides of the inputs, strides of the results along the kept axes) -> launch."""
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = tuple(shape[axis] for axis in kept_axes)
    count, results = math.prod(shape[axis] for axis in axes), math.prod(kept_shape)
    parts, text = _parts(results, count), reduction.text()
    numbers = [struct.unpack("q", struct.pack("d", value))[0] for value in (count, *parameters)]
    work = math.prod(shape) * sum(element.size for element in reduction.elements)
    work += results * sum(element.size for element in reduction.results)
    alone = Dim(1, (1,) * (reduction.operands + len(reduction.results)))

    def made(
        form: str, lies: str, kept: Sequence[Dim], reduced: Sequence[Dim], columns: Dim, blocks: int, segments: int, is_part: bool
    ) -> tuple[Any, Any, int]:
        from baracuda_kernels.targets.cpu.llvm.reduction_forms import body

        strips = -(-columns.extent // (LANES * chunks_of(reduction))) if form == ReductionForm.COLUMNS else 1
        items = strips * segments * math.prod(dim.extent for dim in kept)
        per_task = parallel.per_task(items, work // items)
        tasks = -(-items // per_task)
        segment = -(-blocks // segments) if segments == 1 else segment_of(count)
        dims = [word for dim in (*reduced, *kept) for word in (dim.extent, *dim.steps)]
        work_words = [tasks, per_task, items, count, blocks, segment, segments]
        place_words = [columns.extent, strips, results * parts, parts]
        words = as_words([*work_words, *place_words, *numbers, *columns.steps, *dims])
        function = build(body, 1 + len(alone.steps), text, form, lies, str(len(kept)), str(len(reduced)), str(is_part))
        return function, words, tasks

    def launch_of(*made_calls: tuple[Any, Any, int]) -> parallel.Launch:
        calls = [
            (function, addressof(words), tasks if work > parallel.SERIAL_BYTES else 1) for function, words, tasks in made_calls
        ]

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any, alive: Any = made_calls) -> None:
            pointers = (*addresses, workspace)
            for function, words, tasks in calls:
                if tasks > 1:
                    parallel.launch(function, words, tasks, pointers)
                else:
                    function(words, None, *pointers)

        return launch

    def bind(strides: Sequence[Sequence[int]], result_strides: Sequence[Sequence[int]]) -> parallel.Launch:
        if not results:
            return parallel.idle
        reduced = merged(shape, strides, axes)
        kept = collapse(kept_shape, [*([stride[axis] for axis in kept_axes] for stride in strides), *result_strides])
        blocks = -(-count // BLOCK)
        form, lies, beside = _choice(count, reduced, kept, reduction.operands)
        outer = [dim for dim in kept if dim is not beside]
        first = made(form, lies, outer, reduced, beside or alone, blocks, parts, parts > 1)
        if parts == 1:
            return launch_of(first)
        every = outer if beside is None else [*outer, beside]  # as segments are numbered
        return launch_of(first, made(ReductionForm.MERGE, Lies.DIRECT, every, [], alone, parts, 1, False))

    return bind


def _choice(count: int, reduced: Sequence[Dim], kept: Sequence[Dim], operands: int) -> tuple[str, str, Dim | None]:
    """The form, how it reads, and which of the kept dims is that of columns."""

    def is_direct(dim: Dim) -> bool:
        return all(step == 1 for step in dim.steps[:operands])

    wide = [dim for dim in kept if dim.extent >= SIDE_BY_SIDE and not is_direct(reduced[-1])]
    beside = next(filter(is_direct, wide), None)
    if beside is not None:
        return ReductionForm.COLUMNS, Lies.DIRECT, beside
    shared = next((dim for dim in wide if is_contiguous_or_broadcast(dim.steps[:operands])), None)
    if shared is not None:
        return ReductionForm.COLUMNS, "".join(map(str, shared.steps[:operands])), shared
    longest = max(kept, key=lambda dim: dim.extent, default=Dim(1, ()))
    if count < SHORT and longest.extent >= SIDE_BY_SIDE:
        return ReductionForm.COLUMNS, Lies.STRIDED, longest
    if not is_direct(reduced[-1]):
        return ReductionForm.ROWS, Lies.STRIDED, None
    return ReductionForm.ROWS, Lies.DIRECT if len(reduced) == 1 else Lies.RUNS, None
