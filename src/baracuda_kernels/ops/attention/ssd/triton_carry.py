"""States of the scan, and their gradients, carried over the sequence for the backward, by Triton bodies.

A walk over chunks writes the state before each span, or, backwards, the gradient of the state after it. Where there are few heads the
sequence is split into segments: each is walked from nothing, states are passed from segment to segment, and a reader adds to what a walk
wrote what has come down from the segment's own start.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.ssd.triton_chunk import block, block_by_pairs, computed, decay, given, of_head
from baracuda_kernels.ops.attention.ssd.triton_forward import PARTS
from baracuda_kernels.ops.attention.ssd.triton_paths import flow_of
from baracuda_kernels.targets.cuda.triton.products import product

__all__ = ["pass_segments", "state_at", "walk_states"]


@triton.jit
def walk_states(
    x, dt, a, b, c, dy, initial, d_final, d_initial, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back,
    length, heads, share, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, initial_steps, d_final_steps, d_initial_steps,
    HAS_INITIAL: tl.constexpr, HAS_FINAL: tl.constexpr, PREPARED: tl.constexpr, SEGMENTED: tl.constexpr, CHUNK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr, COL_BLOCKS: tl.constexpr, STAGES: tl.constexpr,
    BY_PAIRS: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of one head's state along a segment, or, in every other program, of the state's gradient from the segment's end."""
    backwards, walk = tl.program_id(0) % 2 == 1, tl.program_id(0) // 2
    rows, row_steps = tl.where(backwards, dy, x), _chosen(backwards, dy_steps, x_steps)
    columns, column_steps = tl.where(backwards, c, b), _chosen(backwards, c_steps, b_steps)
    start, start_steps = tl.where(backwards, d_final, initial), _chosen(backwards, d_final_steps, initial_steps)
    kept, ends, fades = (
        tl.where(backwards, kept_back, kept),
        tl.where(backwards, ends_back, ends),
        tl.where(backwards, fades_back, fades),
    )
    first_col, walk = walk % COL_BLOCKS * COLS, walk // COL_BLOCKS
    first_row, walk = walk % ROW_BLOCKS * ROWS, walk // ROW_BLOCKS
    pairs = tl.num_programs(0) // (2 * COL_BLOCKS * ROW_BLOCKS * segments)
    pair, segment = walk % pairs, walk // pairs
    batch, head = (first_pair + pair) // heads, (first_pair + pair) % heads
    rows = of_head(rows, row_steps, batch, head) + first_row
    columns = of_head(columns, column_steps, batch, head // share) + first_col
    dt = of_head(dt, dt_steps, batch, head)
    rate = tl.load(a + head.to(tl.int64) * a_step)
    row, col = first_row + tl.arange(0, ROWS), first_col + tl.arange(0, COLS)
    inside = (row < head_dim)[:, None] & (col < state_dim)[None, :]
    place = row[:, None] * state_dim + col[None, :]
    size = head_dim.to(tl.int64) * state_dim
    state = tl.zeros((ROWS, COLS), ACC)
    if (HAS_INITIAL or HAS_FINAL) and not SEGMENTED:
        given_start = inside & tl.where(backwards, HAS_FINAL, HAS_INITIAL)
        start += batch.to(tl.int64) * start_steps[0] + head.to(tl.int64) * start_steps[1]
        state = tl.load(start + (row.to(tl.int64) * start_steps[2])[:, None] + col[None, :], mask=given_start, other=0.0)
    chunks = (length + CHUNK - 1) // CHUNK
    first = segment * segment_chunks
    past = tl.minimum(first + segment_chunks, chunks)
    prepared += (first_pair + pair).to(tl.int64) * chunks * (PARTS * CHUNK)
    keeps += (first_pair + pair).to(tl.int64) * chunks
    gone = tl.zeros((), tl.float64)  # the log-decay since the walk began
    for walked in tl.range(0, past - first, num_stages=STAGES):
        chunk = tl.where(backwards, past - 1 - walked, first + walked)
        # A span's first chunk, or its last one, or the last of all.
        enters = (tl.where(backwards, chunk + 1, chunk) % SPAN == 0) | (walked == 0)
        record = pair.to(tl.int64) * spans + chunk // SPAN
        tl.store(kept + record * size + place, state.to(kept.dtype.element_ty), mask=inside & enters)
        if SEGMENTED:
            tl.store(fades + record, decay(gone, ACC, PRECISE), mask=enters)
        state, total = carry(
            state, rows, dt, rate, columns, prepared, keeps, chunk, length, head_dim - first_row, state_dim - first_col,
            row_steps[1], dt_steps[1], column_steps[1], backwards, PREPARED, BY_PAIRS, CHUNK, ACC, PRECISE, PRECISION,
        )  # fmt: skip
        gone += total
    if SEGMENTED:
        record = pair.to(tl.int64) * segments + segment
        tl.store(ends + record * size + place, state, mask=inside)
        tl.store(fades + pairs.to(tl.int64) * spans + record, decay(gone, ACC, PRECISE))
    elif HAS_INITIAL:
        d_initial += batch.to(tl.int64) * d_initial_steps[0] + head.to(tl.int64) * d_initial_steps[1]
        tl.store(d_initial + (row.to(tl.int64) * d_initial_steps[2])[:, None] + col[None, :], state, mask=inside & backwards)


@triton.jit
def _chosen(wanted, steps, others):
    """`steps` if they are wanted, else the others."""
    return tl.where(wanted, steps[0], others[0]), tl.where(wanted, steps[1], others[1]), tl.where(wanted, steps[2], others[2])


@triton.jit
def carry(
    state, rows, dt, rate, columns, prepared, keeps, chunk, length, row_width, column_width, row_step, dt_step, column_step,
    backwards, PREPARED: tl.constexpr, BY_PAIRS: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The state after a chunk from the one before it, by x and b, and the chunk's log-decay; `backwards`, the gradient of the state before
    it from that of the one after it, by dy and c."""
    weights, keep, total = flow_of(dt, rate, prepared, keeps, chunk, length, dt_step, backwards, PREPARED, CHUNK, ACC, PRECISE)
    if BY_PAIRS:
        values = block_by_pairs(rows, row_step, chunk * CHUNK, length, row_width, CHUNK, state.shape[0])
    else:
        values = block(rows, row_step, chunk * CHUNK, length, row_width, CHUNK, state.shape[0])
    keys = block(columns, column_step, chunk * CHUNK, length, column_width, CHUNK, state.shape[1])
    weighed = computed(values.to(ACC) * weights[:, None], values)
    return product(tl.trans(weighed), given(keys), state * keep, PRECISION), total


@triton.jit
def state_at(
    kept, ends, fades, pair, chunk, rows, dt, rate, columns, prepared, keeps, length, first_row, first_col, head_dim, state_dim,
    spans, segments, segment_chunks, row_step, dt_step, column_step,
    BACKWARDS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, PREPARED: tl.constexpr, SEGMENTED: tl.constexpr,
    CHUNK: tl.constexpr, SPAN: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of the state before a chunk, or BACKWARDS, of the gradient of the state after it, from what a walk has kept."""
    state = _kept(
        kept, ends, fades, pair.to(tl.int64) * spans + chunk // SPAN, pair.to(tl.int64) * segments + chunk // segment_chunks,
        first_row, first_col, head_dim, state_dim, ROWS, COLS, SEGMENTED,
    )  # fmt: skip
    if SPAN > 1:
        state = state.to(ACC)
        first = chunk // SPAN * SPAN
        last = tl.minimum(first + SPAN, (length + CHUNK - 1) // CHUNK) - 1
        for passed in range(0, last - chunk if BACKWARDS else chunk % SPAN):
            state, _ = carry(
                state, rows + first_row, dt, rate, columns + first_col, prepared, keeps, last - passed if BACKWARDS else first + passed,
                length, head_dim - first_row, state_dim - first_col, row_step, dt_step, column_step,
                BACKWARDS, PREPARED, False, CHUNK, ACC, PRECISE, PRECISION,
            )  # fmt: skip
    return state


@triton.jit
def _kept(
    kept, ends, fades, record, segment, first_row, first_col, head_dim, state_dim,
    ROWS: tl.constexpr, COLS: tl.constexpr, SEGMENTED: tl.constexpr,
):  # fmt: skip
    row, col = first_row + tl.arange(0, ROWS), first_col + tl.arange(0, COLS)
    inside = (row < head_dim)[:, None] & (col < state_dim)[None, :]
    place, size = row[:, None] * state_dim + col[None, :], head_dim.to(tl.int64) * state_dim
    state = given(tl.load(kept + record * size + place, mask=inside, other=0.0))
    if SEGMENTED:
        before = tl.load(ends + segment * size + place, mask=inside, other=0.0)
        state = state.to(before.dtype) + before * tl.load(fades + record)
    return state


@triton.jit
def pass_segments(
    start, end, ends, fades, heads, head_dim, state_dim, first_pair, segments, strips, start_steps, end_steps,
    BACKWARDS: tl.constexpr, HAS_START: tl.constexpr, HAS_END: tl.constexpr, ACC: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """What a walk over each segment left becomes what stands before it; some places of one head's state."""
    pair = (tl.program_id(0) // strips).to(tl.int64)
    place = tl.program_id(0) % strips * PLACES + tl.arange(0, PLACES)
    size = head_dim * state_dim
    inside = place < size
    row, col, batch, head = (
        (place // state_dim).to(tl.int64),
        place % state_dim,
        (first_pair + pair) // heads,
        (first_pair + pair) % heads,
    )
    state = tl.zeros((PLACES,), ACC)
    if HAS_START:
        state = tl.load(start + batch * start_steps[0] + head * start_steps[1] + row * start_steps[2] + col, mask=inside).to(ACC)
    for passed in range(0, segments):
        segment = pair * segments + (segments - 1 - passed if BACKWARDS else passed)
        left = tl.load(ends + segment * size + place, mask=inside)
        tl.store(ends + segment * size + place, state, mask=inside)
        state = left + state * tl.load(fades + segment)
    if HAS_END:
        tl.store(end + batch * end_steps[0] + head * end_steps[1] + row * end_steps[2] + col, state, mask=inside)
