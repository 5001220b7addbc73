"""The body for a softmax axis that is not the innermost: sixteen adjacent columns, one per lane."""

import math
from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.ops.softmax.bodies import (
    COLUMNS,
    EXTENT,
    ITEMS,
    PER_TASK,
    SEGMENT,
    STEPS,
    STREAM,
    STRIP,
    TASKS,
    SoftmaxFormulas,
    buffer_for,
    formulas_of,
    with_operands,
)  # fmt: skip
from baracuda_kernels.targets.cpu.vectors.summation_order import BLOCK, LANES

WIDEST = 64  # columns in a strip
AHEAD = 12  # rows of a strip to ask for before they are read: the hardware does not follow such strides


class ColumnParts(NamedTuple):
    read: Callable
    add_terms: Callable
    end_block: Callable
    write: Callable
    write_stream: Callable


def _column_parts(direction: str, element: str, formulas: SoftmaxFormulas) -> ColumnParts:
    from baracuda_kernels.targets.cpu.vectors import columns, simd

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
    def add_terms(tile, place, rows, top, acc, slot):
        """The second pass (forward): adds the terms of sixteen columns."""
        for i in range(rows):
            at, here = place + i * LANES, slot + i % LANES * LANES
            v = term(load(tile, at, 1), top)
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
    from baracuda_kernels.targets.cpu.vectors import columns, simd, tasks

    formulas, inline, int64, float64 = formulas_of(direction, kind, element), simd.inline, simd.int64, simd.float64
    read, add_terms, end_block, write, write_stream = _column_parts(direction, element, formulas)
    forward, keeps, scale_of = direction == "forward", formulas.keeps, formulas.scale
    operands = 2 if forward else 3
    real, buffer, load, store = simd.widened(element), buffer_for(direction, element), simd.load, simd.store
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
        tile_a = tasks.scratch(real, buffer)
        tile_b = tile_a if forward else tasks.scratch(real, buffer)
        tops, scales, acc = tasks.scratch(real, widest), tasks.scratch(real, widest), tasks.scratch(real, all_squares)
        partial, totals = tasks.scratch(float64, widest), tasks.scratch(float64, widest)
        here = tasks.scratch(int64, operands)
        strips, pitch = (all_columns + strip - 1) // strip, min(buffer // strip, BLOCK)
        single = extent <= pitch
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            for item in range(task * words[PER_TASK], min(words[ITEMS], (task + 1) * words[PER_TASK])):
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
                            add_terms(tile_a, c * pitch * LANES, rows, load(tops, c * LANES, 1), acc, c * square)
                        end_tile(first + rows, extent, segment, vectors, acc, partial, totals)
                for c in range(vectors):
                    store(scales, c * LANES, 1, scale_of(load(totals, c * LANES, 1)))
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

    return with_operands(body, direction, element)
