"""Scans on the CPU: how their work is shared out, for operands of any layout.

Lines are walked along (rows), or many of them side by side (columns). A few long lines are split among many threads: their segments
go in waves: threads find the totals of all segments of a wave, and then scan each from what comes before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.threads import get_num_threads
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor
from baracuda_kernels.ops.scan.launch_words import (
    BACKWARDS,
    CHAINS,
    CHECKPOINT,
    SIDE_BY_SIDE,
    STRIDED,
    WAVE,
    WIDEST,
    ScanForm,
    Wave,
    segment_of,
    splits,
)
from baracuda_kernels.ops.scan.rows import computed_in
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction, build
from baracuda_kernels.targets.geometry import Dim, as_words, collapse, dim_of, is_contiguous

__all__ = ["scan", "scan_backward"]

STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader
LINE = 64  # bytes that are written past the caches at once
FEWEST_COLUMNS = 8  # that are worth a vector
NARROWEST = 64  # columns of a strip, for the sake of whole lines
STRIPS = 4  # for each thread


class NativeLaunch(NamedTuple):
    function: NativeFunction
    words: Any
    tasks: int


class NativeWalk(NamedTuple):
    """The operands of a problem along its axis, in the order of the walk, and beside it."""

    elements: tuple[ElementKind, ...]
    axis: Dim
    starts: tuple[int, ...]  # where the walk begins
    first: int  # its place along the axis
    direction: int
    outer: list[Dim]


def scan(problem: ScanDescriptor) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem: bind(layouts of the operands) -> launch."""

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        if 0 in problem.shape:
            return parallel.idle
        given = [place for place, layout in enumerate(layouts) if layout is not None]
        return _launch(problem, given, _walk(problem, [layouts[place] for place in given], problem.reverse))

    return bind


def scan_backward(problem: ScanBackwardDescriptor) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The launch of a gradient: a scan in the other direction, except for that of a product."""
    is_product = problem.kind in PRODUCTS

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        if 0 in problem.shape:
            return parallel.idle
        given = [place for place, layout in enumerate(layouts) if layout is not None]
        walk = _walk(problem, [layouts[place] for place in given], problem.reverse is is_product)
        return _launch_product(problem, given, walk) if is_product else _launch(problem, given, walk)

    return bind


def _walk(problem: ScanDescriptor, layouts: Sequence[Any], is_back: bool) -> NativeWalk:
    strides = [layout.stride for layout in layouts]
    axis = dim_of(problem.shape, strides, problem.axis)
    outer = collapse(problem.shape, strides, [problem.axis])
    elements = tuple(layout.element for layout in layouts)
    if not is_back:
        return NativeWalk(elements, axis, (0,) * len(layouts), 0, 1, outer)
    last = axis.extent - 1
    back = Dim(axis.extent, tuple(-step for step in axis.steps))
    return NativeWalk(elements, back, tuple(last * step for step in axis.steps), last, -1, outer)


def _launch(problem: ScanDescriptor, given: Sequence[int], walk: NativeWalk) -> parallel.Launch:
    work = math.prod(problem.shape) * sum(element.size for element in walk.elements)
    beside = next((dim for dim in walk.outer if is_contiguous(dim) and dim.extent >= FEWEST_COLUMNS), None)
    waves: list[tuple[NativeLaunch, NativeLaunch]] = []
    if beside is not None and any(abs(step) != 1 for step in walk.axis.steps):
        whole = [_columns(problem, walk, beside, work)] * 2
    else:
        streams = (False, _may_stream(problem, walk, work))
        whole = [_rows(problem, walk, ScanForm.ROWS, work, each) for each in streams]
        if splits(problem):
            totals = _rows(problem, walk, ScanForm.TOTALS, work, streams=False)
            waves = [(totals, _rows(problem, walk, ScanForm.SEGMENTS, work, each)) for each in streams]
    outputs = given[-_outputs(problem) :]

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        pointers = (*(addresses[place] for place in given), workspace)
        aligned = all(addresses[place] % LINE == 0 for place in outputs)
        if waves and 2 * problem.lines < get_num_threads():  # every element is walked past twice
            _run_waves(waves[aligned], problem, pointers)
        else:
            _run(whole[aligned], work, pointers)

    return launch


def _run_waves(calls: Sequence[NativeLaunch], problem: ScanDescriptor, pointers: tuple[int, ...]) -> None:
    segments = -(-problem.extent // segment_of(problem))
    for line in range(problem.lines):
        for first in range(0, segments, WAVE):
            count = min(WAVE, segments - first)
            for call in calls:
                counter = (c_int64 * Wave.WORDS)()
                counter[Wave.LINE], counter[Wave.FIRST], counter[Wave.COUNT] = line, first, count
                parallel.launch(call.function, addressof(call.words), count, pointers, counter)


def _outputs(problem: ScanDescriptor) -> int:
    return 2 if problem.has_indices and not isinstance(problem, ScanBackwardDescriptor) else 1


def _may_stream(problem: ScanDescriptor, walk: NativeWalk, work: int) -> bool:
    """Large results whose vectors are all whole lines go past the caches."""
    if work <= STREAM_BYTES:
        return False
    for place in range(len(walk.elements))[-_outputs(problem) :]:
        size, step = walk.elements[place].size, walk.axis.steps[place]
        begins = walk.starts[place] + 1 if step == -1 else walk.starts[place]
        if abs(step) != 1 or begins * size % LINE or any(dim.steps[place] * size % LINE for dim in walk.outer):
            return False
    return True


def _function(problem: ScanDescriptor, walk: NativeWalk, form: str, lies: str, rank: int, streams: bool) -> NativeFunction:
    from baracuda_kernels.ops.scan.body import body

    direction = "backward" if isinstance(problem, ScanBackwardDescriptor) else "forward"
    static = (direction, problem.kind.value, problem.element.value, str(problem.has_indices), form, lies, str(rank), str(streams))
    return build(body, len(walk.elements) + 1, *static)


def _call(
    problem: ScanDescriptor,
    walk: NativeWalk,
    function: NativeFunction,
    outer: Sequence[Dim],
    items: int,
    work: int,
    *columns: int,
) -> NativeLaunch:
    per_task = parallel.per_task(items, work // items)
    tasks, segment = -(-items // per_task), segment_of(problem)
    dims = [word for dim in outer for word in (dim.extent, *dim.steps)]
    segments = -(-problem.extent // segment)
    words = [tasks, per_task, items, problem.extent, segment, segments, walk.first, walk.direction, *columns]
    return NativeLaunch(function, as_words([*words, *walk.axis.steps, *walk.starts, *dims]), tasks)


def _rows(problem: ScanDescriptor, walk: NativeWalk, form: str, work: int, streams: bool) -> NativeLaunch:
    lies = "".join({1: SIDE_BY_SIDE, -1: BACKWARDS}.get(step, STRIDED) for step in walk.axis.steps)
    function = _function(problem, walk, form, lies, len(walk.outer), streams)
    together = CHAINS if problem.kind in PRODUCTS else 1
    return _call(problem, walk, function, walk.outer, -(-problem.lines // together), work, problem.lines, 0, 0)


def _columns(problem: ScanDescriptor, walk: NativeWalk, beside: Dim, work: int) -> NativeLaunch:
    """The launch of columns, in strips that are wide, for memory bandwidth, but enough for all threads."""
    outer = [dim for dim in walk.outer if dim is not beside]
    planes, strip = math.prod(dim.extent for dim in outer), WIDEST
    while strip > NARROWEST and planes * -(-beside.extent // strip) < STRIPS * get_num_threads():
        strip //= 2
    strips = -(-beside.extent // strip)
    function = _function(problem, walk, ScanForm.COLUMNS, "", len(outer), streams=False)
    return _call(problem, walk, function, outer, planes * strips, work, beside.extent, strip, strips)


def _launch_product(problem: ScanBackwardDescriptor, given: Sequence[int], walk: NativeWalk) -> parallel.Launch:
    """As many lines at a time as fit into a vector side by side, and the others one by one."""
    from baracuda_kernels.ops.scan.product import body

    lanes = LINE // computed_in(problem).size
    beside = next((dim for dim in walk.outer if is_contiguous(dim) and dim.extent >= lanes), None)
    outer = [dim for dim in walk.outer if dim is not beside]
    work = math.prod(problem.shape) * sum(element.size for element in walk.elements)
    calls: list[NativeLaunch] = []

    def add(width: int, extent: int, before: int) -> None:
        """So many vectors of lines beside each other, from a line on."""
        dims = outer if beside is None else [*outer, Dim(extent, tuple(width * step for step in beside.steps))]
        items = math.prod(dim.extent for dim in dims)
        function = build(body, len(walk.elements) + 1, problem.kind.value, problem.element.value, str(width), str(len(dims)))
        moved = walk._replace(starts=tuple(start + before * step for start, step in zip(walk.starts, beside_steps, strict=True)))
        kept = before * math.prod(dim.extent for dim in outer) * -(-problem.extent // CHECKPOINT)
        calls.append(_call(problem, moved, function, dims, items, work, kept, 0, 0))

    beside_steps = (0,) * len(given) if beside is None else beside.steps
    whole = 0 if beside is None else beside.extent // lanes
    if whole:
        add(lanes, whole, 0)
    if beside is None or beside.extent % lanes:
        add(1, 1 if beside is None else beside.extent % lanes, whole * lanes)

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        pointers = (*(addresses[place] for place in given), workspace)
        for call in calls:
            _run(call, work, pointers)

    return launch


def _run(call: NativeLaunch, work: int, pointers: tuple[int, ...]) -> None:
    if call.tasks > 1 and work > parallel.SERIAL_BYTES:
        parallel.launch(call.function, addressof(call.words), call.tasks, pointers)
    else:
        call.function(addressof(call.words), None, *pointers)
