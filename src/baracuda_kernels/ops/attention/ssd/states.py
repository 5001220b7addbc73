"""The states between spans: each head's state, passed on from chunk to chunk, and written down where a span begins.

Backwards in time the same body passes on the gradient of the state: dy and C take the places of x and B.
"""

from collections.abc import Callable

from baracuda_kernels.ops.attention.ssd.spans import CHUNK, MOST_COLUMNS
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

# The words of a launch; then come the strides: of rows, dt and columns by batch, step and head, of both states by batch, head and row, of a.
(TASKS, LENGTH, HEADS, HEAD_DIM, STATE_DIM, SHARE, SPAN, SPANS, BLOCK, BACKWARDS, HAS_START, HAS_END, KEPT, SLOT) = range(14)
ROWS, DT, COLUMNS, START, END, RATE = range(14, 32, 3)

BLOCK_ROWS = 64  # rows of a state that a task has at most


def states_body(element: str, dt_element: str) -> tuple[Callable, tuple]:
    """A task is a block of rows of one head's state, over the whole sequence."""
    from baracuda_kernels.ops.attention.ssd.carry import weigh
    from baracuda_kernels.ops.attention.ssd.decay import INFLOW, PARTS, SINCE_START, decays
    from baracuda_kernels.ops.attention.ssd.matrix import filled, flush_subnormals, matrices, restore_subnormals, vectors
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    real, inline, float64 = simd.widened(element), simd.inline, simd.float64
    multiply, _, _, _, fetch, _, put = matrices(element)
    prepare, _ = decays(element)
    zero, weighted_buffer, row_buffer = real(0), CHUNK * MOST_COLUMNS, CHUNK * BLOCK_ROWS
    state_buffer = BLOCK_ROWS * MOST_COLUMNS

    @inline
    def pass_on(state, inflow, count, decay):
        """One chunk further: what is left of the state, and what came in."""
        for i in range(0, count, LANES):
            simd.store(state, i, 1, simd.fma(simd.load(state, i, 1), decay, simd.load(inflow, i, 1)))

    def body(words, counter, rows_from, dt, a, columns_from, start, end, kept):
        length, heads, head_dim, state_dim = words[LENGTH], words[HEADS], words[HEAD_DIM], words[STATE_DIM]
        span, spans, backwards = words[SPAN], words[SPANS], words[BACKWARDS] != 0
        across = vectors(state_dim)
        pitch = across * LANES
        blocks = (head_dim + words[BLOCK] - 1) // words[BLOCK]
        part, columns = tasks.scratch(real, row_buffer), tasks.scratch(real, weighted_buffer)
        state, inflow, scalars = tasks.scratch(real, state_buffer), tasks.scratch(real, state_buffer), tasks.scratch(real, PARTS)
        weights = SINCE_START if backwards else INFLOW
        mode = flush_subnormals()
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            first_row, pair = task % blocks * words[BLOCK], task // blocks
            batch, head = pair // heads, pair % heads
            rows = min(words[BLOCK], head_dim - first_row)
            if words[HAS_START] != 0:
                at = batch * words[START] + head * words[START + 1] + first_row * words[START + 2]
                fetch(start, at, words[START + 2], rows, state_dim, state, pitch)
            else:
                for i in range(0, filled(rows) * pitch, LANES):
                    simd.store(state, i, 1, simd.spread(zero))
            rate = float64(simd.load_one(a, head * words[RATE]))
            for number in range(spans):
                index = spans - 1 - number if backwards else number
                record = ((pair * spans + index) * words[KEPT] + words[SLOT]) * head_dim * state_dim
                put(state, pitch, rows, state_dim, kept, record + first_row * state_dim, state_dim)
                if number == spans - 1 and words[HAS_END] == 0:
                    break
                begin, stop = index * span, min(length, (index + 1) * span)
                chunks = (stop - begin + CHUNK - 1) // CHUNK
                for chunk in range(chunks):
                    t = begin + (chunks - 1 - chunk if backwards else chunk) * CHUNK
                    steps = min(CHUNK, stop - t)
                    prepare(dt, batch * words[DT] + t * words[DT + 1] + head * words[DT + 2], words[DT + 1], rate, steps, scalars)
                    at = batch * words[ROWS] + t * words[ROWS + 1] + head * words[ROWS + 2] + first_row
                    fetch(rows_from, at, words[ROWS + 1], steps, rows, part, BLOCK_ROWS)
                    at = batch * words[COLUMNS] + t * words[COLUMNS + 1] + head // words[SHARE] * words[COLUMNS + 2]
                    fetch(columns_from, at, words[COLUMNS + 1], steps, state_dim, columns, pitch)
                    weigh(columns, pitch, steps, scalars, weights)
                    multiply(inflow, pitch, part, 1, BLOCK_ROWS, columns, pitch, rows, across, steps, False)
                    pass_on(state, inflow, filled(rows) * pitch, scalars[SINCE_START + steps - 1])
            if words[HAS_END] != 0:
                at = batch * words[END] + head * words[END + 1] + first_row * words[END + 2]
                put(state, pitch, rows, state_dim, end, at, words[END + 2])
            task = tasks.claim(counter, task)
        restore_subnormals(mode)

    own, step, kept = (simd.pointer_to(name) for name in (element, dt_element, "f64" if element == "f64" else "f32"))
    return body, (tasks.words, tasks.words, own, step, step, own, kept, kept, kept)
