"""Softmax and log-softmax on the CPU, forward and backward.

All four are one scheme over a row: (forward) its maximum, then the sum of a term, then a value for every element. Two bodies
serve every layout. Rows: the axis is walked sixteen elements at a time, side by side or strided. Columns: another axis lies
side by side in all operands, and sixteen rows at a time are computed, one per lane. A third body splits a few very long
rows among threads. All of them sum in the canonical order, so all of them give the same bits.
"""

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

from baracuda_kernels.lang import parallel
from baracuda_kernels.lang.canonical import BLOCK, LANES, segment_length
from baracuda_kernels.lang.geometry import Dim, as_words, collapse, dim_of, dim_words, is_contiguous
from baracuda_kernels.lang.native import NativeFunction, build

__all__ = ["backward", "forward"]

# The words of a launch; then come the axis's steps and the dims that lead to a row (or to the first of a strip of columns).
TASKS, PER_TASK, ITEMS, EXTENT, SEGMENT, STREAM, COLUMNS, STRIP, STEPS = range(9)
# The words of a split launch's counter; then come the segments' maxima and sums.
DONE, FIRST_ROW, ROWS, PARTS = 1, 2, 3, 4

BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}
STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader
WIDEST = 32  # columns in a strip
AHEAD = 12  # rows of a strip to ask for before they are read: the hardware does not follow such strides
SPLIT_EXTENT = 1 << 17  # shorter rows are not worth splitting
SPLIT_PARTS = 256  # segments in one split launch: 4 KB of partial results


def _room(direction: str, element: str) -> int:
    """How many numbers of each input a body keeps on its stack: 256 KB in all."""
    return (32768 if element == "f64" else 65536) // (1 if direction == "forward" else 2)


# --- formulas --------------------------------------------------------------------------------------------------------------


class Formulas(NamedTuple):
    """What distinguishes the four operations. Inputs are `a` (x or dy) and `b` (y, backward only)."""

    has_top: bool  # the row's maximum is needed
    keeps: bool  # the summed term is kept for the value
    term: Callable  # a, top -> the summed term (forward)
    add: Callable  # accumulator, a, b, top -> accumulator
    scale: Callable  # the row's sum in f64 -> what every value needs
    value: Callable  # a, b, top, scale -> result


def _formulas(direction: str, kind: str, element: str) -> Formulas:
    from baracuda_kernels.lang.simd import fma, inline, widened
    from baracuda_kernels.lang.vmath import exp, exp_nonpositive

    real = widened(element)

    @inline
    def term(a, top):
        return exp_nonpositive(a - top)

    formulas = {
        ("forward", "softmax"): (
            True,
            True,
            lambda acc, a, b, top: acc + term(a, top),
            lambda total: real(1.0 / total),
            lambda a, b, top, scale: term(a, top) * scale,
        ),
        ("forward", "log_softmax"): (
            True,
            False,
            lambda acc, a, b, top: acc + term(a, top),
            lambda total: real(math.log(total)),
            lambda a, b, top, scale: (a - top) - scale,
        ),
        ("backward", "softmax"): (
            False,
            False,
            lambda acc, a, b, top: fma(a, b, acc),
            lambda total: real(total),
            lambda a, b, top, scale: b * (a - scale),
        ),
        ("backward", "log_softmax"): (
            False,
            False,
            lambda acc, a, b, top: acc + a,
            lambda total: real(total),
            lambda a, b, top, scale: a - exp(b) * scale,
        ),
    }
    has_top, keeps, *functions = formulas[direction, kind]
    return Formulas(has_top, keeps, term, *(inline(function) for function in functions))


# --- rows ------------------------------------------------------------------------------------------------------------------


class RowParts(NamedTuple):
    maximum: Callable
    segment_sum: Callable
    kept_sum: Callable
    write: Callable
    write_stream: Callable
    write_kept: Callable
    write_kept_stream: Callable


def _row_parts(direction: str, element: str, formulas: Formulas, contiguous: bool) -> RowParts:
    from baracuda_kernels.lang import simd

    real, inline = simd.widened(element), simd.inline
    load, load_part, store, store_part, stream_store = simd.CONTIGUOUS if contiguous else simd.STRIDED
    add, value, term, minus_infinity = formulas.add, formulas.value, formulas.term, -math.inf
    zero = real(0)
    forward = direction == "forward"

    @inline
    def maximum(x, at, step, count):
        a = simd.spread(real(minus_infinity))
        b, c, d = a, a, a
        i = 0
        if contiguous:
            while i + 4 * LANES <= count:
                a = simd.maximum(a, load(x, at + i, 1))
                b = simd.maximum(b, load(x, at + i + LANES, 1))
                c = simd.maximum(c, load(x, at + i + 2 * LANES, 1))
                d = simd.maximum(d, load(x, at + i + 3 * LANES, 1))
                i += 4 * LANES
        while i + LANES <= count:
            a = simd.maximum(a, load(x, at + i * step, step))
            i += LANES
        if i < count:
            v = load_part(x, at + i * step, step, count - i)
            a = simd.maximum(a, simd.where(simd.first_lanes(count - i), v, a))
        return simd.largest(simd.maximum(simd.maximum(a, b), simd.maximum(c, d)))

    @inline
    def block_sum(a, at_a, step_a, b, at_b, step_b, count, top, ahead):
        acc = simd.spread(zero)
        i = 0
        while i + LANES <= count:
            acc = add(acc, load(a, at_a + i * step_a, step_a), load(b, at_b + i * step_b, step_b), top)
            if contiguous and forward:
                simd.prefetch(a, at_a + i + ahead)
            i += LANES
        if i < count:
            rest = count - i
            u, v = load_part(a, at_a + i * step_a, step_a, rest), load_part(b, at_b + i * step_b, step_b, rest)
            acc = simd.where(simd.first_lanes(rest), add(acc, u, v, top), acc)
        return float(simd.tree_sum(acc))

    @inline
    def segment_sum(a, at_a, step_a, b, at_b, step_b, count, top, ahead):
        total = 0.0
        i = 0
        while i < count:
            size = min(BLOCK, count - i)
            total += block_sum(a, at_a + i * step_a, step_a, b, at_b + i * step_b, step_b, size, top, ahead)
            i += BLOCK
        return total

    @inline
    def kept_block(a, at, step, count, top, kept, place, ahead):
        acc = simd.spread(zero)
        i = 0
        while i + LANES <= count:
            v = term(load(a, at + i * step, step), top)
            simd.store(kept, place + i, 1, v)
            acc = acc + v
            if contiguous:
                simd.prefetch(a, at + i + ahead)
            i += LANES
        if i < count:
            rest = count - i
            v = term(load_part(a, at + i * step, step, rest), top)
            simd.store(kept, place + i, 1, v)
            acc = simd.where(simd.first_lanes(rest), acc + v, acc)
        return float(simd.tree_sum(acc))

    @inline
    def kept_sum(a, at, step, count, top, kept, ahead):
        total = 0.0
        i = 0
        while i < count:
            total += kept_block(a, at + i * step, step, min(BLOCK, count - i), top, kept, i, ahead)
            i += BLOCK
        return total

    def writer(put):
        @inline
        def write(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, count, top, scale, ahead_a, ahead_b):
            i = 0
            while i + LANES <= count:
                u, v = load(a, at_a + i * step_a, step_a), load(b, at_b + i * step_b, step_b)
                put(y, at_y + i * step_y, step_y, value(u, v, top, scale))
                if contiguous and not forward:
                    simd.prefetch(a, at_a + i + ahead_a)
                    simd.prefetch(b, at_b + i + ahead_b)
                i += LANES
            if i < count:
                rest = count - i
                u, v = load_part(a, at_a + i * step_a, step_a, rest), load_part(b, at_b + i * step_b, step_b, rest)
                store_part(y, at_y + i * step_y, step_y, value(u, v, top, scale), rest)

        return write

    def kept_writer(put):
        @inline
        def write_kept(kept, y, at, step, count, scale):
            i = 0
            while i + LANES <= count:
                put(y, at + i * step, step, simd.load(kept, i, 1) * scale)
                i += LANES
            if i < count:
                store_part(y, at + i * step, step, simd.load(kept, i, 1) * scale, count - i)

        return write_kept

    return RowParts(
        maximum, segment_sum, kept_sum, writer(store), writer(stream_store), kept_writer(store), kept_writer(stream_store)
    )


def rows_body(direction: str, kind: str, element: str, access: str) -> tuple[Callable, tuple]:
    """Whole rows, a few to a task."""
    from baracuda_kernels.lang import simd, tasks

    formulas, inline, int64 = _formulas(direction, kind, element), simd.inline, simd.int64
    parts = _row_parts(direction, element, formulas, access == "contiguous")
    maximum, segment_sum, kept_sum, write, write_stream, write_kept, write_kept_stream = parts
    has_top, scale_of, real, room = formulas.has_top, formulas.scale, simd.widened(element), _room(direction, element)
    keeps, padded, zero = formulas.keeps, room + LANES, real(0)
    operands = 2 if direction == "forward" else 3
    dims = STEPS + operands

    @inline
    def row_sum(a, at_a, step_a, b, at_b, step_b, count, segment, top, ahead):
        total = 0.0
        i = 0
        while i < count:
            size = min(segment, count - i)
            total += segment_sum(a, at_a + i * step_a, step_a, b, at_b + i * step_b, step_b, size, top, ahead)
            i += segment
        return total

    @inline
    def rows(words, counter, a, b, y):
        extent, segment = words[EXTENT], words[SEGMENT]
        step_a, step_b, step_y = words[STEPS], words[STEPS + operands - 2], words[STEPS + operands - 1]
        stream = words[STREAM] != 0 and tasks.is_aligned(y)
        kept = tasks.scratch(real, padded)
        here, following = tasks.scratch(int64, operands), tasks.scratch(int64, operands)
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            row = task * words[PER_TASK]
            end = min(words[ITEMS], row + words[PER_TASK])
            tasks.locate(words, dims, operands, row, following)
            while row < end:
                at_a, at_b, at_y = following[0], following[operands - 2], following[operands - 1]
                row += 1
                tasks.locate(words, dims, operands, row, following)
                ahead_a, ahead_b = following[0] - at_a, following[operands - 2] - at_b
                top = maximum(a, at_a, step_a, extent) if has_top else zero
                if keeps and extent <= room:
                    scale = scale_of(kept_sum(a, at_a, step_a, extent, top, kept, ahead_a))
                    if stream:
                        write_kept_stream(kept, y, at_y, step_y, extent, scale)
                    else:
                        write_kept(kept, y, at_y, step_y, extent, scale)
                else:
                    scale = scale_of(row_sum(a, at_a, step_a, b, at_b, step_b, extent, segment, top, ahead_a))
                    if stream:
                        write_stream(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, extent, top, scale, ahead_a, ahead_b)
                    else:
                        write(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, extent, top, scale, ahead_a, ahead_b)
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()

    return _with_operands(rows, direction, element)


def split_body(direction: str, kind: str, element: str, access: str) -> tuple[Callable, tuple]:
    """A few long rows: every phase is spread over the segments of all rows, and waits for the phase before."""
    from baracuda_kernels.lang import simd, tasks

    formulas, inline, int64 = _formulas(direction, kind, element), simd.inline, simd.int64
    parts = _row_parts(direction, element, formulas, access == "contiguous")
    maximum, segment_sum, write = parts.maximum, parts.segment_sum, parts.write
    has_top, scale_of, real = formulas.has_top, formulas.scale, simd.widened(element)
    operands = 2 if direction == "forward" else 3
    dims, first_phase, minus_infinity = STEPS + operands, 0 if has_top else 1, -math.inf

    @inline
    def split(words, counter, a, b, y):
        extent, segment = words[EXTENT], words[SEGMENT]
        step_a, step_b, step_y = words[STEPS], words[STEPS + operands - 2], words[STEPS + operands - 1]
        segments = (extent + segment - 1) // segment
        count = counter[ROWS] * segments
        tops, sums = tasks.as_f64(counter, PARTS), tasks.as_f64(counter, PARTS + count)
        here = tasks.scratch(int64, operands)
        task = tasks.claim(counter, -1)
        while task < (3 - first_phase) * count:
            phase, part = task // count, task % count
            row, first = part // segments, part % segments * segment
            size = min(segment, extent - first)
            tasks.wait_for(counter, DONE, phase * count)
            phase += first_phase
            tasks.locate(words, dims, operands, counter[FIRST_ROW] + row, here)
            at_a = here[0] + first * step_a
            at_b = here[operands - 2] + first * step_b
            at_y = here[operands - 1] + first * step_y
            if phase == 0:
                tops[part] = maximum(a, at_a, step_a, size)
            else:
                highest, total = minus_infinity, 0.0
                for other in range(row * segments, (row + 1) * segments):
                    highest = max(highest, tops[other])
                    total += sums[other]
                top = real(highest)
                if phase == 1:
                    sums[part] = segment_sum(a, at_a, step_a, b, at_b, step_b, size, top, 0)
                else:
                    write(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, size, top, scale_of(total), 0, 0)
            tasks.finish(counter, DONE)
            task = tasks.claim(counter, task)

    return _with_operands(split, direction, element)


def _with_operands(core: Callable, direction: str, element: str) -> tuple[Callable, tuple]:
    from baracuda_kernels.lang import simd, tasks

    pointer = simd.pointer_to(element)

    def forward_body(words, counter, x, y):
        core(words, counter, x, x, y)

    def backward_body(words, counter, dy, y, dx):
        core(words, counter, dy, y, dx)

    if direction == "forward":
        return forward_body, (tasks.words, tasks.words, pointer, pointer)
    return backward_body, (tasks.words, tasks.words, pointer, pointer, pointer)


# --- columns ---------------------------------------------------------------------------------------------------------------


class ColumnParts(NamedTuple):
    read: Callable
    add_terms: Callable
    end_block: Callable
    write: Callable
    write_stream: Callable


def _column_parts(direction: str, element: str, formulas: Formulas) -> ColumnParts:
    from baracuda_kernels.lang import columns, simd

    forward, keeps, term, add, value = direction == "forward", formulas.keeps, formulas.term, formulas.add, formulas.value
    inline, load, store, zero, square = simd.inline, simd.load, simd.store, simd.widened(element)(0), LANES * LANES

    @inline
    def take(u, v, place, i, c, tile_a, tile_b, tops, acc):
        store(tile_a, place, 1, u)
        if forward:
            store(tops, c * LANES, 1, simd.maximum(load(tops, c * LANES, 1), u))
        else:
            slot = c * square + i % LANES * LANES
            store(tile_b, place, 1, v)
            store(acc, slot, 1, add(load(acc, slot, 1), u, v, u))

    @inline
    def read(a, at_a, step_a, b, at_b, step_b, rows, width, pitch, tile_a, tile_b, tops, acc):
        """The first pass over a tile: keeps it, and takes the maximum (forward) or the sum (backward)."""
        full, rest = width // LANES, width % LANES
        for i in range(rows):
            from_a, from_b = at_a + i * step_a, at_b + i * step_b
            for c in range(full):
                lane = c * LANES
                simd.prefetch(a, from_a + lane + AHEAD * step_a)
                if not forward:
                    simd.prefetch(b, from_b + lane + AHEAD * step_b)
                u, v = load(a, from_a + lane, 1), load(b, from_b + lane, 1)
                take(u, v, (c * pitch + i) * LANES, i, c, tile_a, tile_b, tops, acc)
            if rest > 0:
                lane = full * LANES
                u, v = simd.load_part(a, from_a + lane, 1, rest), simd.load_part(b, from_b + lane, 1, rest)
                take(u, v, (full * pitch + i) * LANES, i, full, tile_a, tile_b, tops, acc)

    @inline
    def add_terms(tile, place, rows, top, acc, slot, a, ahead, step):
        """The second pass (forward): adds the terms of sixteen columns; `a[ahead]` is where the next tile will be read."""
        for i in range(rows):
            at, here = place + i * LANES, slot + i % LANES * LANES
            v = term(load(tile, at, 1), top)
            simd.prefetch(a, ahead + i * step)
            if keeps:
                store(tile, at, 1, v)
            store(acc, here, 1, load(acc, here, 1) + v)

    @inline
    def end_block(acc, slot, partial, lane):
        block = simd.to_f64(columns.fold(acc, slot))
        columns.clear(acc, slot, LANES, zero)
        store(partial, lane, 1, load(partial, lane, 1) + block)

    def writer(put):
        @inline
        def write(tile_a, tile_b, pitch, y, at, step, rows, width, tops, scales, kept):
            for i in range(rows):
                for c in range(columns.vectors(width)):
                    place, lane = (c * pitch + i) * LANES, c * LANES
                    u, top, scale = load(tile_a, place, 1), load(tops, lane, 1), load(scales, lane, 1)
                    v = u * scale if kept else value(u, load(tile_b, place, 1), top, scale)
                    if width - lane >= LANES:
                        put(y, at + i * step + lane, 1, v)
                    else:
                        simd.store_part(y, at + i * step + lane, 1, v, width - lane)

        return write

    return ColumnParts(read, add_terms, end_block, writer(simd.store), writer(simd.stream_store))


def columns_body(direction: str, kind: str, element: str) -> tuple[Callable, tuple]:
    """Strips of columns; a strip that fits is read once, a longer one in tiles, once per pass."""
    from baracuda_kernels.lang import columns, simd, tasks

    formulas, inline, int64, float64 = _formulas(direction, kind, element), simd.inline, simd.int64, simd.float64
    read, add_terms, end_block, write, write_stream = _column_parts(direction, element, formulas)
    forward, keeps, scale_of, operands = direction == "forward", formulas.keeps, formulas.scale, 2 if direction == "forward" else 3
    real, room, load, store = simd.widened(element), _room(direction, element), simd.load, simd.store
    dims, square, zero, minus_infinity = STEPS + operands, LANES * LANES, real(0), real(-math.inf)
    widest, all_squares = WIDEST, WIDEST * LANES

    @inline
    def end_tile(last, extent, segment, vectors, acc, partial, totals):
        if last % BLOCK == 0 or last == extent:
            for c in range(vectors):
                end_block(acc, c * square, partial, c * LANES)
        if last % segment == 0 or last == extent:
            for c in range(vectors):
                store(totals, c * LANES, 1, load(totals, c * LANES, 1) + load(partial, c * LANES, 1))
            columns.clear(partial, 0, vectors, 0.0)

    @inline
    def body(words, counter, a, b, y):
        extent, segment, strip, all_columns = words[EXTENT], words[SEGMENT], words[STRIP], words[COLUMNS]
        step_a, step_b, step_y = words[STEPS], words[STEPS + operands - 2], words[STEPS + operands - 1]
        stream = words[STREAM] != 0 and tasks.is_aligned(y)
        tile_a = tasks.scratch(real, room)
        tile_b = tile_a if forward else tasks.scratch(real, room)
        tops, scales, acc = tasks.scratch(real, widest), tasks.scratch(real, widest), tasks.scratch(real, all_squares)
        partial, totals = tasks.scratch(float64, widest), tasks.scratch(float64, widest)
        here = tasks.scratch(int64, operands)
        strips, pitch = (all_columns + strip - 1) // strip, min(room // strip, BLOCK)
        single = extent <= pitch
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            for item in range(task * words[PER_TASK], min(words[ITEMS], (task + 1) * words[PER_TASK])):
                tasks.locate(words, dims, operands, (item + 1) // strips, here)
                following = here[0] + (item + 1) % strips * strip
                tasks.locate(words, dims, operands, item // strips, here)
                column = item % strips * strip
                at_a, at_b, at_y = here[0] + column, here[operands - 2] + column, here[operands - 1] + column
                width = min(strip, all_columns - column)
                vectors = columns.vectors(width)
                columns.clear(tops, 0, vectors, minus_infinity)
                columns.clear(acc, 0, vectors * LANES, zero)
                columns.clear(partial, 0, vectors, 0.0)
                columns.clear(totals, 0, vectors, 0.0)
                for first in range(0, extent, pitch):
                    rows = min(pitch, extent - first)
                    from_a, from_b = at_a + first * step_a, at_b + first * step_b
                    read(a, from_a, step_a, b, from_b, step_b, rows, width, pitch, tile_a, tile_b, tops, acc)
                    if not forward:
                        end_tile(first + rows, extent, segment, vectors, acc, partial, totals)
                if forward:
                    for first in range(0, extent, pitch):
                        rows = min(pitch, extent - first)
                        if not single:
                            columns.gather(a, at_a + first * step_a, step_a, tile_a, pitch, rows, width)
                        for c in range(vectors):
                            top, ahead = load(tops, c * LANES, 1), following + c * LANES
                            add_terms(tile_a, c * pitch * LANES, rows, top, acc, c * square, a, ahead, step_a)
                        end_tile(first + rows, extent, segment, vectors, acc, partial, totals)
                for c in range(vectors * LANES):
                    scales[c] = scale_of(totals[c])
                for first in range(0, extent, pitch):
                    rows = min(pitch, extent - first)
                    if not single:
                        columns.gather(a, at_a + first * step_a, step_a, tile_a, pitch, rows, width)
                        if not forward:
                            columns.gather(b, at_b + first * step_b, step_b, tile_b, pitch, rows, width)
                    at = at_y + first * step_y
                    if stream:
                        write_stream(tile_a, tile_b, pitch, y, at, step_y, rows, width, tops, scales, keeps and single)
                    else:
                        write(tile_a, tile_b, pitch, y, at, step_y, rows, width, tops, scales, keeps and single)
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()

    return _with_operands(body, direction, element)


# --- launchers ---------------------------------------------------------------------------------------------------------------


class Bodies(NamedTuple):
    rows: NativeFunction
    strided_rows: NativeFunction
    split: NativeFunction
    strided_split: NativeFunction
    columns: NativeFunction


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
        build(split_body, operands, *static, "contiguous"),
        build(split_body, operands, *static, "strided"),
        build(columns_body, operands, *static),
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
    """Whether results go past the caches: only large ones, and only if whatever leads to a row keeps its alignment."""
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
    if axis.extent < SPLIT_EXTENT:
        return launch
    return _split_launch(bodies.split if contiguous else bodies.strided_split, words, launch)


def _split_launch(function: NativeFunction, words: Any, whole: parallel.Launch) -> parallel.Launch:
    address, rows, segments = addressof(words), words[ITEMS], -(-words[EXTENT] // words[SEGMENT])
    group = max(1, SPLIT_PARTS // segments)
    block = c_int64 * (PARTS + 2 * group * segments)

    def launch(args: Any, workspace: Any, stream: Any, alive: Any = words) -> None:
        threads = parallel.get_num_threads()
        if threads < 2 or rows >= 2 * threads:
            whole(args, workspace, stream)
            return
        for first in range(0, rows, group):
            counter = block()
            counter[FIRST_ROW], counter[ROWS] = first, min(group, rows - first)
            parallel.launch(function, address, counter[ROWS] * segments, args.addresses, counter)

    return launch


def _columns_launch(
    function: NativeFunction, direction: str, element: str, axis: Dim, outer: list[Dim], columns: int
) -> parallel.Launch:
    line = max(LANES, 64 // BYTES[element])
    strip = WIDEST
    while strip > line and strip * axis.extent > _room(direction, element):
        strip //= 2
    if strip * axis.extent > _room(direction, element):
        strip = WIDEST
    strips = math.prod(dim.extent for dim in outer) * -(-columns // strip)
    strip_bytes = strip * axis.extent * BYTES[element] * len(axis.steps)
    per_task = parallel.per_task(strips, strip_bytes)
    count = -(-strips // per_task)
    work = strips * strip_bytes
    stream = _streams(element, work, [axis, *outer])
    segment = segment_length(axis.extent)
    numbers = [count, per_task, strips, axis.extent, segment, stream, columns, strip, *axis.steps, *dim_words(outer)]
    return parallel.launcher(function, as_words(numbers), count, work)
