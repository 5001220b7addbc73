"""Bodies that walk along rows of the softmax axis, sixteen elements at a time, contiguous or strided."""

import math
from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.ops.softmax.bodies import (
    DONE,
    EXTENT,
    FIRST_ROW,
    ITEMS,
    PARTS,
    PER_TASK,
    ROWS,
    SEGMENT,
    STEPS,
    STREAM,
    TASKS,
    SoftmaxFormulas,
    buffer_for,
    formulas_of,
    with_operands,
)  # fmt: skip
from baracuda_kernels.targets.cpu.vectors.summation_order import BLOCK, LANES


class RowParts(NamedTuple):
    short: Callable
    maximum: Callable
    segment_sum: Callable
    kept_sum: Callable
    write: Callable
    write_stream: Callable
    write_kept: Callable
    write_kept_stream: Callable


def _row_parts(direction: str, element: str, formulas: SoftmaxFormulas, contiguous: bool) -> RowParts:
    from baracuda_kernels.targets.cpu.vectors import simd

    real, inline = simd.widened(element), simd.inline
    load, load_part, store, store_part, stream_store = simd.CONTIGUOUS if contiguous else simd.STRIDED
    add, value, term, minus_infinity = formulas.add, formulas.value, formulas.term, -math.inf
    zero, scale_of = real(0), formulas.scale_one
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
    def short(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, count):
        """A row that fits one vector."""
        inside = simd.first_lanes(count)
        u, v = load_part(a, at_a, step_a, count), load_part(b, at_b, step_b, count)
        top = zero
        if forward:
            top = simd.largest(simd.maximum(simd.spread(real(minus_infinity)), simd.where(inside, u, real(minus_infinity))))
        acc = simd.where(inside, add(simd.spread(zero), u, v, top), zero)
        store_part(y, at_y, step_y, value(u, v, top, scale_of(simd.float64(simd.tree_sum(acc)))), count)

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
        return simd.float64(simd.tree_sum(acc))

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
        return simd.float64(simd.tree_sum(acc))

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

    writers = writer(store), writer(stream_store), kept_writer(store), kept_writer(stream_store)
    return RowParts(short, maximum, segment_sum, kept_sum, *writers)


def rows_body(direction: str, kind: str, element: str, access: str) -> tuple[Callable, tuple]:
    """Whole rows, a few to a task."""
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    formulas, inline, int64 = formulas_of(direction, kind, element), simd.inline, simd.int64
    parts = _row_parts(direction, element, formulas, access == "contiguous")
    short, maximum, segment_sum, kept_sum, write, write_stream, write_kept, write_kept_stream = parts
    has_top, scale_of, real, buffer = formulas.has_top, formulas.scale_one, simd.widened(element), buffer_for(direction, element)
    keeps, padded, zero = formulas.keeps, buffer + LANES, real(0)
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
        terms = tasks.scratch(real, padded)
        kept, early = keeps and extent <= buffer, has_top and LANES < extent <= buffer
        following = tasks.scratch(int64, operands)
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            row = task * words[PER_TASK]
            end = min(words[ITEMS], row + words[PER_TASK])
            tasks.locate(words, dims, operands, row, following)
            top = maximum(a, following[0], step_a, extent) if early else zero
            while row < end:
                at_a, at_b, at_y = following[0], following[operands - 2], following[operands - 1]
                row += 1
                tasks.locate(words, dims, operands, row, following)
                ahead_a, ahead_b = following[0] - at_a, following[operands - 2] - at_b
                if extent <= LANES:
                    short(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, extent)
                    continue
                if has_top and not early:
                    top = maximum(a, at_a, step_a, extent)
                if kept:
                    total = kept_sum(a, at_a, step_a, extent, top, terms, ahead_a)
                else:
                    total = row_sum(a, at_a, step_a, b, at_b, step_b, extent, segment, top, ahead_a)
                # The next row's maximum fills the time that the sum takes to come out of its last additions.
                next_top = maximum(a, following[0], step_a, extent) if early and row < end else top
                scale = scale_of(total)
                if kept and stream:
                    write_kept_stream(terms, y, at_y, step_y, extent, scale)
                elif kept:
                    write_kept(terms, y, at_y, step_y, extent, scale)
                elif stream:
                    write_stream(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, extent, top, scale, ahead_a, ahead_b)
                else:
                    write(a, at_a, step_a, b, at_b, step_b, y, at_y, step_y, extent, top, scale, ahead_a, ahead_b)
                top = next_top
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()

    return with_operands(rows, direction, element)


def split_body(direction: str, kind: str, element: str, access: str) -> tuple[Callable, tuple]:
    """A few long rows: every phase is spread over the segments of all rows, and waits for the phase before."""
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    formulas, inline, int64 = formulas_of(direction, kind, element), simd.inline, simd.int64
    parts = _row_parts(direction, element, formulas, access == "contiguous")
    maximum, segment_sum, write = parts.maximum, parts.segment_sum, parts.write
    has_top, scale_of, real = formulas.has_top, formulas.scale_one, simd.widened(element)
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

    return with_operands(split, direction, element)
