"""Softmax and log-softmax on the CPU, forward and backward.

All four are one scheme over a row: (forward) its maximum, then the sum of a term, then a value for every element. Two bodies
serve every layout. Rows: the axis is walked sixteen elements at a time, contiguous or strided. Columns: another axis is
contiguous in all operands, and sixteen rows at a time are computed, one per lane. A third body splits a few very long
rows among threads. All of them sum in the canonical order, so all of them give the same bits.
"""

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

from baracuda_kernels.core.threads import get_num_threads
from baracuda_kernels.ops.softmax.bodies import EXTENT, FIRST_ROW, ITEMS, PARTS, ROWS, SEGMENT, buffer_for
from baracuda_kernels.ops.softmax.columns import WIDEST, columns_body
from baracuda_kernels.ops.softmax.rows import rows_body, split_body
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction, build
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES, segment_length
from baracuda_kernels.targets.geometry import Dim, as_words, collapse, dim_of, dim_words, is_contiguous

__all__ = ["backward", "forward"]

BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}
STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader
MANY_STRIPS = 32
SPLIT_EXTENT = 1 << 17  # shorter rows are not worth splitting
SPLIT_PARTS = 256  # segments in one split launch: 4 KB of partial results


class Bodies(NamedTuple):
    rows: NativeFunction
    strided_rows: NativeFunction
    columns: NativeFunction
    split: NativeFunction | None  # only for rows that are long enough


def forward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a forward problem: bind(layouts of x, y) -> launch."""
    return _kernel("forward", problem)


def backward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a backward problem: bind(layouts of dy, y, dx) -> launch."""
    return _kernel("backward", problem)


def _kernel(direction: str, problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    operands = 2 if direction == "forward" else 3
    element, shape, axis = problem.element.value, tuple(problem.input_shape), problem.softmax_axis
    static = (direction, problem.kind.value, element)
    bodies = Bodies(
        build(rows_body, operands, *static, "contiguous"),
        build(rows_body, operands, *static, "strided"),
        build(columns_body, operands, *static),
        build(split_body, operands, *static, "contiguous") if problem.extent >= SPLIT_EXTENT else None,
    )

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        if 0 in shape:
            return parallel.idle
        strides = [layout.stride for layout in layouts]
        return _choose(bodies, direction, element, dim_of(shape, strides, axis), collapse(shape, strides, [axis]))

    return bind


def _choose(bodies: Bodies, direction: str, element: str, axis: Dim, outer: list[Dim]) -> parallel.Launch:
    beside = next((dim for dim in outer if is_contiguous(dim)), None)
    if beside and beside.extent >= LANES // 2 and not is_contiguous(axis):
        outer.remove(beside)
        return _columns_launch(bodies.columns, direction, element, axis, outer, beside.extent)
    return _rows_launch(bodies, element, axis, outer)


def _streams(element: str, work_bytes: int, dims: Sequence[Dim]) -> bool:
    """Whether results are written with non-temporal stores: only large ones, and only if whatever leads to a row keeps its alignment."""
    return work_bytes > STREAM_BYTES and all(dim.steps[-1] * BYTES[element] % 64 == 0 for dim in dims)


def _rows_launch(bodies: Bodies, element: str, axis: Dim, outer: list[Dim]) -> parallel.Launch:
    rows = math.prod(dim.extent for dim in outer)
    row_bytes = axis.extent * BYTES[element] * len(axis.steps)
    per_task = parallel.per_task(rows, row_bytes)
    count = -(-rows // per_task)
    contiguous = is_contiguous(axis)
    stream = contiguous and _streams(element, rows * row_bytes, outer)
    segment = segment_length(axis.extent)
    words = as_words([count, per_task, rows, axis.extent, segment, stream, 0, 0, *axis.steps, *dim_words(outer)])
    launch = parallel.launcher(bodies.rows if contiguous else bodies.strided_rows, words, count, rows * row_bytes)
    return launch if bodies.split is None or not contiguous else _split_launch(bodies.split, words, launch)


def _split_launch(function: NativeFunction, words: Any, whole: parallel.Launch) -> parallel.Launch:
    address, rows, segments = addressof(words), words[ITEMS], -(-words[EXTENT] // words[SEGMENT])
    group = max(1, SPLIT_PARTS // segments)
    block = c_int64 * (PARTS + 2 * group * segments)

    def launch(addresses: tuple[int, ...], workspace: Any, stream: Any, alive: Any = words) -> None:
        threads = get_num_threads()
        if threads < 2 or rows >= 2 * threads:
            whole(addresses, workspace, stream)
            return
        for first in range(0, rows, group):
            counter = block()
            counter[FIRST_ROW], counter[ROWS] = first, min(group, rows - first)
            parallel.launch(function, address, counter[ROWS] * segments, addresses, counter)

    return launch


def _columns_launch(
    function: NativeFunction, direction: str, element: str, axis: Dim, outer: list[Dim], columns: int
) -> parallel.Launch:
    strip = _strip(direction, element, axis.extent, columns, math.prod(dim.extent for dim in outer))
    strips = math.prod(dim.extent for dim in outer) * -(-columns // strip)
    strip_bytes = strip * axis.extent * BYTES[element] * len(axis.steps)
    per_task = parallel.per_task(strips, strip_bytes)
    count = -(-strips // per_task)
    work = strips * strip_bytes
    stream = _streams(element, work, [axis, *outer])
    segment = segment_length(axis.extent)
    numbers = [count, per_task, strips, axis.extent, segment, stream, columns, strip, *axis.steps, *dim_words(outer)]
    return parallel.launcher(function, as_words(numbers), count, work)


def _strip(direction: str, element: str, extent: int, columns: int, planes: int) -> int:
    """How many columns are worked on at once: as many as fit on the stack for one reading, but enough strips to share out."""
    narrowest = max(LANES, 64 // BYTES[element])
    strip = WIDEST
    while strip > narrowest and strip * extent > buffer_for(direction, element):
        strip //= 2
    if strip * extent > buffer_for(direction, element):
        strip = WIDEST
    while strip > narrowest and planes * -(-columns // strip) < MANY_STRIPS:
        strip //= 2
    return strip
