"""The outputs of the scan, span by span, from the states at their starts.

Within a chunk, with decay(i, j) from step j to step i:

y[i] = sum over j <= i of (C[i] . B[j]) decay(i, j) dt[j] x[j]  +  decay(i, start) C[i] h
"""

from collections.abc import Callable

from baracuda_kernels.ops.attention.ssd.spans import CHUNK, MOST_COLUMNS
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

# The words of a launch; then come the strides: of x, dt, b, c and y by batch, step and head, of both states by batch, head and row, of a.
(TASKS, LENGTH, HEADS, HEAD_DIM, STATE_DIM, SHARE, SPAN, SPANS, PER_TASK, WALKS, HAS_START, HAS_END) = range(12)
X, DT, B, C, Y, START, END, RATE = range(12, 36, 3)


def outputs_body(element: str, dt_element: str) -> tuple[Callable, tuple]:
    """A task is one span of a few heads of one group; what is the same for all heads of a group is computed once.

    Where the one span is the whole sequence (WALKS), the body itself begins with the first state and writes the last one.
    """
    from baracuda_kernels.ops.attention.ssd.carry import carry, weigh
    from baracuda_kernels.ops.attention.ssd.decay import INFLOW, PARTS, SINCE_START, STEP, decays
    from baracuda_kernels.ops.attention.ssd.matrix import filled, flush_subnormals, matrices, restore_subnormals, vectors
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    real, inline, float64 = simd.widened(element), simd.inline, simd.float64
    matrix = matrices(element)
    multiply, _, add_lower, _, fetch, fetch_transposed, put = matrix
    _, begin_state, pass_on, end_state = carry(element, matrix)
    prepare, between = decays(element)
    step_buffer, state_buffer, pair_buffer = CHUNK * MOST_COLUMNS, MOST_COLUMNS * MOST_COLUMNS, CHUNK * CHUNK

    @inline
    def mix(scores, scalars, rows, mixed):
        """How much of each x enters each y of its chunk."""
        for i in range(rows):
            for j in range(0, i + 1, LANES):
                here = i * CHUNK + j
                factor = between(scalars, i, j) * simd.load(scalars, STEP + j, 1)
                simd.store(mixed, here, 1, simd.load(scores, here, 1) * factor)

    def body(words, counter, x, dt, a, b, c, start, end, y, kept):
        length, heads, head_dim, state_dim, share = words[LENGTH], words[HEADS], words[HEAD_DIM], words[STATE_DIM], words[SHARE]
        span, spans, per_task = words[SPAN], words[SPANS], words[PER_TASK]
        head_vectors, state_vectors = vectors(head_dim), vectors(state_dim)
        head_pitch, state_pitch = head_vectors * LANES, state_vectors * LANES
        queries, inputs = tasks.scratch(real, step_buffer), tasks.scratch(real, step_buffer)
        results, state = tasks.scratch(real, step_buffer), tasks.scratch(real, state_buffer)
        scores, mixed = tasks.scratch(real, pair_buffer), tasks.scratch(real, pair_buffer)
        scalars = tasks.scratch(real, PARTS)
        parts = (share + per_task - 1) // per_task
        mode = flush_subnormals()
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            part, rest = task % parts, task // parts
            group, rest = rest % (heads // share), rest // (heads // share)
            index, batch = rest % spans, rest // spans
            first_head = group * share + part * per_task
            last_head = min(first_head + per_task, (group + 1) * share)
            stop = min(length, (index + 1) * span)
            if words[WALKS] != 0:
                for head in range(first_head, last_head):
                    at, record = batch * words[START] + head * words[START + 1], (batch * heads + head) * head_dim * state_dim
                    given, step = words[HAS_START] != 0, words[START + 2]
                    begin_state(given, start, at, step, head_dim, state_dim, state, state_pitch, kept, record)
            for t in range(index * span, stop, CHUNK):
                rows = min(CHUNK, stop - t)
                at_b = batch * words[B] + t * words[B + 1] + group * words[B + 2]
                at_c = batch * words[C] + t * words[C + 1] + group * words[C + 2]
                fetch(c, at_c, words[C + 1], rows, state_dim, queries, state_pitch)
                fetch_transposed(b, at_b, words[B + 1], rows, state_dim, state, CHUNK)
                multiply(scores, CHUNK, queries, state_pitch, 1, state, CHUNK, rows, vectors(rows), state_dim, True)
                for head in range(first_head, last_head):
                    record = ((batch * heads + head) * spans + index) * head_dim * state_dim
                    rate = float64(simd.load_one(a, head * words[RATE]))
                    prepare(dt, batch * words[DT] + t * words[DT + 1] + head * words[DT + 2], words[DT + 1], rate, rows, scalars)
                    at_x = batch * words[X] + t * words[X + 1] + head * words[X + 2]
                    fetch(x, at_x, words[X + 1], rows, head_dim, inputs, head_pitch)
                    mix(scores, scalars, filled(rows), mixed)
                    fetch_transposed(kept, record, state_dim, head_dim, state_dim, state, head_pitch)
                    multiply(results, head_pitch, queries, state_pitch, 1, state, head_pitch, rows, head_vectors, state_dim, False)
                    weigh(results, head_pitch, rows, scalars, SINCE_START)
                    add_lower(results, head_pitch, mixed, CHUNK, 1, inputs, head_pitch, rows, head_vectors, rows, False)
                    at_y = batch * words[Y] + t * words[Y + 1] + head * words[Y + 2]
                    put(results, head_pitch, rows, head_dim, y, at_y, words[Y + 1])
                    if t + CHUNK < stop or words[HAS_END] != 0:
                        fetch(b, at_b, words[B + 1], rows, state_dim, results, state_pitch)
                        weigh(results, state_pitch, rows, scalars, INFLOW)
                        multiply(
                            state, state_pitch, inputs, 1, head_pitch, results, state_pitch, head_dim, state_vectors, rows, False
                        )
                        pass_on(kept, record, head_dim, state_dim, state, state_pitch, scalars[SINCE_START + rows - 1])
            if words[HAS_END] != 0:
                for head in range(first_head, last_head):
                    at, record = batch * words[END] + head * words[END + 1], (batch * heads + head) * head_dim * state_dim
                    end_state(kept, record, head_dim, state_dim, state, state_pitch, end, at, words[END + 2])
            task = tasks.claim(counter, task)
        restore_subnormals(mode)

    own, step, kept = (simd.pointer_to(name) for name in (element, dt_element, "f64" if element == "f64" else "f32"))
    return body, (tasks.words, tasks.words, own, step, step, own, own, kept, kept, own, kept)
