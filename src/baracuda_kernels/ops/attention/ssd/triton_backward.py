"""The gradients of the scan, chunk by chunk, by Triton bodies.

Within a chunk, with decay(i, j) from step j to step i, h the state before it, dh the gradient of the state after it, S = C Bᵗ, W = dy xᵗ and
M[i, j] = W[i, j] decay(i, j) dt[j] for i >= j:

u  = (S decay)ᵗ dy + decay(end, j) B dhᵗ             dx = dt u
dC = M B + decay(i, start) dy h                      dB = Mᵗ C + decay(end, j) dt x dh

The log-decay of step k multiplies every path that leads from before k to k or later: from step to step, from the start to a step, from
a step to the end, from start to end. Its gradient is the sum over just these.

d(log-decay)[k] = sum over j < k <= i of M S  +  sum over i >= k of decay(i, start) C[i] . (dy[i] h)
                  + sum over j < k of decay(end, j) dt[j] x[j] . (dh B[j])  +  decay(end, start) h . dh
d_dt = u . x + A d(log-decay)         d_a = sum of dt d(log-decay)
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.ssd.triton_carry import state_at
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
from baracuda_kernels.targets.cuda.triton.indexing import offset
from baracuda_kernels.targets.cuda.triton.maths import rounded_product
from baracuda_kernels.targets.cuda.triton.products import product

__all__ = ["add_groups", "add_rates", "gradients_of_groups", "gradients_of_heads", "gradients_of_lone_heads"]


@triton.jit
def gradients_of_heads(
    x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, dx, d_dt, shares,
    length, heads, share, head_dim, state_dim, first_pair, spans, segments, segment_chunks, pair_count, slots, slot_chunks,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, dx_steps, d_dt_steps,
    HAS_RATE: tl.constexpr, PREPARED: tl.constexpr, SEGMENTED: tl.constexpr, SINGLE: tl.constexpr, CHUNK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr, COL_BLOCKS: tl.constexpr,
    ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """dx, d_dt and a share of d_a: one chunk of one head, or several that share a sum."""
    pair, slot = tl.program_id(0) % pair_count, tl.program_id(0) // pair_count
    batch, head = (first_pair + pair) // heads, (first_pair + pair) % heads
    chunks = (length + CHUNK - 1) // CHUNK
    prepared += (first_pair + pair).to(tl.int64) * chunks * (PARTS * CHUNK)
    keeps += (first_pair + pair).to(tl.int64) * chunks
    x, dy, dx = of_head(x, x_steps, batch, head), of_head(dy, dy_steps, batch, head), of_head(dx, dx_steps, batch, head)
    b, c = of_head(b, b_steps, batch, head // share), of_head(c, c_steps, batch, head // share)
    dt, d_dt = of_head(dt, dt_steps, batch, head), of_head(d_dt, d_dt_steps, batch, head)
    rate = tl.load(a + head.to(tl.int64) * a_step)
    total = tl.zeros((CHUNK,), ACC)
    # In products of whole warp groups, ptxas 12.8 otherwise takes the place of `outputs` from registers that nothing has written.
    DIRECT_FIRST: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    for walked in range(0, 1 if SINGLE else tl.minimum(slot_chunks, chunks - slot * slot_chunks)):
        chunk = slot * slot_chunks + walked
        first = chunk * CHUNK
        lengths, between, since, to_end, through = decays_of(
            dt, rate, prepared, keeps, chunk, length, dt_steps[1], PREPARED, CHUNK, ACC, PRECISE
        )
        scores, pairs = tl.zeros((CHUNK, CHUNK), ACC), tl.zeros((CHUNK, CHUNK), ACC)
        for number in range(COL_BLOCKS):
            keys = block(b + number * COLS, b_steps[1], first, length, state_dim - number * COLS, CHUNK, COLS)
            queries = block(c + number * COLS, c_steps[1], first, length, state_dim - number * COLS, CHUNK, COLS)
            scores = product(queries, tl.trans(keys), scores, PRECISION)
        scores = lower(scores * between)
        for number in range(ROW_BLOCKS):
            inputs = block(x + number * ROWS, x_steps[1], first, length, head_dim - number * ROWS, CHUNK, ROWS)
            outputs = block(dy + number * ROWS, dy_steps[1], first, length, head_dim - number * ROWS, CHUNK, ROWS)
            pairs = product(outputs, tl.trans(inputs), pairs, PRECISION)
        crossing = crossing_paths(scores * pairs * lengths[None, :], EXACT)
        across, reading = tl.zeros((ROWS,), ACC), tl.zeros((CHUNK,), ACC)
        ending, d_steps = tl.zeros((CHUNK,), ACC), tl.zeros((CHUNK,), ACC)
        for row_number in range(ROW_BLOCKS):
            row = row_number * ROWS
            if DIRECT_FIRST:
                outputs = block(dy + row, dy_steps[1], first, length, head_dim - row, CHUNK, ROWS)
                direct = product(tl.trans(computed(scores, outputs)), given(outputs), tl.zeros((CHUNK, ROWS), ACC), PRECISION)
            source, read = tl.zeros((CHUNK, ROWS), ACC), tl.zeros((CHUNK, ROWS), ACC)
            for col_number in range(COL_BLOCKS):
                col = col_number * COLS
                adjoint = state_at(
                    kept_back, ends_back, fades_back, pair, chunk, dy, dt, rate, c, prepared, keeps, length, row, col, head_dim, state_dim,
                    spans, segments, segment_chunks, dy_steps[1], dt_steps[1], c_steps[1],
                    True, ROWS, COLS, PREPARED, SEGMENTED, CHUNK, SPAN, ACC, PRECISE, PRECISION,
                )  # fmt: skip
                keys = block(b + col, b_steps[1], first, length, state_dim - col, CHUNK, COLS)
                source = product(given(keys), tl.trans(computed(adjoint, keys)), source, PRECISION)
                state = state_at(
                    kept, ends, fades, pair, chunk, x, dt, rate, b, prepared, keeps, length, row, col, head_dim, state_dim,
                    spans, segments, segment_chunks, x_steps[1], dt_steps[1], b_steps[1],
                    False, ROWS, COLS, PREPARED, SEGMENTED, CHUNK, SPAN, ACC, PRECISE, PRECISION,
                )  # fmt: skip
                across += tl.sum(rounded_product(state.to(ACC), adjoint.to(ACC)), 1)
                queries = block(c + col, c_steps[1], first, length, state_dim - col, CHUNK, COLS)
                read = product(given(queries), tl.trans(computed(state, queries)), read, PRECISION)
            inputs = block(x + row, x_steps[1], first, length, head_dim - row, CHUNK, ROWS)
            outputs = block(dy + row, dy_steps[1], first, length, head_dim - row, CHUNK, ROWS)
            source *= to_end[:, None]
            ending += tl.sum(rounded_product(source, inputs.to(ACC)), 1)
            reading += tl.sum(rounded_product(read, outputs.to(ACC)), 1)
            if DIRECT_FIRST:
                source += direct
            else:
                source = product(tl.trans(computed(scores, outputs)), given(outputs), source, PRECISION)
            d_steps += tl.sum(rounded_product(source, inputs.to(ACC)), 1)
            store_block(dx + row, dx_steps[1], first, length, head_dim - row, source * lengths[:, None])
        d_exponents = exponent_gradients(
            crossing, reading * since, rounded_product(ending, lengths), tl.sum(across, 0) * through, EXACT
        )
        store_steps(d_dt, d_dt_steps[1], first, length, d_steps + rate.to(ACC) * d_exponents)
        total += lengths * d_exponents
    if HAS_RATE:
        store_sum(shares + (first_pair + pair).to(tl.int64) * slots + slot, total)


@triton.jit
def gradients_of_groups(
    x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, d_b, d_c,
    length, heads, groups, share, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
    first_family, families, slices, slice_heads, slice_step,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, d_b_steps, d_c_steps,
    PREPARED: tl.constexpr, SEGMENTED: tl.constexpr, CHUNK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
    ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr, COL_BLOCKS: tl.constexpr, STAGES: tl.constexpr,
    ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Columns of d_c, or in every other program of d_b: one chunk of a group, for a slice of its heads, one after the other."""
    _of_groups(
        tl.program_id(0), x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, d_b, d_c,
        length, heads, groups, share, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
        first_family, families, slices, slice_heads, slice_step,
        x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, d_b_steps, d_c_steps,
        PREPARED, SEGMENTED, CHUNK, SPAN, ROWS, ROW_BLOCKS, COLS, COL_BLOCKS, STAGES, ACC, PRECISE, PRECISION,
    )  # fmt: skip


@triton.jit
def gradients_of_lone_heads(
    x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, dx, d_b, d_c, d_dt, shares,
    length, heads, head_dim, state_dim, first_pair, pair_count, chunks,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, dx_steps, d_b_steps, d_c_steps, d_dt_steps,
    PREPARED: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr,
    COL_BLOCKS: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """All gradients of one chunk of a head that is alone in its group, by several programs: first dx and d_dt of all, then d_c and d_b."""
    if tl.program_id(0) < pair_count * chunks:
        gradients_of_heads(
            x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, dx, d_dt, shares,
            length, heads, 1, head_dim, state_dim, first_pair, chunks, 1, chunks, pair_count, chunks, 1,
            x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, dx_steps, d_dt_steps,
            True, PREPARED, False, True, CHUNK, 1, ROWS, ROW_BLOCKS, COLS, COL_BLOCKS, ACC, PRECISE, PRECISION, EXACT,
        )  # fmt: skip
    else:
        _of_groups(
            tl.program_id(0) - pair_count * chunks,
            x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, d_b, d_c,
            length, heads, heads, 1, head_dim, state_dim, first_pair, chunks, 1, chunks, first_pair, pair_count, 1, 1, 1,
            x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, d_b_steps, d_c_steps,
            PREPARED, False, CHUNK, 1, ROWS, ROW_BLOCKS, COLS, COL_BLOCKS, 1, ACC, PRECISE, PRECISION,
        )  # fmt: skip


@triton.jit
def _of_groups(
    number, x, dt, a, b, c, dy, prepared, keeps, kept, ends, fades, kept_back, ends_back, fades_back, d_b, d_c,
    length, heads, groups, share, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
    first_family, families, slices, slice_heads, slice_step,
    x_steps, dt_steps, a_step, b_steps, c_steps, dy_steps, d_b_steps, d_c_steps,
    PREPARED: tl.constexpr, SEGMENTED: tl.constexpr, CHUNK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
    ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr, COL_BLOCKS: tl.constexpr, STAGES: tl.constexpr,
    ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    program = number // 2
    first_col, program = program % COL_BLOCKS * COLS, program // COL_BLOCKS
    part, program = program % slices, program // slices
    family, chunk = first_family + program % families, program // families
    group, batch = family % groups, family // groups
    b, c = of_head(b, b_steps, batch, group), of_head(c, c_steps, batch, group)
    first_head = group * share + part * slice_heads
    head_count = tl.minimum(slice_heads, share - part * slice_heads)
    if number % 2 == 0:
        total = _of_group(
            x, dt, a, b, dy, c, prepared, keeps, kept, ends, fades, batch, chunk, first_head, head_count, first_col,
            length, heads, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
            x_steps, dt_steps, a_step, b_steps, dy_steps, c_steps,
            False, PREPARED, SEGMENTED, CHUNK, SPAN, ROWS, ROW_BLOCKS, COLS, STAGES, ACC, PRECISE, PRECISION,
        )  # fmt: skip
        target = of_head(d_c, d_c_steps, batch, group) + part.to(tl.int64) * slice_step + first_col
        store_block(target, d_c_steps[1], chunk * CHUNK, length, state_dim - first_col, total)
    else:
        total = _of_group(
            x, dt, a, b, dy, c, prepared, keeps, kept_back, ends_back, fades_back, batch, chunk, first_head, head_count, first_col,
            length, heads, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
            x_steps, dt_steps, a_step, b_steps, dy_steps, c_steps,
            True, PREPARED, SEGMENTED, CHUNK, SPAN, ROWS, ROW_BLOCKS, COLS, STAGES, ACC, PRECISE, PRECISION,
        )  # fmt: skip
        target = of_head(d_b, d_b_steps, batch, group) + part.to(tl.int64) * slice_step + first_col
        store_block(target, d_b_steps[1], chunk * CHUNK, length, state_dim - first_col, total)


@triton.jit
def _of_group(
    x, dt, a, b, dy, c, prepared, keeps, kept, ends, fades, batch, chunk, first_head, head_count, first_col,
    length, heads, head_dim, state_dim, first_pair, spans, segments, segment_chunks,
    x_steps, dt_steps, a_step, b_steps, dy_steps, c_steps,
    BACKWARDS: tl.constexpr, PREPARED: tl.constexpr, SEGMENTED: tl.constexpr, CHUNK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
    ROW_BLOCKS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr,
    ACC: tl.constexpr, PRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """d_c from b and the states before the chunk; BACKWARDS, d_b from c and the gradients of the states after it.

    b and c are the same for all heads: those are multiplied by the sum of all heads' M.
    """
    first, chunks = chunk * CHUNK, (length + CHUNK - 1) // CHUNK
    total, weights = tl.zeros((CHUNK, COLS), ACC), tl.zeros((CHUNK, CHUNK), ACC)
    for number in tl.range(0, head_count, num_stages=STAGES):
        head = first_head + number
        pair = batch * heads + head
        x_head, dy_head = of_head(x, x_steps, batch, head), of_head(dy, dy_steps, batch, head)
        dt_head, rate = of_head(dt, dt_steps, batch, head), tl.load(a + head.to(tl.int64) * a_step)
        parts, keep = prepared + pair.to(tl.int64) * chunks * (PARTS * CHUNK), keeps + pair.to(tl.int64) * chunks
        lengths, between, since, to_end, _ = decays_of(
            dt_head, rate, parts, keep, chunk, length, dt_steps[1], PREPARED, CHUNK, ACC, PRECISE
        )
        pairs = tl.zeros((CHUNK, CHUNK), ACC)
        # Of f64 no two blocks at once: without a number of them that is known beforehand, the loop stays one.
        for block_number in range((head_dim + (ROWS - 1)) // ROWS if x.dtype.element_ty == tl.float64 else ROW_BLOCKS):
            row = block_number * ROWS
            inputs = block(x_head + row, x_steps[1], first, length, head_dim - row, CHUNK, ROWS)
            outputs = block(dy_head + row, dy_steps[1], first, length, head_dim - row, CHUNK, ROWS)
            pairs = product(outputs, tl.trans(inputs), pairs, PRECISION)
            if BACKWARDS:
                state = state_at(
                    kept, ends, fades, pair - first_pair, chunk, dy_head, dt_head, rate, c, parts, keep, length, row, first_col, head_dim, state_dim,
                    spans, segments, segment_chunks, dy_steps[1], dt_steps[1], c_steps[1],
                    True, ROWS, COLS, PREPARED, SEGMENTED, CHUNK, SPAN, ACC, PRECISE, PRECISION,
                )  # fmt: skip
                weighed = inputs.to(ACC) * (to_end * lengths)[:, None]
            else:
                state = state_at(
                    kept, ends, fades, pair - first_pair, chunk, x_head, dt_head, rate, b, parts, keep, length, row, first_col, head_dim, state_dim,
                    spans, segments, segment_chunks, x_steps[1], dt_steps[1], b_steps[1],
                    False, ROWS, COLS, PREPARED, SEGMENTED, CHUNK, SPAN, ACC, PRECISE, PRECISION,
                )  # fmt: skip
                weighed = outputs.to(ACC) * since[:, None]
            total = product(computed(weighed, inputs), computed(state, inputs), total, PRECISION)
        weights += lower(pairs * (between * lengths[None, :]))
    if BACKWARDS:
        others = block(c + first_col, c_steps[1], first, length, state_dim - first_col, CHUNK, COLS)
        return product(tl.trans(computed(weights, others)), given(others), total, PRECISION)
    else:
        others = block(b + first_col, b_steps[1], first, length, state_dim - first_col, CHUNK, COLS)
        return product(computed(weights, others), given(others), total, PRECISION)


# --- sums over programs ------------------------------------------------------------------------------------------------------


@triton.jit
def add_groups(
    shares_b, shares_c, d_b, d_c, rows, state_dim, slices, slice_step, extents, d_b_steps, d_c_steps,
    ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """d_b and d_c from what each slice of a group's heads has come to."""
    row, col = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLS)[None, :]
    inside, at = (row < rows)[:, None] & (col < state_dim), row[:, None] * state_dim + col
    total_b, total_c = tl.zeros((ROWS, COLS), ACC), tl.zeros((ROWS, COLS), ACC)
    for part in range(0, slices):
        total_b += tl.load(shares_b + part * slice_step + at, mask=inside, other=0.0)
        total_c += tl.load(shares_c + part * slice_step + at, mask=inside, other=0.0)
    tl.store(d_b + offset(row, extents, d_b_steps)[:, None] + col, total_b.to(d_b.dtype.element_ty), mask=inside)
    tl.store(d_c + offset(row, extents, d_c_steps)[:, None] + col, total_c.to(d_c.dtype.element_ty), mask=inside)


@triton.jit
def add_rates(shares, d_a, batches, heads, slots, d_a_step, PLACES: tl.constexpr):
    """One head's d_a from all its shares."""
    head = tl.program_id(0).to(tl.int64)
    totals = tl.zeros((PLACES,), tl.float64)
    for start in range(0, batches * slots, PLACES):
        place = start + tl.arange(0, PLACES)
        at = (place // slots * heads + head) * slots + place % slots
        totals += tl.load(shares + at, mask=place < batches * slots, other=0.0).to(tl.float64)
    total = tl.sum(totals, 0).to(shares.dtype.element_ty)
    tl.store(d_a + head * d_a_step, total.to(d_a.dtype.element_ty))
