"""The gradient of the rates: one number for each head, the sum over all paths from a step j to a later step i of the path times its
length, the sum of dt on the way.

If inputs have random signs this sum cancels, and its error is not of its own size but of the size that it has in the mean,

size² = sum over j <= i of (decay(i, j) dt[j] length(i, j))² |x[j]|² |B[j]|² |dy[i]|² |C[i]|² / (head_dim state_dim)

f32 products leave up to a millionth of that, and though all of them were rounded correctly, some sums in a thousand would still miss the
bound of f32. So the sum of all spans' shares is compared with its size, and where it is much smaller it is taken anew in f64.
"""

import math
from collections.abc import Callable

from baracuda_kernels.ops.attention.ssd.spans import CHUNK, MOST_COLUMNS
from baracuda_kernels.ops.attention.ssd.states import BLOCK_ROWS
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

# The words of a launch; then come the strides: of steps by batch, step and head, of both states by batch, head and row, of a, of d_a.
(TASKS, LENGTH, HEADS, HEAD_DIM, STATE_DIM, SHARE, SPANS, BATCH, BLOCK, HAS_START, HAS_END) = range(11)
X, DT, B, C, DY, START, END, RATE = range(11, 35, 3)
D_RATE = RATE + 1
DONE, CANCELS = 1, 2  # the words of the counter for finished tasks, and for what is found: whether anything has to be taken anew
SAMPLES = 1024  # steps whose rows are measured; those between are taken to be alike, or all rows would be read once more
LEAST = 0.2  # of its size: what a sum of f32 products is good for


def total_body(element: str, dt_element: str) -> tuple[Callable, tuple]:
    """A task is the size of one batch and head's sum; the last one adds up the shares. Only f32 needs sizes.

    In the end `kept` begins with a mark for each head, whether its sum is to be taken anew.
    """
    from baracuda_kernels.ops.attention.ssd.matrix import AHEAD
    from baracuda_kernels.targets.cpu.vectors import simd, tasks, vmath

    inline, float64, judges = simd.inline, simd.float64, dt_element == "f32"
    real = simd.widened(element)

    @inline
    def square(source, at, step, count):
        total = simd.spread(0.0)
        for v in range(0, count, LANES):
            here = at + v
            simd.prefetch(source, here + AHEAD * step)
            row = simd.load(source, here, 1) if count - v >= LANES else simd.load_part(source, here, 1, count - v)
            total = simd.fma(simd.to_f64(row), simd.to_f64(row), total)
        return simd.tree_sum(total)

    @inline
    def state_square(given, state, at, step, rows, columns):
        total = 0.0
        if given:
            for d in range(rows):
                total += square(state, at + d * step, step, columns)
        return total

    @inline
    def mean_square(words, batch, head, x, dt, a, b, c, dy, initial, d_final):
        """size²: of all paths to a step, their squares, the same times their lengths, and times the squares of these."""
        head_dim, state_dim, group = words[HEAD_DIM], words[STATE_DIM], head // words[SHARE]
        fades, rate = tasks.scratch(float64, LANES), float64(simd.load_one(a, head * words[RATE]))
        at = batch * words[START] + head * words[START + 1]
        paths = state_square(words[HAS_START] != 0, initial, at, words[START + 2], head_dim, state_dim)
        at_x, at_b = batch * words[X] + head * words[X + 2], batch * words[B] + group * words[B + 2]
        at_dy, at_c = batch * words[DY] + head * words[DY + 2], batch * words[C] + group * words[C + 2]
        once, twice, total, inflow, readout = 0.0, 0.0, 0.0, 0.0, 0.0
        every = 1 + words[LENGTH] // SAMPLES
        for t in range(words[LENGTH]):
            at = batch * words[DT] + t * words[DT + 1] + head * words[DT + 2]
            if t % LANES == 0:
                steps = simd.load_strided_part(dt, at, words[DT + 1], min(LANES, words[LENGTH] - t))
                simd.store(fades, 0, 1, vmath.exp(simd.to_f64(steps) * (2.0 * rate)))
            step, fade = float64(simd.load_one(dt, at)), fades[t % LANES]
            twice = fade * (twice + step * (2.0 * once + step * paths))
            once = fade * (once + step * paths)
            if t % every == 0:
                inflow = square(x, at_x + t * words[X + 1], every * words[X + 1], head_dim)
                inflow *= square(b, at_b + t * words[B + 1], every * words[B + 1], state_dim)
                readout = square(dy, at_dy + t * words[DY + 1], every * words[DY + 1], head_dim)
                readout *= square(c, at_c + t * words[C + 1], every * words[C + 1], state_dim)
            paths = fade * paths + step * step * inflow
            total += twice * readout
        at = batch * words[END] + head * words[END + 1]
        total += twice * state_square(words[HAS_END] != 0, d_final, at, words[END + 2], head_dim, state_dim)
        return total / (head_dim * state_dim)

    @inline
    def mark(words, counter, kept, norm):
        """Marks the heads whose errors show in a d_a of this norm."""
        heads, total = words[HEADS], 0.0
        for head in range(heads):
            size = 0.0
            for batch in range(words[BATCH]):
                size += float64(kept[batch * heads + head]) ** 2
            total += size
            kept[head] = real(1) if LEAST * LEAST * heads * size > norm else real(0)
        if LEAST * LEAST * total > norm:
            counter[CANCELS] = 1

    def body(words, counter, x, dt, a, b, c, dy, initial, d_final, d_a, kept):
        heads, spans = words[HEADS], words[SPANS]
        shares = words[BATCH] * heads * spans * 2 * words[HEAD_DIM] * words[STATE_DIM]
        task = tasks.claim(counter, -1)
        while task < words[TASKS] - 1:
            if judges:
                size = mean_square(words, task // heads, task % heads, x, dt, a, b, c, dy, initial, d_final)
                kept[task] = real(math.sqrt(size))
            tasks.finish(counter, DONE)
            task = tasks.claim(counter, task)
        if task == words[TASKS] - 1:
            tasks.wait_for(counter, DONE, task)
            norm = 0.0
            for head in range(heads):
                total = 0.0
                if words[HEAD_DIM] > 0 and words[STATE_DIM] > 0:
                    for batch in range(words[BATCH]):
                        for index in range(spans):
                            total += kept[shares + (batch * heads + head) * spans + index]
                simd.store_one(d_a, head * words[D_RATE], real(total))
                norm += total * total
            if judges and task > 0:
                mark(words, counter, kept, norm)

    return body, _arguments(element, dt_element)


def exact_body(element: str, dt_element: str) -> tuple[Callable, tuple]:
    """A task is a block of rows of one head's state, over the whole sequence, if the head is marked; the last one adds up.

    The derivative of the state by the rate goes along with the state: h' = decay (h' + dt h) from step to step, and
    d_a = sum of dy[i] · h'[i] C[i]. In a chunk, with h and h' at its start:

    dy[i] · h'[i] C[i] = sum over j <= i of g p decay dt[j] length(i, j)  +  decay(i, start) C[i] . (dy[i] h' + length(i, start) dy[i] h)
    """
    from baracuda_kernels.ops.attention.ssd.carry import weigh
    from baracuda_kernels.ops.attention.ssd.decay import INFLOW, PARTS, SINCE_START, STEP, decays
    from baracuda_kernels.ops.attention.ssd.matrix import filled, flush_subnormals, matrices, restore_subnormals, vectors
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    real, inline, float64 = simd.widened(element), simd.inline, simd.float64
    multiply, add, _, _, fetch, fetch_transposed, _ = matrices("f64")
    prepare, between = decays("f64")
    step_buffer, row_buffer, pair_buffer, chunk = CHUNK * MOST_COLUMNS, CHUNK * BLOCK_ROWS, CHUNK * CHUNK, CHUNK
    state_buffer = BLOCK_ROWS * MOST_COLUMNS

    @inline
    def measure(scalars, lengths, rests):
        """The length from the chunk's start to each step, and from each step to the chunk's end."""
        total = 0.0
        for i in range(CHUNK):
            total += scalars[STEP + i]
            lengths[i] = total
        for i in range(CHUNK):
            rests[i] = total - lengths[i]
        return total

    @inline
    def within(scores, pairs, scalars, lengths, rows):
        """The paths from step to step."""
        total = simd.spread(0.0)
        for i in range(rows):
            for j in range(0, i, LANES):
                weight = between(scalars, i, j) * simd.load(scalars, STEP + j, 1) * (lengths[i] - simd.load(lengths, j, 1))
                path = simd.load(scores, i * CHUNK + j, 1) * simd.load(pairs, i * CHUNK + j, 1) * weight
                total = total + simd.where(simd.first_lanes(i - j), path, 0.0)
        return simd.tree_sum(total)

    @inline
    def dot(left, right, at, count):
        total = simd.spread(0.0)
        for v in range(0, count, LANES):
            total = simd.fma(simd.load(left, at + v, 1), simd.load(right, at + v, 1), total)
        return simd.tree_sum(total)

    @inline
    def move(moved, state, count, length, decay):
        """What is left of the state and of its derivative after so long."""
        for i in range(0, count, LANES):
            h = simd.load(state, i, 1)
            simd.store(moved, i, 1, simd.fma(h, length, simd.load(moved, i, 1)) * decay)
            simd.store(state, i, 1, h * decay)

    def body(words, counter, x, dt, a, b, c, dy, initial, d_final, d_a, kept):
        length, heads, head_dim, state_dim = words[LENGTH], words[HEADS], words[HEAD_DIM], words[STATE_DIM]
        across = vectors(state_dim)
        pitch = across * LANES
        blocks = (head_dim + words[BLOCK] - 1) // words[BLOCK]
        keys, queries, passing = (
            tasks.scratch(float64, step_buffer),
            tasks.scratch(float64, step_buffer),
            tasks.scratch(float64, step_buffer),
        )
        inputs, outputs, turned = (
            tasks.scratch(float64, row_buffer),
            tasks.scratch(float64, row_buffer),
            tasks.scratch(float64, step_buffer),
        )
        scores, pairs, scalars = (
            tasks.scratch(float64, pair_buffer),
            tasks.scratch(float64, pair_buffer),
            tasks.scratch(float64, PARTS),
        )
        state, moved = tasks.scratch(float64, state_buffer), tasks.scratch(float64, state_buffer)
        lengths, rests = tasks.scratch(float64, chunk), tasks.scratch(float64, chunk)
        mode = flush_subnormals()
        task = tasks.claim(counter, -1)
        while task < words[TASKS] - 1:
            first_row, pair = task % blocks * words[BLOCK], task // blocks
            batch, head = pair // heads, pair % heads
            group, rows = head // words[SHARE], min(words[BLOCK], head_dim - first_row)
            total, count = 0.0, filled(rows) * pitch
            if kept[head] > 0:
                rate = float64(simd.load_one(a, head * words[RATE]))
                for i in range(0, count, LANES):
                    simd.store(state, i, 1, simd.spread(0.0))
                    simd.store(moved, i, 1, simd.spread(0.0))
                if words[HAS_START] != 0:
                    at = batch * words[START] + head * words[START + 1] + first_row * words[START + 2]
                    fetch(initial, at, words[START + 2], rows, state_dim, state, pitch)
                for t in range(0, length, CHUNK):
                    steps = min(CHUNK, length - t)
                    at_b = batch * words[B] + t * words[B + 1] + group * words[B + 2]
                    at_c = batch * words[C] + t * words[C + 1] + group * words[C + 2]
                    at_x = batch * words[X] + t * words[X + 1] + head * words[X + 2] + first_row
                    at_dy = batch * words[DY] + t * words[DY + 1] + head * words[DY + 2] + first_row
                    prepare(dt, batch * words[DT] + t * words[DT + 1] + head * words[DT + 2], words[DT + 1], rate, steps, scalars)
                    whole = measure(scalars, lengths, rests)
                    fetch(c, at_c, words[C + 1], steps, state_dim, queries, pitch)
                    fetch(dy, at_dy, words[DY + 1], steps, rows, outputs, BLOCK_ROWS)
                    fetch_transposed(b, at_b, words[B + 1], steps, state_dim, turned, CHUNK)
                    multiply(scores, CHUNK, queries, pitch, 1, turned, CHUNK, steps, vectors(steps), state_dim, True)
                    fetch_transposed(x, at_x, words[X + 1], steps, rows, turned, CHUNK)
                    multiply(pairs, CHUNK, outputs, BLOCK_ROWS, 1, turned, CHUNK, steps, vectors(steps), rows, True)
                    total += within(scores, pairs, scalars, lengths, steps)
                    multiply(passing, pitch, outputs, BLOCK_ROWS, 1, moved, pitch, steps, across, rows, False)
                    for i in range(steps):
                        total += scalars[SINCE_START + i] * dot(passing, queries, i * pitch, pitch)
                    multiply(passing, pitch, outputs, BLOCK_ROWS, 1, state, pitch, steps, across, rows, False)
                    for i in range(steps):
                        total += scalars[SINCE_START + i] * lengths[i] * dot(passing, queries, i * pitch, pitch)

                    fetch(x, at_x, words[X + 1], steps, rows, inputs, BLOCK_ROWS)
                    fetch(b, at_b, words[B + 1], steps, state_dim, keys, pitch)
                    weigh(keys, pitch, steps, scalars, INFLOW)
                    move(moved, state, count, whole, scalars[SINCE_START + steps - 1])
                    add(state, pitch, inputs, 1, BLOCK_ROWS, keys, pitch, rows, across, steps, False)
                    weigh(keys, pitch, steps, rests, 0)
                    add(moved, pitch, inputs, 1, BLOCK_ROWS, keys, pitch, rows, across, steps, False)
                if words[HAS_END] != 0:
                    at = batch * words[END] + head * words[END + 1] + first_row * words[END + 2]
                    fetch(d_final, at, words[END + 2], rows, state_dim, state, pitch)
                    total += dot(moved, state, 0, rows * pitch)
            # As two numbers, to be added up in f64.
            place = heads + 2 * task
            kept[place] = real(total)
            kept[place + 1] = real(total - kept[place])
            tasks.finish(counter, DONE)
            task = tasks.claim(counter, task)
        if task == words[TASKS] - 1:
            tasks.wait_for(counter, DONE, task)
            for head in range(heads):
                if kept[head] > 0:
                    total = 0.0
                    for batch in range(words[BATCH]):
                        for block in range(blocks):
                            place = heads + 2 * ((batch * heads + head) * blocks + block)
                            total += float64(kept[place]) + float64(kept[place + 1])
                    simd.store_one(d_a, head * words[D_RATE], real(total))
        restore_subnormals(mode)

    return body, _arguments(element, dt_element)


def _arguments(element: str, dt_element: str) -> tuple:
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    own, step, kept = (simd.pointer_to(name) for name in (element, dt_element, "f64" if element == "f64" else "f32"))
    return (tasks.words, tasks.words, own, step, step, own, own, own, kept, kept, step, kept)
