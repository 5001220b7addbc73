"""The gradients of the scan, span by span, from the states at their starts and the gradients of the states at their ends.

Within a chunk, with decay(i, j) from step j to step i, g[i, j] = C[i] . B[j], p[i, j] = dy[i] . x[j], h the state at the chunk's start and
dh the gradient of the state at its end:

u[j]  = sum over i >= j of g decay dy[i]        +  decay(end, j) dh B[j]               dx[j] = dt[j] u[j]
dC[i] = sum over j <= i of p decay dt[j] B[j]   +  decay(i, start) dy[i] h
dB[j] = sum over i >= j of p decay dt[j] C[i]   +  decay(end, j) dt[j] x[j] dh

The log-decay of step k multiplies every path that leads from before k to k or later. Its gradient is the sum over just these paths, never
a difference of larger sums, so it is right however small it is beside its neighbours: from step to step, from the start to a step, from a
step to the end, from start to end.

d(log-decay)[k] = sum over j < k <= i of g p decay dt[j]  +  sum over i >= k of decay(i, start) C[i] . (dy[i] h)
                  + sum over j < k of decay(end, j) dt[j] B[j] . (x[j] dh)  +  decay(end, start) h . dh
d_dt[k] = u[k] . x[k] + A d(log-decay)[k]         d_a = sum of dt[k] d(log-decay)[k]
"""

from collections.abc import Callable

from baracuda_kernels.ops.attention.ssd.spans import CHUNK, MOST_COLUMNS
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

# The words of a launch; then come the strides: of steps by batch, step and head, of both states' gradients by batch, head and row, of a.
(TASKS, LENGTH, HEADS, HEAD_DIM, STATE_DIM, SHARE, SPAN, SPANS, BATCH, WALKS, HAS_START, HAS_END) = range(12)
X, DT, B, C, DY, DX, D_B, D_C, D_DT, START, END, RATE = range(12, 48, 3)


def gradients_body(element: str, dt_element: str) -> tuple[Callable, tuple]:
    """A task is one span of one group: its heads one after the other, so that d_b and d_c are sums in a fixed order.

    Where a task is all spans of a group (WALKS), the body itself begins with the gradient of the last state, passes it on from span to
    span in the place of the first one's, and writes the gradient of the initial state.
    """
    from baracuda_kernels.ops.attention.ssd.carry import carry, weigh
    from baracuda_kernels.ops.attention.ssd.decay import INFLOW, PARTS, SINCE_START, STEP, TO_END, decays
    from baracuda_kernels.ops.attention.ssd.matrix import filled, flush_subnormals, matrices, restore_subnormals, vectors
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    real, inline, float64 = simd.widened(element), simd.inline, simd.float64
    matrix = matrices(element)
    multiply, add, add_lower, add_upper, fetch, fetch_transposed, put = matrix
    clear, begin_state, pass_on, end_state = carry(element, matrix)
    prepare, between = decays(element)
    step_buffer, state_buffer, pair_buffer = CHUNK * MOST_COLUMNS, MOST_COLUMNS * MOST_COLUMNS, CHUNK * CHUNK

    @inline
    def copy(source, target, count):
        for i in range(0, count, LANES):
            simd.store(target, i, 1, simd.load(source, i, 1))

    @inline
    def scale(matrix, count, factor):
        for i in range(0, count, LANES):
            simd.store(matrix, i, 1, simd.load(matrix, i, 1) * factor)

    @inline
    def dot(left, right, at, count):
        total = simd.spread(0.0)
        for v in range(0, count, LANES):
            total = simd.fma(simd.to_f64(simd.load(left, at + v, 1)), simd.to_f64(simd.load(right, at + v, 1)), total)
        return simd.tree_sum(total)

    @inline
    def add_weighed(matrix, other, pitch, rows, scalars, weights, partners, paths):
        """matrix += weight of the row * other; the weighed products of `other` with its partners go to `paths`."""
        for j in range(rows):
            weight, at = scalars[weights + j], j * pitch
            paths[j] = float64(weight) * dot(other, partners, at, pitch)
            for v in range(0, pitch, LANES):
                row = simd.fma(simd.load(other, at + v, 1), weight, simd.load(matrix, at + v, 1))
                simd.store(matrix, at + v, 1, row)

    @inline
    def state_product(state, pitch, kept, record, rows, columns):
        """h in scratch times dh in memory."""
        total = simd.spread(0.0)
        for d in range(rows):
            for n in range(0, columns, LANES):
                u, at = simd.load(state, d * pitch + n, 1), record + d * columns + n
                v = simd.load(kept, at, 1) if columns - n >= LANES else simd.load_part(kept, at, 1, columns - n)
                total = simd.fma(simd.to_f64(u), simd.to_f64(v), total)
        return simd.tree_sum(total)

    @inline
    def decay_pairs(scores, scalars, rows, pairs, mixed):
        """Computes g decay (in `mixed`) and p decay dt (in `pairs`) from g and p (in `pairs`), on and below the diagonal."""
        for i in range(rows):
            for j in range(0, i + 1, LANES):
                here, decay = i * CHUNK + j, between(scalars, i, j)
                simd.store(mixed, here, 1, simd.load(scores, here, 1) * decay)
                simd.store(pairs, here, 1, simd.load(pairs, here, 1) * (decay * simd.load(scalars, STEP + j, 1)))

    @inline
    def paths_across(scores, pairs, rows, columns, paths):
        """paths[k] += the sum over j < k <= i of g p decay dt: row by row from the last, one running sum per column."""
        for j in range(0, CHUNK, LANES):
            simd.store(columns, j, 1, simd.spread(0.0))
        for k in range(rows - 1, 0, -1):
            total = simd.spread(0.0)
            for j in range(0, k, LANES):
                here = k * CHUNK + j
                g, p = simd.to_f64(simd.load(scores, here, 1)), simd.to_f64(simd.load(pairs, here, 1))
                column = simd.fma(g, p, simd.load(columns, j, 1))
                simd.store(columns, j, 1, column)
                total = total + simd.where(simd.first_lanes(k - j), column, 0.0)
            paths[k] = simd.tree_sum(total)
        paths[0] = 0.0

    def body(words, counter, x, dt, a, b, c, dy, d_final, dx, d_b, d_c, d_dt, d_initial, kept):
        length, heads, head_dim, state_dim, share = words[LENGTH], words[HEADS], words[HEAD_DIM], words[STATE_DIM], words[SHARE]
        span, spans, groups, walks = words[SPAN], words[SPANS], heads // max(share, 1), words[WALKS] != 0
        head_vectors, state_vectors = vectors(head_dim), vectors(state_dim)
        head_pitch, state_pitch, state_size = head_vectors * LANES, state_vectors * LANES, head_dim * state_dim
        shares_of_d_a = words[BATCH] * heads * spans * 2 * state_size
        keys, queries, sums_b, sums_c = (
            tasks.scratch(real, step_buffer),
            tasks.scratch(real, step_buffer),
            tasks.scratch(real, step_buffer),
            tasks.scratch(real, step_buffer),
        )
        inputs, outputs, passing = (
            tasks.scratch(real, step_buffer),
            tasks.scratch(real, step_buffer),
            tasks.scratch(real, step_buffer),
        )
        scores, pairs, mixed = tasks.scratch(real, pair_buffer), tasks.scratch(real, pair_buffer), tasks.scratch(real, pair_buffer)
        state, scalars, columns = tasks.scratch(real, state_buffer), tasks.scratch(real, PARTS), tasks.scratch(float64, CHUNK)
        across, from_start, to_end = tasks.scratch(float64, CHUNK), tasks.scratch(float64, CHUNK), tasks.scratch(float64, CHUNK)
        mode = flush_subnormals()
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            group, rest = task % groups, task // groups
            batch = rest if walks else rest // spans
            first = 0 if walks else rest % spans
            chunks = (min(length, (spans if walks else first + 1) * span) - first * span + CHUNK - 1) // CHUNK
            if walks:
                for head in range(group * share, (group + 1) * share):
                    at, held = batch * words[START] + head * words[START + 1], ((batch * heads + head) * spans * 2 + 1) * state_size
                    given, step = words[HAS_START] != 0, words[START + 2]
                    begin_state(given, d_final, at, step, head_dim, state_dim, state, state_pitch, kept, held)
            for chunk in range(chunks - 1, -1, -1):
                index = first + chunk * CHUNK // span
                begin = index * span
                t = first * span + chunk * CHUNK
                rows = min(CHUNK, length - t)
                whole = filled(rows)
                at_b = batch * words[B] + t * words[B + 1] + group * words[B + 2]
                at_c = batch * words[C] + t * words[C + 1] + group * words[C + 2]
                fetch(b, at_b, words[B + 1], rows, state_dim, keys, state_pitch)
                fetch(c, at_c, words[C + 1], rows, state_dim, queries, state_pitch)
                fetch_transposed(b, at_b, words[B + 1], rows, state_dim, state, CHUNK)
                multiply(scores, CHUNK, queries, state_pitch, 1, state, CHUNK, rows, vectors(rows), state_dim, True)
                clear(sums_b, whole * state_pitch)
                clear(sums_c, whole * state_pitch)
                for head in range(group * share, (group + 1) * share):
                    pair = batch * heads + head
                    record = (pair * spans + index) * 2 * state_size
                    held = (pair * spans + (0 if walks else index)) * 2 * state_size + state_size
                    rate = float64(simd.load_one(a, head * words[RATE]))
                    at_dt = batch * words[DT] + head * words[DT + 2]
                    at_x = batch * words[X] + head * words[X + 2]
                    fetch(kept, record, state_dim, head_dim, state_dim, state, state_pitch)
                    for before in range(begin, t, CHUNK):
                        prepare(dt, at_dt + before * words[DT + 1], words[DT + 1], rate, CHUNK, scalars)
                        fetch(x, at_x + before * words[X + 1], words[X + 1], CHUNK, head_dim, inputs, head_pitch)
                        fetch(b, at_b - (t - before) * words[B + 1], words[B + 1], CHUNK, state_dim, passing, state_pitch)
                        weigh(passing, state_pitch, CHUNK, scalars, INFLOW)
                        scale(state, head_dim * state_pitch, scalars[SINCE_START + CHUNK - 1])
                        add(state, state_pitch, inputs, 1, head_pitch, passing, state_pitch, head_dim, state_vectors, CHUNK, False)
                    prepare(dt, at_dt + t * words[DT + 1], words[DT + 1], rate, rows, scalars)
                    fetch(x, at_x + t * words[X + 1], words[X + 1], rows, head_dim, inputs, head_pitch)
                    at_dy = batch * words[DY] + t * words[DY + 1] + head * words[DY + 2]
                    fetch(dy, at_dy, words[DY + 1], rows, head_dim, outputs, head_pitch)

                    # What the state at the start has to do with dC and with the decays; then the same of the state at the end with dB.
                    multiply(passing, state_pitch, outputs, head_pitch, 1, state, state_pitch, rows, state_vectors, head_dim, False)
                    add_weighed(sums_c, passing, state_pitch, rows, scalars, SINCE_START, queries, from_start)
                    through = float64(scalars[SINCE_START + rows - 1])
                    through *= state_product(state, state_pitch, kept, held, head_dim, state_dim)
                    fetch(kept, held, state_dim, head_dim, state_dim, state, state_pitch)
                    multiply(passing, state_pitch, inputs, head_pitch, 1, state, state_pitch, rows, state_vectors, head_dim, False)
                    add_weighed(sums_b, passing, state_pitch, rows, scalars, INFLOW, keys, to_end)

                    # Pairs of steps within the chunk.
                    fetch_transposed(x, at_x + t * words[X + 1], words[X + 1], rows, head_dim, state, CHUNK)
                    multiply(pairs, CHUNK, outputs, head_pitch, 1, state, CHUNK, rows, vectors(rows), head_dim, True)
                    decay_pairs(scores, scalars, whole, pairs, mixed)
                    add_lower(sums_c, state_pitch, pairs, CHUNK, 1, keys, state_pitch, rows, state_vectors, rows, False)
                    add_upper(sums_b, state_pitch, pairs, 1, CHUNK, queries, state_pitch, rows, state_vectors, whole, False)
                    paths_across(scores, pairs, rows, columns, across)

                    # u takes the place of what was passed.
                    fetch_transposed(kept, held, state_dim, head_dim, state_dim, state, head_pitch)
                    multiply(passing, head_pitch, keys, state_pitch, 1, state, head_pitch, rows, head_vectors, state_dim, False)
                    weigh(passing, head_pitch, rows, scalars, TO_END)
                    add_upper(passing, head_pitch, mixed, 1, CHUNK, outputs, head_pitch, rows, head_vectors, whole, False)

                    # Every path to k or later starts before k: running sums from both ends.
                    later, total = 0.0, 0.0
                    for k in range(rows - 1, -1, -1):
                        later += from_start[k]
                        across[k] += later
                    earlier = through
                    for k in range(rows):
                        d_exponent = across[k] + earlier
                        earlier += to_end[k]
                        total += float64(scalars[STEP + k]) * d_exponent
                        d_step = dot(inputs, passing, k * head_pitch, head_pitch) + rate * d_exponent
                        at = batch * words[D_DT] + (t + k) * words[D_DT + 1] + head * words[D_DT + 2]
                        simd.store_one(d_dt, at, real(d_step))
                    weigh(passing, head_pitch, rows, scalars, STEP)
                    at = batch * words[DX] + t * words[DX + 1] + head * words[DX + 2]
                    put(passing, head_pitch, rows, head_dim, dx, at, words[DX + 1])

                    if state_size > 0:
                        place = shares_of_d_a + pair * spans + index
                        is_first = chunk == chunks - 1 or t + CHUNK == begin + span
                        kept[place] = real(total) if is_first else real(total + kept[place])
                    if chunk > 0 or words[HAS_END] != 0:
                        copy(queries, passing, rows * state_pitch)
                        weigh(passing, state_pitch, rows, scalars, SINCE_START)
                        multiply(
                            state, state_pitch, outputs, 1, head_pitch, passing, state_pitch, head_dim, state_vectors, rows, False
                        )
                        pass_on(kept, held, head_dim, state_dim, state, state_pitch, scalars[SINCE_START + rows - 1])
                at = batch * words[D_B] + t * words[D_B + 1] + group * words[D_B + 2]
                put(sums_b, state_pitch, rows, state_dim, d_b, at, words[D_B + 1])
                at = batch * words[D_C] + t * words[D_C + 1] + group * words[D_C + 2]
                put(sums_c, state_pitch, rows, state_dim, d_c, at, words[D_C + 1])
            if words[HAS_END] != 0:
                for head in range(group * share, (group + 1) * share):
                    at, held = batch * words[END] + head * words[END + 1], ((batch * heads + head) * spans * 2 + 1) * state_size
                    end_state(kept, held, head_dim, state_dim, state, state_pitch, d_initial, at, words[END + 2])
            task = tasks.claim(counter, task)
        restore_subnormals(mode)

    own, step, kept = (simd.pointer_to(name) for name in (element, dt_element, "f64" if element == "f64" else "f32"))
    return body, (tasks.words, tasks.words, own, step, step, own, own, own, kept, own, own, own, step, kept, kept)
