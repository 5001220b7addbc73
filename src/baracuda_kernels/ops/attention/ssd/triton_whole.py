"""The gradients of one chunk of one head in one piece, by a Triton body for states that a program can hold: every input is read once.

Loads come first, and everything else in an order in which no thread has more to hold than its registers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.ssd.triton_chunk import block, computed, given, of_head, store_block
from baracuda_kernels.ops.attention.ssd.triton_forward import PARTS
from baracuda_kernels.ops.attention.ssd.triton_paths import (
    crossing_paths,
    decays_of,
    exponent_gradients,
    lower,
    store_steps,
    store_sum,
)
from baracuda_kernels.targets.cuda.triton.maths import rounded_product
from baracuda_kernels.targets.cuda.triton.products import product

__all__ = ["gradients_of_chunks"]


@triton.jit
def gradients_of_chunks(
    x, dt, a, b, c, dy, prepared, keeps, kept, kept_back, dx, d_b, d_c, d_dt, shares,
    length, heads, share, head_dim, state_dim, first_pair, pair_count, chunks,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, dx_steps, d_b_steps, d_c_steps, d_dt_steps,
    ALONE: tl.constexpr, PREPARED: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """dx, d_dt and a share of d_a; if heads are ALONE in their groups, also d_b and d_c. The formulas are those of `triton_backward`."""
    pair, chunk = tl.program_id(0) % pair_count, tl.program_id(0) // pair_count
    first, record = chunk * CHUNK, pair.to(tl.int64) * chunks + chunk
    pair += first_pair
    batch, head = pair // heads, pair % heads

    rate = tl.load(a + head.to(tl.int64) * a_step)
    parts, keep = prepared + pair.to(tl.int64) * chunks * (PARTS * CHUNK), keeps + pair.to(tl.int64) * chunks
    lengths, between, since, to_end, through = decays_of(
        of_head(dt, dt_steps, batch, head), rate, parts, keep, chunk, length, dt_steps[1], PREPARED, CHUNK, ACC, PRECISE
    )
    # All loads at once: what a program waits for, it waits for only once.
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    at, inside = record * head_dim * state_dim + (row * state_dim + col), (row < head_dim) & (col < state_dim)
    state = tl.load(kept + at, mask=inside, other=0.0)
    adjoint = tl.load(kept_back + at, mask=inside, other=0.0)
    across = tl.sum(tl.sum(state.to(ACC) * adjoint.to(ACC), 1), 0)

    keys = block(of_head(b, b_steps, batch, head // share), b_steps[1], first, length, state_dim, CHUNK, COLS)
    queries = block(of_head(c, c_steps, batch, head // share), c_steps[1], first, length, state_dim, CHUNK, COLS)
    inputs = block(of_head(x, x_steps, batch, head), x_steps[1], first, length, head_dim, CHUNK, ROWS)
    outputs = block(of_head(dy, dy_steps, batch, head), dy_steps[1], first, length, head_dim, CHUNK, ROWS)
    scores = lower(product(queries, tl.trans(keys), tl.zeros((CHUNK, CHUNK), ACC), PRECISION) * between)
    pairs = product(outputs, tl.trans(inputs), tl.zeros((CHUNK, CHUNK), ACC), PRECISION) * lengths[None, :]
    if ALONE:
        weights = computed(lower(pairs * between), keys)
    crossing, mixed = crossing_paths(scores * pairs, EXACT), computed(scores, keys)

    if ALONE:
        total = product(given(outputs), state, tl.zeros((CHUNK, COLS), ACC), PRECISION) * since[:, None]
        reading = tl.sum(total * queries.to(ACC), 1)
        total = product(weights, given(keys), total, PRECISION)
        store_block(of_head(d_c, d_c_steps, batch, head), d_c_steps[1], first, length, state_dim, total)
    else:
        read = product(given(queries), tl.trans(state), tl.zeros((CHUNK, ROWS), ACC), PRECISION)
        reading = tl.sum(read * outputs.to(ACC), 1) * since

    source = product(given(keys), tl.trans(adjoint), tl.zeros((CHUNK, ROWS), ACC), PRECISION) * to_end[:, None]
    ending = tl.sum(source * inputs.to(ACC), 1)
    source = product(tl.trans(mixed), given(outputs), source, PRECISION)
    d_steps = tl.sum(source * inputs.to(ACC), 1)
    store_block(of_head(dx, dx_steps, batch, head), dx_steps[1], first, length, head_dim, source * lengths[:, None])

    if ALONE:
        total = product(given(inputs), adjoint, tl.zeros((CHUNK, COLS), ACC), PRECISION) * (to_end * lengths)[:, None]
        total = product(tl.trans(weights), given(queries), total, PRECISION)
        store_block(of_head(d_b, d_b_steps, batch, head), d_b_steps[1], first, length, state_dim, total)

    d_exponents = exponent_gradients(crossing, reading, rounded_product(ending, lengths), across * through, EXACT)
    store_steps(of_head(d_dt, d_dt_steps, batch, head), d_dt_steps[1], first, length, d_steps + rate.to(ACC) * d_exponents)
    store_sum(shares + pair.to(tl.int64) * chunks + chunk, lengths * d_exponents)
