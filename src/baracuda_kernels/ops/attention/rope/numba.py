"""Rotary embedding on the CPU: one pass over memory, the backward being the forward with the sines' sign turned.

A task is a block of positions. It makes their cosines and sines once, on its stack, and then applies them to every head, and to
every batch that shares the positions; of each head it reads and writes one run of rows.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.ops.attention.rope.descriptor import RopeStyle
from baracuda_kernels.ops.attention.rope.frequencies import quarter_turns
from baracuda_kernels.targets.cpu.float16 import in_turn
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import build
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES
from baracuda_kernels.targets.geometry import Dim, as_words, collapse, dim_words

__all__ = ["backward", "forward"]

# The words of a launch; then come the dims that lead to a head, and the frequencies: high parts, then low ones, FREQUENCY_PITCH apart.
TASKS, PER_TASK, ITEMS, POSITIONS, PER_BLOCK, BLOCKS, HEADS, PER_GROUP, GROUPS, PAIRS, WIDTH, GIVEN, STREAM, SIGN = range(14)
FREQUENCIES, FREQUENCY_PITCH, POSITION_STEPS, BATCH_STEPS, HEADS_AT = 14, 15, 16, 19, 22

BUFFER = 2048  # cosines on a task's stack, and as many sines
STREAM_BYTES = 16 << 20  # operands beyond this are out of the caches, or soon will be, when the next reader comes
MOST_TASKS = 64  # wanted before heads share a block's cosines
GROUP_BYTES = 128 * 1024  # of a group of heads that has cosines of its own


def rotate_body(style: str, element: str) -> tuple[Callable, tuple]:
    """Blocks of positions; x and y may be the same memory."""
    from baracuda_kernels.ops.attention.rope import sincos
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    inline, load, load_part, real, int64 = simd.inline, simd.load, simd.load_part, simd.widened(element), simd.int64
    load_pair, prefetch_pair = simd.load_pair, simd.prefetch_pair
    cos_sin = sincos.cos_sin_f64 if element == "f64" else sincos.cos_sin_f32
    interleaved, dealt, widest, float64 = style == "interleaved", in_turn(element), BUFFER, simd.float64
    buffer = BUFFER + LANES  # the last pairs are read as a whole vector

    @inline
    def fill(words, frequencies, position, first, pairs, sign, cosines, sines, place):
        """The table of one position."""
        i = 0
        while i < pairs:
            high, low = load(frequencies, first + i, 1), load(frequencies, words[FREQUENCY_PITCH] + first + i, 1)
            c, s = cos_sin(position, high, low)
            simd.store(cosines, place + i, 1, c)
            simd.store(sines, place + i, 1, s * sign)
            i += LANES

    @inline
    def turn(a, b, c, s):
        return simd.fma(a, c, b * s * -1.0), simd.fma(b, c, a * s)

    def neighbours(put_pair):
        @inline
        def rotate(x, at_x, y, at_y, half, pairs, cosines, sines, place, ahead):
            i = 0
            while i + LANES <= pairs:
                prefetch_pair(x, at_x + 2 * i + ahead)
                a, b = load_pair(x, at_x + 2 * i)
                if not dealt:
                    a, b = sincos.evens(a, b), sincos.odds(a, b)
                a, b = turn(a, b, load(cosines, place + i, 1), load(sines, place + i, 1))
                if not dealt:
                    a, b = sincos.interleave_low(a, b), sincos.interleave_high(a, b)
                put_pair(y, at_y + 2 * i, a, b)
                i += LANES
            while i < pairs:
                rest = min(LANES, 2 * (pairs - i))
                v, c, s = load_part(x, at_x + 2 * i, 1, rest), load(cosines, place + i, 1), load(sines, place + i, 1)
                turned = sincos.swap_neighbours(v) * sincos.interleave_low(s * -1.0, s)
                simd.store_part(y, at_y + 2 * i, 1, simd.fma(v, sincos.interleave_low(c, c), turned), rest)
                i += LANES // 2

        return rotate

    def halves(put_pair):
        @inline
        def rotate(x, at_x, y, at_y, half, pairs, cosines, sines, place, ahead):
            i = 0
            while i + 2 * LANES <= pairs:
                prefetch_pair(x, at_x + i + ahead)
                prefetch_pair(x, at_x + half + i + ahead)
                a, d = load_pair(x, at_x + i)
                b, e = load_pair(x, at_x + half + i)
                a, b = turn(a, b, load(cosines, place + i, 1), load(sines, place + i, 1))
                d, e = turn(d, e, load(cosines, place + i + LANES, 1), load(sines, place + i + LANES, 1))
                put_pair(y, at_y + i, a, d)
                put_pair(y, at_y + half + i, b, e)
                i += 2 * LANES
            while i < pairs:
                rest = min(LANES, pairs - i)
                a, b = load_part(x, at_x + i, 1, rest), load_part(x, at_x + half + i, 1, rest)
                a, b = turn(a, b, load(cosines, place + i, 1), load(sines, place + i, 1))
                simd.store_part(y, at_y + i, 1, a, rest)
                simd.store_part(y, at_y + half + i, 1, b, rest)
                i += LANES

        return rotate

    rotation = neighbours if interleaved else halves
    rotate, rotate_stream = rotation(simd.store_pair), rotation(simd.stream_pair)

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
        cosines, sines = tasks.scratch(real, buffer), tasks.scratch(real, buffer)
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
                    pitch = (pairs + LANES - 1) // LANES * LANES
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
    per_block = min(problem.seq_len, max(1, BUFFER // padded))
    blocks = -(-problem.seq_len // per_block)
    per_group = _heads_per_group(head_count, batches * blocks, 2 * per_block * problem.head_dim * size)
    groups = -(-head_count // per_group)
    items, item_bytes = batches * blocks * groups, 2 * per_group * per_block * problem.head_dim * size
    per_task = parallel.per_task(items, item_bytes)
    count, work = -(-items // per_task), 2 * math.prod(shape) * size

    position_steps = (x.stride[2], y.stride[2], given[-1])
    batch_steps = (x.stride[0], y.stride[0], given[0])
    stream = work > STREAM_BYTES and _keeps_alignment(problem, size, heads, y)
    high, low = (_as_loaded(problem, part) for part in quarter_turns(problem.base, problem.rotated))
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


def _as_loaded(problem: Any, frequencies: Sequence[float]) -> Sequence[float]:
    """The frequencies in the order in which a pair of vectors holds the features."""
    if problem.style is not RopeStyle.HALF or not in_turn(problem.element.value):
        return frequencies
    whole = len(frequencies) // (2 * LANES) * 2 * LANES
    blocks = [frequencies[i : i + 2 * LANES] for i in range(0, whole, 2 * LANES)]
    return [*(turns for block in blocks for turns in (*block[::2], *block[1::2])), *frequencies[whole:]]


def _bits(number: float) -> int:
    return struct.unpack("q", struct.pack("d", number))[0]
