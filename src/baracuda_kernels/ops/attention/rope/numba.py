"""Rotary embedding on the CPU: one pass over memory, the backward being the forward with the sines' sign turned.

A task is a block of positions. It makes their cosines and sines once, on its stack, and then applies them to every head, and to
every batch that shares the positions; of each head it reads and writes one run of rows.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.lang import parallel
from baracuda_kernels.lang.canonical import LANES
from baracuda_kernels.lang.geometry import Dim, as_words, collapse, dim_words
from baracuda_kernels.lang.native import build
from baracuda_kernels.ops.attention.rope.descriptor import RopeStyle
from baracuda_kernels.ops.attention.rope.frequencies import quarter_turns

__all__ = ["backward", "forward"]

# The words of a launch; then come the dims that lead to a head, and the frequencies: high parts, then low ones, FREQUENCY_PITCH apart.
TASKS, PER_TASK, ITEMS, POSITIONS, PER_BLOCK, BLOCKS, HEADS, PER_GROUP, GROUPS, PAIRS, WIDTH, GIVEN, STREAM, SIGN = range(14)
FREQUENCIES, FREQUENCY_PITCH, POSITION_STEPS, BATCH_STEPS, HEADS_AT = 14, 15, 16, 19, 22

ROOM = 2048  # cosines on a task's stack, and as many sines
STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader
MOST_TASKS = 64  # wanted before heads share a block's cosines
GROUP_BYTES = 128 * 1024  # of a group of heads that has cosines of its own


def rotate_body(style: str, element: str) -> tuple[Callable, tuple]:
    """Blocks of positions; x and y may be the same memory."""
    from baracuda_kernels.lang import simd, tasks
    from baracuda_kernels.ops.attention.rope import sincos

    inline, load, load_part, real, int64 = simd.inline, simd.load, simd.load_part, simd.widened(element), simd.int64
    cos_sin = sincos.cos_sin_f64 if element == "f64" else sincos.cos_sin_f32
    interleaved, room, float64 = style == "interleaved", ROOM, simd.float64
    widest = ROOM // 2 if interleaved else ROOM  # pairs in one table
    two_vectors = element in ("f16", "bf16")  # make a cache line, and are stored one after the other
    line = 2 * LANES if two_vectors else LANES

    @inline
    def fill(words, frequencies, position, first, pairs, sign, cosines, sines, place):
        """The table of one position: per pair once for halves, and for neighbours once for each, the first's sine negated."""
        i = 0
        while i < pairs:
            high, low = load(frequencies, first + i, 1), load(frequencies, words[FREQUENCY_PITCH] + first + i, 1)
            c, s = cos_sin(position, high, low)
            s = s * sign
            if interleaved:
                minus = s * -1.0
                simd.store(cosines, place + 2 * i, 1, sincos.interleave_low(c, c))
                simd.store(cosines, place + 2 * i + LANES, 1, sincos.interleave_high(c, c))
                simd.store(sines, place + 2 * i, 1, sincos.interleave_low(minus, s))
                simd.store(sines, place + 2 * i + LANES, 1, sincos.interleave_high(minus, s))
            else:
                simd.store(cosines, place + i, 1, c)
                simd.store(sines, place + i, 1, s)
            i += LANES

    def neighbours(put):
        @inline
        def turn(x, at_x, cosines, sines, place):
            v = load(x, at_x, 1)
            return simd.fma(v, load(cosines, place, 1), sincos.swap_neighbours(v) * load(sines, place, 1))

        @inline
        def rotate(x, at_x, y, at_y, half, pairs, cosines, sines, place, ahead):
            count = 2 * pairs
            i = 0
            while i + line <= count:
                simd.prefetch(x, at_x + i + ahead)
                put(y, at_y + i, 1, turn(x, at_x + i, cosines, sines, place + i))
                if two_vectors:
                    put(y, at_y + i + LANES, 1, turn(x, at_x + i + LANES, cosines, sines, place + i + LANES))
                i += line
            while i < count:
                rest = min(LANES, count - i)
                v = load_part(x, at_x + i, 1, rest)
                turned = sincos.swap_neighbours(v) * load(sines, place + i, 1)
                simd.store_part(y, at_y + i, 1, simd.fma(v, load(cosines, place + i, 1), turned), rest)
                i += LANES

        return rotate

    def halves(put):
        @inline
        def rotate(x, at_x, y, at_y, half, pairs, cosines, sines, place, ahead):
            i = 0
            while i + line <= pairs:
                simd.prefetch(x, at_x + i + ahead)
                simd.prefetch(x, at_x + half + i + ahead)
                a, b = load(x, at_x + i, 1), load(x, at_x + half + i, 1)
                c, s = load(cosines, place + i, 1), load(sines, place + i, 1)
                if two_vectors:
                    j = i + LANES
                    d, e = load(x, at_x + j, 1), load(x, at_x + half + j, 1)
                    f, t = load(cosines, place + j, 1), load(sines, place + j, 1)
                    put(y, at_y + i, 1, simd.fma(a, c, b * s * -1.0))
                    put(y, at_y + j, 1, simd.fma(d, f, e * t * -1.0))
                    put(y, at_y + half + i, 1, simd.fma(b, c, a * s))
                    put(y, at_y + half + j, 1, simd.fma(e, f, d * t))
                else:
                    put(y, at_y + i, 1, simd.fma(a, c, b * s * -1.0))
                    put(y, at_y + half + i, 1, simd.fma(b, c, a * s))
                i += line
            while i < pairs:
                rest = min(LANES, pairs - i)
                a, b = load_part(x, at_x + i, 1, rest), load_part(x, at_x + half + i, 1, rest)
                c, s = load(cosines, place + i, 1), load(sines, place + i, 1)
                simd.store_part(y, at_y + i, 1, simd.fma(a, c, b * s * -1.0), rest)
                simd.store_part(y, at_y + half + i, 1, simd.fma(b, c, a * s), rest)
                i += LANES

        return rotate

    rotation = neighbours if interleaved else halves
    rotate, rotate_stream = rotation(simd.store), rotation(simd.stream_store)

    @inline
    def rotate_run(x, at_x, y, at_y, words, first, pairs, count, cosines, sines, pitch, ahead, stream):
        """The rows of one head at a block's positions; the features that are not rotated go with the first pairs."""
        half, width = words[PAIRS], words[WIDTH]
        lead = 2 * first if interleaved else first
        for i in range(count):
            from_x, to_y = at_x + i * words[POSITION_STEPS], at_y + i * words[POSITION_STEPS + 1]
            if stream:
                rotate_stream(x, from_x + lead, y, to_y + lead, half, pairs, cosines, sines, i * pitch, ahead)
            else:
                rotate(x, from_x + lead, y, to_y + lead, half, pairs, cosines, sines, i * pitch, ahead)
            if first == 0:
                sincos.move(x, from_x + 2 * half, y, to_y + 2 * half, width - 2 * half)

    def body(words, counter, x, positions, y):
        stream = words[STREAM] != 0 and tasks.is_aligned(y)
        cosines, sines = tasks.scratch(real, room), tasks.scratch(real, room)
        following = tasks.scratch(int64, 2)
        frequencies, sign = tasks.as_f64(words, words[FREQUENCIES]), real(words[SIGN])
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            for item in range(task * words[PER_TASK], min(words[ITEMS], (task + 1) * words[PER_TASK])):
                block, group = item % words[BLOCKS], item // words[BLOCKS] % words[GROUPS]
                batch, start = item // (words[BLOCKS] * words[GROUPS]), block * words[PER_BLOCK]
                count = min(words[PER_BLOCK], words[POSITIONS] - start)
                base_x = batch * words[BATCH_STEPS] + start * words[POSITION_STEPS]
                base_y = batch * words[BATCH_STEPS + 1] + start * words[POSITION_STEPS + 1]
                base_p = batch * words[BATCH_STEPS + 2] + start * words[POSITION_STEPS + 2]
                for first in range(0, words[PAIRS], widest):
                    pairs = min(widest, words[PAIRS] - first)
                    pitch = (pairs + LANES - 1) // LANES * LANES * (2 if interleaved else 1)
                    for i in range(count):
                        position = positions[base_p + i * words[POSITION_STEPS + 2]] if words[GIVEN] else start + i
                        fill(words, frequencies, float64(position), first, pairs, sign, cosines, sines, i * pitch)
                    head, end = group * words[PER_GROUP], min(words[HEADS], (group + 1) * words[PER_GROUP])
                    tasks.locate(words, HEADS_AT, 2, head, following)
                    while head < end:
                        at_x, at_y = base_x + following[0], base_y + following[1]
                        head += 1
                        tasks.locate(words, HEADS_AT, 2, head, following)
                        ahead = base_x + following[0] - at_x
                        rotate_run(x, at_x, y, at_y, words, first, pairs, count, cosines, sines, pitch, ahead, stream)
            task = tasks.claim(counter, task)
        if stream:
            tasks.flush_streams()

    pointer = simd.pointer_to(element)
    return body, (tasks.words, tasks.words, pointer, simd.pointer_to("i64"), pointer)


# --- launchers ---------------------------------------------------------------------------------------------------------------


def forward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a forward problem: bind(layouts of x, positions, y) -> launch."""
    return _kernel(problem, 1)


def backward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a backward problem: bind(layouts of dy, positions, dx) -> launch."""
    return _kernel(problem, -1)


def _kernel(problem: Any, sign: int) -> Callable[[Sequence[Any]], parallel.Launch]:
    function = build(rotate_body, 3, problem.style.value, problem.element.value)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        if 0 in problem.input_shape:
            return parallel.idle
        words, tasks, work = _words(problem, sign, *layouts)
        return parallel.launcher(function, words, tasks, work)

    return bind


def _words(problem: Any, sign: int, x: Any, positions: Any, y: Any) -> tuple[Any, int, int]:
    """The words of a launch, its tasks, and the bytes it moves."""
    shape, size, half = problem.input_shape, problem.element.size, problem.rotated // 2
    of_each_batch = positions is not None and len(positions.shape) == 2
    given = (0,) if positions is None else positions.stride
    heads_first, heads_last = (1, 2) if of_each_batch else (0, 2)
    heads = collapse(shape[heads_first:heads_last], [layout.stride[heads_first:heads_last] for layout in (x, y)])
    head_count, batches = math.prod(shape[heads_first:heads_last]), shape[0] if of_each_batch else 1

    padded = -(-half // LANES) * LANES
    entries = 2 * padded if problem.style is RopeStyle.INTERLEAVED else padded
    per_block = min(problem.seq_len, max(1, ROOM // entries))
    blocks = -(-problem.seq_len // per_block)
    per_group = _heads_per_group(head_count, batches * blocks, 2 * per_block * problem.head_dim * size)
    groups = -(-head_count // per_group)
    items, item_bytes = batches * blocks * groups, 2 * per_group * per_block * problem.head_dim * size
    per_task = parallel.per_task(items, item_bytes)
    count, work = -(-items // per_task), 2 * math.prod(shape) * size

    position_steps = (x.stride[2], y.stride[2], given[-1])
    batch_steps = (x.stride[0], y.stride[0], given[0])
    stream = work > STREAM_BYTES and _keeps_alignment(problem, size, heads, y)
    high, low = quarter_turns(problem.base, problem.rotated)
    tail, spare = dim_words(heads), [0] * (padded - half)
    head = [count, per_task, items, problem.seq_len, per_block, blocks, head_count, per_group, groups, half, problem.head_dim]
    head += [positions is not None, stream, sign, HEADS_AT + len(tail), padded, *position_steps, *batch_steps]
    return as_words([*head, *tail, *map(_bits, high), *spare, *map(_bits, low), *spare]), count, work


def _heads_per_group(heads: int, tables: int, run_bytes: int) -> int:
    """All heads share a block's cosines, unless there are too few blocks to go around."""
    groups = max(1, MOST_TASKS // tables)
    return min(heads, max(-(-heads // groups), -(-GROUP_BYTES // run_bytes)))


def _keeps_alignment(problem: Any, size: int, heads: Sequence[Dim], y: Any) -> bool:
    """Whether every vector that is stored begins at a whole cache line if y does."""
    half = problem.rotated // 2 if problem.style is RopeStyle.HALF else 0
    return all(step * size % 64 == 0 for step in (half, y.stride[0], y.stride[2], *(dim.steps[1] for dim in heads)))


def _bits(number: float) -> int:
    return struct.unpack("q", struct.pack("d", number))[0]
