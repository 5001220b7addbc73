"""RMSNorm on the CPU: one pass over memory each way.

A row is read once from memory and a second time from the cache. Rows that are contiguous are worked on in place; all others
pass block by block through tiles on the stack, so every layout is computed in the same order and gives the same bits.
The backward walks its rows in groups and keeps each group's share of dgamma in the workspace; a second phase adds the groups.
"""

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from typing import Any

from baracuda_kernels.ops.normalization.rms_norm.geometry import (
    DONE,
    EPS,
    EXTENT,
    GROUPS,
    INNER,
    PER_TASK,
    PITCH,
    ROWS,
    ROWS_AT,
    STEP_DGAMMA,
    STREAM,
    TASKS,
    bits,
    geometry,
    launch_words,
    streams,
)
from baracuda_kernels.ops.normalization.rms_norm.groups import group_count, partial_pitch, rows_per_group
from baracuda_kernels.targets.cpu.float16 import in_turn
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction, build
from baracuda_kernels.targets.cpu.vectors.summation_order import BLOCK, LANES

__all__ = ["backward", "forward"]

PAIR = 2 * LANES  # elements that are written at a time
RUN = 512  # elements summed in f32 before f64 takes over: few, since the roundings of equal numbers all go one way
NARROW = 8  # rows shorter than this are computed in f64: with so few elements the two terms of dx cancel
COLUMNS = 1024  # of dgamma, summed by one task
TINY, HUGE = 1e-30, 1e38  # sums of squares in f32 that are out of this range are taken again in f64


# --- parts of both bodies ----------------------------------------------------------------------------------------------------


def _stage() -> tuple[Callable, Callable]:
    """Moves a block of a row with any strides into a tile, widened, and back."""
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    inline = simd.inline

    @inline
    def fetch(source, base, words, dims, first, count, tile, here):
        step = words[dims + 2 * words[dims]]
        done = 0
        while done < count:
            tasks.locate(words, dims, 1, first + done, here)
            extent = words[dims + 2 * words[dims] - 1]
            run = min(extent - (first + done) % extent, count - done)
            for i in range(run):
                simd.store_one(tile, done + i, simd.load_one(source, base + here[0] + i * step))
            done += run

    @inline
    def scatter(tile, target, base, words, dims, first, count, here):
        step = words[dims + 2 * words[dims]]
        done = 0
        while done < count:
            tasks.locate(words, dims, 1, first + done, here)
            extent = words[dims + 2 * words[dims] - 1]
            run = min(extent - (first + done) % extent, count - done)
            for i in range(run):
                simd.store_one(target, base + here[0] + i * step, simd.load_one(tile, done + i))
            done += run

    return fetch, scatter


# --- forward -----------------------------------------------------------------------------------------------------------------


def forward_body(element: str, rms_element: str, gamma: str, access: str) -> tuple[Callable, tuple]:
    """Whole rows, a few to a task."""
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    inline, load, load_part, real, int64 = simd.inline, simd.load, simd.load_part, simd.widened(element), simd.int64
    float64 = simd.float64
    scaled, contiguous, zero = gamma == "gamma", access == "contiguous", real(0)
    fetch, scatter = _stage()
    load_pair, prefetch_pair = simd.load_pair, simd.prefetch_pair
    buffer = LANES if contiguous else BLOCK + LANES

    def summation(widen):
        @inline
        def run_squares(x, at, count):
            acc = widen(simd.spread(zero))
            i = 0
            while i + LANES <= count:
                v = widen(load(x, at + i, 1))
                acc = simd.fma(v, v, acc)
                i += LANES
            if i < count:
                v = widen(load_part(x, at + i, 1, count - i))
                acc = simd.fma(v, v, acc)
            return float64(simd.tree_sum(acc))

        @inline
        def squares(x, at, count):
            total = 0.0
            for first in range(0, count, RUN):
                total += run_squares(x, at + first, min(RUN, count - first))
            return total

        return squares

    def row_summation(squares):
        @inline
        def row_squares(x, at, words, tile, here):
            total = 0.0
            for first in range(0, words[EXTENT], BLOCK):
                count = min(BLOCK, words[EXTENT] - first)
                if contiguous:
                    total += squares(x, at + first, count)
                else:
                    fetch(x, at, words, words[INNER], first, count, tile, here)
                    total += squares(tile, 0, count)
            return total

        return row_squares

    row_squares = row_summation(summation(inline(lambda v: v)))
    row_squares_in_f64 = row_summation(summation(simd.to_f64))

    def writer(put_pair):
        @inline
        def write(x, at_x, g, at_g, y, at_y, count, inverse, ahead):
            i = 0
            while i + PAIR <= count:
                v, w = load_pair(x, at_x + i)
                v, w = v * inverse, w * inverse
                if scaled:
                    f, h = load_pair(g, at_g + i)
                    v, w = v * f, w * h
                put_pair(y, at_y + i, v, w)
                if contiguous:
                    prefetch_pair(x, at_x + i + ahead)
                i += PAIR
            while i < count:
                rest = min(LANES, count - i)
                v = load_part(x, at_x + i, 1, rest) * inverse
                if scaled:
                    v = v * load_part(g, at_g + i, 1, rest)
                simd.store_part(y, at_y + i, 1, v, rest)
                i += LANES

        return write

    write, write_stream = writer(simd.store_pair), writer(simd.stream_pair)

    @inline
    def write_row(x, at_x, g, y, at_y, words, inverse, ahead, tile_x, tile_g, here, stream):
        for first in range(0, words[EXTENT], BLOCK):
            count = min(BLOCK, words[EXTENT] - first)
            if contiguous:
                if stream:
                    write_stream(x, at_x + first, g, first, y, at_y + first, count, inverse, ahead)
                else:
                    write(x, at_x + first, g, first, y, at_y + first, count, inverse, ahead)
            else:
                if words[EXTENT] > BLOCK:
                    fetch(x, at_x, words, words[INNER], first, count, tile_x, here)
                if scaled:
                    fetch(g, 0, words, words[INNER + 1], first, count, tile_g, here)
                write(tile_x, 0, tile_g, 0, tile_x, 0, count, inverse, 0)
                scatter(tile_x, y, at_y, words, words[INNER + 2], first, count, here)

    def body(words, counter, x, g, y, rms):
        stream = words[STREAM] != 0 and tasks.is_aligned(y)
        tile_x, tile_g = tasks.scratch(real, buffer), tasks.scratch(real, buffer)
        here, following = tasks.scratch(int64, 1), tasks.scratch(int64, 3)
        eps, count = tasks.as_f64(words, EPS)[0], float(max(words[EXTENT], 1))
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            row = task * words[PER_TASK]
            end = min(words[ROWS], row + words[PER_TASK])
            tasks.locate(words, ROWS_AT, 3, row, following)
            while row < end:
                at_x, at_y, at_rms = following[0], following[1], following[2]
                row += 1
                tasks.locate(words, ROWS_AT, 3, row, following)
                total = row_squares(x, at_x, words, tile_x, here)
                if not (total > TINY and total < HUGE):
                    total = row_squares_in_f64(x, at_x, words, tile_x, here)
                root = math.sqrt(total / count + eps)
                simd.store_one(rms, at_rms, root)
                inverse = real(1.0 / root)
                write_row(x, at_x, g, y, at_y, words, inverse, following[0] - at_x, tile_x, tile_g, here, stream)
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()

    pointer = simd.pointer_to(element)
    return body, (tasks.words, tasks.words, pointer, pointer, pointer, simd.pointer_to(rms_element))


# --- backward ----------------------------------------------------------------------------------------------------------------


def backward_body(element: str, rms_element: str, gamma: str, access: str) -> tuple[Callable, tuple]:
    """Groups of rows; then, once all groups are done, blocks of dgamma's columns."""
    from baracuda_kernels.targets.cpu.vectors import columns, simd, tasks

    inline, load, load_part, real, int64 = simd.inline, simd.load, simd.load_part, simd.widened(element), simd.int64
    float64, scaled, contiguous, zero = simd.float64, gamma == "gamma", access == "contiguous", simd.widened(element)(0)
    sums = real if element in ("f16", "bf16") else float64  # what partial sums are kept in: see `groups`
    to_sums = inline(lambda v: v) if sums == real else simd.to_f64
    fetch, scatter = _stage()
    load_pair, prefetch_pair = simd.load_pair, simd.prefetch_pair
    dealt = contiguous and in_turn(element)  # how a pair of partial sums lies
    buffer, nothing = LANES if contiguous else BLOCK + LANES, sums(0)

    @inline
    def run_projection(dy, at_dy, x, at_x, g, at_g, count):
        acc = simd.spread(zero)
        i = 0
        while i + LANES <= count:
            u = load(dy, at_dy + i, 1)
            if scaled:
                u = u * load(g, at_g + i, 1)
            acc = simd.fma(u, load(x, at_x + i, 1), acc)
            i += LANES
        if i < count:
            u = load_part(dy, at_dy + i, 1, count - i)
            if scaled:
                u = u * load_part(g, at_g + i, 1, count - i)
            acc = simd.fma(u, load_part(x, at_x + i, 1, count - i), acc)
        return float64(simd.tree_sum(acc))

    @inline
    def projection(dy, at_dy, x, at_x, g, at_g, count):
        """The sum of dy gamma x over a block."""
        total = 0.0
        for first in range(0, count, RUN):
            total += run_projection(dy, at_dy + first, x, at_x + first, g, at_g + first, min(RUN, count - first))
        return total

    @inline
    def write_narrow(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, count, root):
        """dx of a row so short that all of it is computed in f64, and its share of dgamma."""
        total = 0.0
        for i in range(count):
            u = float64(simd.load_one(dy, at_dy + i))
            total += (u * float64(simd.load_one(g, i)) if scaled else u) * float64(simd.load_one(x, at_x + i))
        for i in range(count):
            u, v = float64(simd.load_one(dy, at_dy + i)), float64(simd.load_one(x, at_x + i))
            if scaled:
                partials[share + i] += sums(u * v / root)
                u *= float64(simd.load_one(g, i))
            # Of a single element hardly anything but eps remains: rms² - x², without the squares.
            rest = u * (root - v) * (root + v) if count == 1 else u * (root * root * count) - v * total
            simd.store_one(dx, at_dx + i, rest / (root * root * root * count))

    def writer(put_pair):
        @inline
        def write(dy, at_dy, x, at_x, g, at_g, dx, at_dx, partials, share, count, inverse, factor, ahead_dy, ahead_x):
            """dx of a block, and its share of dgamma."""
            i = 0
            while i + PAIR <= count:
                t, u = load_pair(dy, at_dy + i)
                v, w = load_pair(x, at_x + i)
                if scaled:
                    p, q = load_pair(partials, share + i)
                    p, q = p + to_sums(t * (v * inverse)), q + to_sums(u * (w * inverse))
                    simd.store_pair(partials, share + i, p, q)
                    f, h = load_pair(g, at_g + i)
                    t, u = t * f, u * h
                put_pair(dx, at_dx + i, simd.fma(v, factor, t * inverse), simd.fma(w, factor, u * inverse))
                if contiguous:
                    prefetch_pair(dy, at_dy + i + ahead_dy)
                    prefetch_pair(x, at_x + i + ahead_x)
                i += PAIR
            while i < count:
                rest = min(LANES, count - i)
                u, v = load_part(dy, at_dy + i, 1, rest), load_part(x, at_x + i, 1, rest)
                if scaled:
                    acc = load(partials, share + i, 1)
                    simd.store(partials, share + i, 1, acc + to_sums(u * (v * inverse)))
                    u = u * load_part(g, at_g + i, 1, rest)
                simd.store_part(dx, at_dx + i, 1, simd.fma(v, factor, u * inverse), rest)
                i += LANES

        return write

    write, write_stream = writer(simd.store_pair), writer(simd.stream_pair)

    @inline
    def fetch_block(dy, at_dy, x, at_x, g, words, first, count, tile_dy, tile_x, tile_g, here):
        fetch(dy, at_dy, words, words[INNER], first, count, tile_dy, here)
        fetch(x, at_x, words, words[INNER + 1], first, count, tile_x, here)
        if scaled:
            fetch(g, 0, words, words[INNER + 2], first, count, tile_g, here)

    @inline
    def row_in_place(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, extent, root, ahead_dy, ahead_x, stream):
        """A row whose operands are all contiguous."""
        if extent < NARROW:
            write_narrow(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, extent, root)
            return
        total = 0.0
        for first in range(0, extent, BLOCK):
            total += projection(dy, at_dy + first, x, at_x + first, g, first, min(BLOCK, extent - first))
        inverse, factor = real(1.0 / root), real(-total / (root * root * root * extent))
        if stream:
            write_stream(dy, at_dy, x, at_x, g, 0, dx, at_dx, partials, share, extent, inverse, factor, ahead_dy, ahead_x)
        else:
            write(dy, at_dy, x, at_x, g, 0, dx, at_dx, partials, share, extent, inverse, factor, ahead_dy, ahead_x)

    @inline
    def row_through_tiles(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, words, root, tile_dy, tile_x, tile_g, here):
        """A row with any strides; one that fits in a block is fetched once."""
        extent, total = words[EXTENT], 0.0
        for first in range(0, extent, BLOCK):
            count = min(BLOCK, extent - first)
            fetch_block(dy, at_dy, x, at_x, g, words, first, count, tile_dy, tile_x, tile_g, here)
            total += projection(tile_dy, 0, tile_x, 0, tile_g, 0, count)
        inverse, factor = real(1.0 / root), real(-total / (root * root * root * extent))
        for first in range(0, extent, BLOCK):
            count = min(BLOCK, extent - first)
            if extent > BLOCK:
                fetch_block(dy, at_dy, x, at_x, g, words, first, count, tile_dy, tile_x, tile_g, here)
            if extent < NARROW:
                write_narrow(tile_dy, 0, tile_x, 0, tile_g, tile_dy, 0, partials, share, extent, root)
            else:
                write(tile_dy, 0, tile_x, 0, tile_g, 0, tile_dy, 0, partials, share + first, count, inverse, factor, 0, 0)
            scatter(tile_dy, dx, at_dx, words, words[INNER + 3], first, count, here)

    @inline
    def add_groups(words, dgamma, partials, first, count):
        """Columns of dgamma: the groups' partial sums, one group after the other."""
        for i in range(first, first + count, LANES):
            acc = simd.to_f64(simd.spread(nothing))
            for group in range(words[GROUPS]):
                acc = acc + simd.to_f64(load(partials, group * words[PITCH] + i, 1))
            block = i // PAIR * PAIR
            whole = block + PAIR <= words[EXTENT]
            for lane in range(min(LANES, first + count - i)):
                column = block + 2 * lane + (i - block) // LANES if dealt and whole else i + lane
                simd.store_one(dgamma, column * words[STEP_DGAMMA], simd.extract(acc, lane))

    def body(words, counter, dy, x, g, rms, dx, dgamma, partials):
        extent = words[EXTENT]
        stream = words[STREAM] != 0 and tasks.is_aligned(dx)
        tile_dy, tile_x, tile_g = tasks.scratch(real, buffer), tasks.scratch(real, buffer), tasks.scratch(real, buffer)
        here, following = tasks.scratch(int64, 1), tasks.scratch(int64, 4)
        task = tasks.claim(counter, -1)
        while task < words[GROUPS]:
            share = task * words[PITCH]
            if scaled:
                columns.clear(partials, share, columns.vectors(extent), nothing)
            row = task * words[PER_TASK]
            end = min(words[ROWS], row + words[PER_TASK])
            tasks.locate(words, ROWS_AT, 4, row, following)
            while row < end:
                at_dy, at_x, at_dx, root = following[0], following[1], following[2], float64(simd.load_one(rms, following[3]))
                root = math.nan if math.isnan(root) else root  # `store_pair` takes a NaN only if its lower bits are zero
                row += 1
                tasks.locate(words, ROWS_AT, 4, row, following)
                if contiguous:
                    ahead_dy, ahead_x = following[0] - at_dy, following[1] - at_x
                    row_in_place(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, extent, root, ahead_dy, ahead_x, stream)
                else:
                    row_through_tiles(dy, at_dy, x, at_x, g, dx, at_dx, partials, share, words, root, tile_dy, tile_x, tile_g, here)
            tasks.finish(counter, DONE)
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()
        while task < words[TASKS]:
            tasks.wait_for(counter, DONE, words[GROUPS])
            first = (task - words[GROUPS]) * COLUMNS
            add_groups(words, dgamma, partials, first, min(COLUMNS, extent - first))
            task = tasks.claim(counter, task)

    pointer, partial_sums = simd.pointer_to(element), simd.pointer_to("f64" if sums == float64 else "f32")
    operands = (pointer, pointer, pointer, simd.pointer_to(rms_element), pointer, pointer, partial_sums)
    return body, (tasks.words, tasks.words, *operands)


# --- launchers ---------------------------------------------------------------------------------------------------------------


def forward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a forward problem: bind(layouts of x, gamma, y, rms) -> launch."""
    contiguous, strided = _functions(forward_body, 4, problem)
    rows, extent, size = problem.row_count, problem.norm_total_extent, problem.element.size

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        x, gamma, y, rms = layouts
        if rows == 0:
            return parallel.idle
        outer, inner, side_by_side = geometry(problem, [x, y, rms], [x, gamma, y])
        row_bytes = 2 * extent * size
        per_task = parallel.per_task(rows, row_bytes)
        count = -(-rows // per_task)
        stream = side_by_side and streams(rows * row_bytes, size, [dim.steps[1] for dim in outer])
        head = [count, per_task, rows, extent, stream, bits(problem.eps), 0, 0, 0]
        words = launch_words(head, outer, inner)
        return parallel.launcher(contiguous if side_by_side else strided, words, count, rows * row_bytes)

    return bind


def backward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a backward problem: bind(layouts of dy, x, gamma, rms, dx, dgamma) -> launch."""
    contiguous, strided = _functions(backward_body, 7, problem)
    rows, extent, size = problem.row_count, problem.norm_total_extent, problem.element.size

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        dy, x, gamma, rms, dx, dgamma = layouts
        if extent == 0 or (rows == 0 and dgamma is None):
            return parallel.idle
        outer, inner, side_by_side = geometry(problem, [dy, x, dx, rms], [dy, x, gamma, dx])
        groups, work = group_count(rows), 3 * rows * extent * size
        tasks = groups + (-(-extent // COLUMNS) if dgamma is not None else 0)
        stream = side_by_side and streams(work, size, [dim.steps[2] for dim in outer])
        step = dgamma.stride[0] if dgamma is not None else 0
        words = launch_words(
            [tasks, rows_per_group(rows), rows, extent, stream, 0, groups, partial_pitch(extent), step], outer, inner
        )
        return _grouped_launch(contiguous if side_by_side else strided, words, tasks if work > parallel.SERIAL_BYTES else 1)

    return bind


def _grouped_launch(function: NativeFunction, words: Any, tasks: int) -> parallel.Launch:
    address, block = addressof(words), c_int64 * 2

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any, alive: Any = words) -> None:
        parallel.launch(function, address, tasks, (*addresses, workspace), block())

    return launch


def _functions(body: Callable, pointers: int, problem: Any) -> list[NativeFunction]:
    static = (problem.element.value, problem.stored_rms_element.value, "gamma" if problem.has_gamma else "plain")
    return [build(body, pointers, *static, access) for access in ("contiguous", "strided")]
