"""Gradients of attention on CUDA, in two steps.

By rows: blocks of queries walk the keys twice, once for each query's sum of attn · dattn, once more for dscores and dq.
By columns: blocks of keys walk the queries of all heads that share them, for dk and dv. Either the rows leave dscores behind and
columns are plain products, or they leave their sums and dscores is computed again: one product more, but half the memory traffic.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.sdpa.triton_blocks import of_rows, product, put, tile

__all__ = ["columns", "columns_again", "dscores_rows", "rows"]

PADDED = tl.constexpr(4)  # a sum and zeros: vectors are read by few threads and passed on, where numbers would be read by all


@triton.jit
def rows(
    dy, v, k, attn, dscores, sums, dq, blocks, heads, group, queries, keys, d_v, d_k, dy_steps, v_steps, k_steps, dq_steps,
    SCALE: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, OUT: tl.constexpr, OUTS: tl.constexpr, ONCE: tl.constexpr, WHOLE: tl.constexpr,
    STAGES: tl.constexpr, SUM_STAGES: tl.constexpr,
):  # fmt: skip
    """dq for a block of queries of one head, in `OUTS` parts; beside it dscores, if they are to be kept, or else the sums."""
    program = tl.program_id(0)
    part, first, number = program % OUTS, program // OUTS % blocks * QUERIES, program // OUTS // blocks
    batch, head = (number // heads).to(tl.int64), number % heads
    dy += batch * dy_steps[0] + head * dy_steps[1]
    v += batch * v_steps[0] + head // group * v_steps[1]
    k += batch * k_steps[0] + head // group * k_steps[1] + part * OUT
    dq += batch * dq_steps[0] + head * dq_steps[1] + part * OUT
    attn += number.to(tl.int64) * queries * keys
    dscores += number.to(tl.int64) * queries * keys
    written = keys if part == 0 else 0  # dscores, by one part alone

    own = tile(dy, first, queries, d_v, dy_steps[2], QUERIES, CHUNK, WHOLE)
    out = tl.zeros((QUERIES, OUT), ACC)
    total = tl.zeros((QUERIES,), ACC)
    if ONCE:
        dattn = of_rows(own, dy, v, first, 0, queries, keys, d_v, dy_steps[2], v_steps[2], PRECISION, ACC, KEYS, CHUNK, CHUNKS,
                        WHOLE)  # fmt: skip
        weights = tile(attn, first, queries, keys, keys, QUERIES, KEYS, WHOLE).to(ACC)
        total = tl.sum(weights * dattn, 1)
        gradient = (weights * (dattn - total[:, None])).to(attn.dtype.element_ty)
        if KEEP:
            put(dscores, gradient, first, queries, written, keys, WHOLE)
        out = product(gradient, tile(k, 0, keys, d_k - part * OUT, k_steps[2], KEYS, OUT, WHOLE), out, PRECISION)
    else:
        total = _sums(own, dy, v, attn, first, queries, keys, d_v, dy_steps[2], v_steps[2], PRECISION, ACC, KEYS, CHUNK, CHUNKS, WHOLE,
                      SUM_STAGES)  # fmt: skip
        for start in tl.range(0, keys, KEYS, num_stages=STAGES):
            dattn = of_rows(own, dy, v, first, start, queries, keys, d_v, dy_steps[2], v_steps[2], PRECISION, ACC, KEYS, CHUNK, CHUNKS,
                            WHOLE)  # fmt: skip
            weights = tile(attn + start, first, queries, keys - start, keys, QUERIES, KEYS, WHOLE).to(ACC)
            gradient = (weights * (dattn - total[:, None])).to(attn.dtype.element_ty)
            if KEEP:
                put(dscores + start, gradient, first, queries, written - start, keys, WHOLE)
            out = product(gradient, tile(k, start, keys, d_k - part * OUT, k_steps[2], KEYS, OUT, WHOLE), out, PRECISION)
    if not KEEP:
        padded = tl.where(tl.arange(0, PADDED)[None, :] == 0, total[:, None], 0.0)
        put(sums + number.to(tl.int64) * queries * PADDED, padded, first, queries if part == 0 else 0, PADDED, PADDED, False)
    put(dq, out * SCALE, first, queries, d_k - part * OUT, dq_steps[2], WHOLE)


@triton.jit
def _sums(
    own, dy, v, attn, first, queries, keys, d_v, dy_step, v_step,
    PRECISION: tl.constexpr, ACC: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, WHOLE: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Σ attn · dattn of a block of queries, as Σ dy · y: a plain product, of which only the sums are looked at."""
    QUERIES: tl.constexpr = own.shape[0]
    total = tl.zeros((QUERIES,), ACC)
    if CHUNKS == 1:
        y = tl.zeros((QUERIES, CHUNK), ACC)
        for start in tl.range(0, keys, KEYS, num_stages=STAGES):
            weights = tile(attn + start, first, queries, keys - start, keys, QUERIES, KEYS, WHOLE)
            y = product(weights, tile(v, start, keys, d_v, v_step, KEYS, CHUNK, WHOLE), y, PRECISION)
        total = tl.sum(own.to(ACC) * y, 1)
    else:
        for done in range(0, d_v, CHUNK):
            y = tl.zeros((QUERIES, CHUNK), ACC)
            for start in tl.range(0, keys, KEYS, num_stages=STAGES):
                weights = tile(attn + start, first, queries, keys - start, keys, QUERIES, KEYS, WHOLE)
                y = product(weights, tile(v + done, start, keys, d_v - done, v_step, KEYS, CHUNK, WHOLE), y, PRECISION)
            total += tl.sum(tile(dy + done, first, queries, d_v - done, dy_step, QUERIES, CHUNK, False).to(ACC) * y, 1)
    return total


@triton.jit
def columns(
    matrix, x, out, blocks, heads, slots, group, queries, keys, width, x_steps, out_steps,
    SCALE: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    OUT: tl.constexpr, OUTS: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """matrixᵀ x, summed over the `group` heads of a slot, for a block of keys: dv of attn and dy, or dk of dscores and q."""
    program = tl.program_id(0)
    part, first, number = program % OUTS, program // OUTS % blocks * KEYS, program // OUTS // blocks
    batch, slot = (number // slots).to(tl.int64), number % slots
    total = tl.zeros((KEYS, OUT), ACC)
    for head in range(slot * group, slot * group + group):
        x_head = x + batch * x_steps[0] + head * x_steps[1] + part * OUT
        matrix_head = matrix + (batch * heads + head) * queries * keys + first
        for start in tl.range(0, queries, QUERIES, num_stages=STAGES):
            weights = tl.trans(tile(matrix_head, start, queries, keys - first, keys, QUERIES, KEYS, WHOLE))
            total = product(
                weights, tile(x_head, start, queries, width - part * OUT, x_steps[2], QUERIES, OUT, WHOLE), total, PRECISION
            )
    out += batch * out_steps[0] + slot * out_steps[1] + part * OUT
    put(out, total * SCALE, first, keys, width - part * OUT, out_steps[2], WHOLE)


@triton.jit
def columns_again(
    q, v, dy, attn, sums, dk, dv, blocks, heads, slots, group, queries, keys, d_k, d_v,
    q_steps, v_steps, dy_steps, dk_steps, dv_steps,
    SCALE: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    CHUNK: tl.constexpr, OUT: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """dk and dv for a block of keys of one slot, to which `group` heads belong, with dscores computed from the rows' sums."""
    program = tl.program_id(0)
    first, number = program % blocks * KEYS, program // blocks
    batch, slot = (number // slots).to(tl.int64), number % slots
    own = tile(v + batch * v_steps[0] + slot * v_steps[1], first, keys, d_v, v_steps[2], KEYS, CHUNK, WHOLE)
    k_total, v_total = tl.zeros((KEYS, OUT), ACC), tl.zeros((KEYS, CHUNK), ACC)
    for head in range(slot * group, slot * group + group):
        q_head = q + batch * q_steps[0] + head * q_steps[1]
        dy_head = dy + batch * dy_steps[0] + head * dy_steps[1]
        sums_head = sums + (batch * heads + head) * queries * PADDED
        attn_head = attn + (batch * heads + head) * queries * keys + first
        for start in tl.range(0, queries, QUERIES, num_stages=STAGES):
            up = tile(dy_head, start, queries, d_v, dy_steps[2], QUERIES, CHUNK, WHOLE)
            weights = tl.trans(tile(attn_head, start, queries, keys - first, keys, QUERIES, KEYS, WHOLE))
            total = tl.sum(tile(sums_head, start, queries, PADDED, PADDED, QUERIES, PADDED, WHOLE), 1)
            dattn = product(own, tl.trans(up), tl.zeros((KEYS, QUERIES), ACC), PRECISION)
            gradient = (weights.to(ACC) * (dattn - total[None, :])).to(q.dtype.element_ty)
            v_total = product(weights, up, v_total, PRECISION)
            k_total = product(gradient, tile(q_head, start, queries, d_k, q_steps[2], QUERIES, OUT, WHOLE), k_total, PRECISION)
    put(dk + batch * dk_steps[0] + slot * dk_steps[1], k_total * SCALE, first, keys, d_k, dk_steps[2], WHOLE)
    put(dv + batch * dv_steps[0] + slot * dv_steps[1], v_total, first, keys, d_v, dv_steps[2], WHOLE)


@triton.jit
def dscores_rows(attn, dscores, keys, SCALE: tl.constexpr, ACC: tl.constexpr, KEYS: tl.constexpr):
    """The gradient of one query's scores, scaled, in place of that of its weights."""
    row = tl.program_id(0).to(tl.int64) * keys
    total = tl.zeros((1,), ACC)
    for start in range(0, keys, KEYS):
        key = start + tl.arange(0, KEYS)
        weights = tl.load(attn + row + key, mask=key < keys, other=0.0).to(ACC)
        total += tl.sum(weights * tl.load(dscores + row + key, mask=key < keys, other=0.0).to(ACC), 0)
    for start in range(0, keys, KEYS):
        key = start + tl.arange(0, KEYS)
        weights = tl.load(attn + row + key, mask=key < keys, other=0.0).to(ACC)
        dattn = tl.load(dscores + row + key, mask=key < keys, other=0.0).to(ACC)
        tl.store(dscores + row + key, (weights * (dattn - total) * SCALE).to(dscores.dtype.element_ty), mask=key < keys)
