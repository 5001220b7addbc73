"""Attention forward on CUDA, by blocks of queries.

Keys are walked twice: once for each query's highest score and the sum of its powers, once more for the weights, which are written
and multiplied with the values while they are on chip. Where all keys fit one block, it is the only one and nothing is done twice.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.sdpa.triton_blocks import inside, of_rows, places, product, put, tile
from baracuda_kernels.targets.cuda.triton.indexing import along
from baracuda_kernels.targets.cuda.triton.maths import exp

__all__ = ["attend", "mend_rows", "softmax_rows"]

MEND_ROWS, MEND_COLS = tl.constexpr(16), tl.constexpr(16)


@triton.jit
def attend(
    q, k, v, mask, y, attn, blocks, heads, group, queries, keys, d_k, d_v, q_steps, k_steps, v_steps, mask_steps, y_steps,
    SCALE: tl.constexpr, POWERS: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr, OUT: tl.constexpr, OUTS: tl.constexpr, ONCE: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
    BY_THREAD: tl.constexpr,
):  # fmt: skip
    """y and attn for a block of queries of one head, y in `OUTS` parts. POWERS: scores are exponents of two, not of e.

    Without a mask, scores are scaled where they are subtracted from each other, which costs nothing.
    """
    LATE: tl.constexpr = POWERS and SCALE > 0.0 and not MASKED
    UNIT: tl.constexpr = SCALE if LATE else 1.0
    EARLY: tl.constexpr = 1.0 if LATE else SCALE
    program = tl.program_id(0)
    part = program % OUTS
    first = (blocks - 1 - program // OUTS % blocks) * QUERIES  # of a causal mask, the longest first
    number = program // OUTS // blocks
    batch, head = (number // heads).to(tl.int64), number % heads
    q += batch * q_steps[0] + head * q_steps[1]
    k += batch * k_steps[0] + head // group * k_steps[1]
    v += batch * v_steps[0] + head // group * v_steps[1] + part * OUT
    y += batch * y_steps[0] + head * y_steps[1] + part * OUT
    mask += batch * mask_steps[0] + head * mask_steps[1]
    attn += number.to(tl.int64) * queries * keys
    written = keys if part == 0 else 0  # weights, by one part alone

    own = tile(q, first, queries, d_k, q_steps[2], QUERIES, CHUNK, WHOLE)
    out = tl.zeros((QUERIES, OUT), ACC)
    if ONCE:
        scores = _scores(own, q, k, mask, first, 0, queries, keys, d_k, q_steps[2], k_steps[2], mask_steps, EARLY, POWERS, CAUSAL,
                         MASKED, MASK_CONTIGUOUS, PRECISION, ACC, KEYS, CHUNK, CHUNKS, WHOLE)  # fmt: skip
        base = _finite_base(tl.max(scores, 1) * UNIT)
        powers = _power(scores * UNIT - base[:, None], POWERS)
        weights = (powers * _share(tl.sum(powers, 1))[:, None]).to(attn.dtype.element_ty)
        put(attn, weights, first, queries, written, keys, WHOLE)
        out = product(weights, tile(v, 0, keys, d_v - part * OUT, v_steps[2], KEYS, OUT, WHOLE), out, PRECISION)
    else:
        stop = tl.minimum(keys, first + QUERIES) if CAUSAL else keys
        tops = tl.full((QUERIES, 4) if BY_THREAD else (QUERIES,), float("-inf"), ACC)
        totals = tl.zeros((QUERIES, 4) if BY_THREAD else (QUERIES,), ACC)
        for start in tl.range(0, stop, KEYS, num_stages=STAGES):
            scores = _scores(own, q, k, mask, first, start, queries, keys, d_k, q_steps[2], k_steps[2], mask_steps, EARLY, POWERS, CAUSAL,
                             MASKED, MASK_CONTIGUOUS, PRECISION, ACC, KEYS, CHUNK, CHUNKS, WHOLE)  # fmt: skip
            if BY_THREAD:
                tops, totals = _folded_by_thread(scores, tops, totals, UNIT, POWERS)
            else:
                tops, totals = _folded(scores, tops, totals, UNIT, POWERS)
        if BY_THREAD:
            base = _finite_base(tl.max(tops, 1) * UNIT)
            total = tl.sum(totals * _power(tops * UNIT - base[:, None], POWERS), 1)
        else:
            base, total = _finite_base(tops * UNIT), totals
        share = _share(total)
        if POWERS:  # the share goes into the exponent
            base += tl.where(total == 0.0, 0.0, tl.log2(total))
        for start in tl.range(0, stop, KEYS, num_stages=STAGES):
            scores = _scores(own, q, k, mask, first, start, queries, keys, d_k, q_steps[2], k_steps[2], mask_steps, EARLY, POWERS, CAUSAL,
                             MASKED, MASK_CONTIGUOUS, PRECISION, ACC, KEYS, CHUNK, CHUNKS, WHOLE)  # fmt: skip
            weights = _power(scores * UNIT - base[:, None], POWERS)
            weights = (weights if POWERS else weights * share[:, None]).to(attn.dtype.element_ty)
            put(attn + start, weights, first, queries, written - start, keys, WHOLE)
            out = product(weights, tile(v, start, keys, d_v - part * OUT, v_steps[2], KEYS, OUT, WHOLE), out, PRECISION)
        if CAUSAL:  # whole blocks that nobody here sees
            for start in range(tl.cdiv(stop, KEYS) * KEYS, keys, KEYS):
                put(attn + start, tl.zeros((QUERIES, KEYS), attn.dtype.element_ty), first, queries, written - start, keys, WHOLE)
    put(y, out, first, queries, d_v - part * OUT, y_steps[2], WHOLE)


@triton.jit
def softmax_rows(
    attn, mask, heads, queries, keys, mask_steps,
    SCALE: tl.constexpr, POWERS: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr,
    ACC: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """The weights of one query, in place of the products that its scores are made of."""
    program = tl.program_id(0)
    number, query = program // queries, program % queries
    mask += (number // heads).to(tl.int64) * mask_steps[0] + number % heads * mask_steps[1] + query.to(tl.int64) * mask_steps[2]
    attn += program.to(tl.int64) * keys
    top = tl.full((1,), float("-inf"), ACC)
    total = tl.zeros((1,), ACC)
    for start in range(0, keys, KEYS):
        key = start + tl.arange(0, KEYS)
        scores = _row_scores(attn, mask, query, key, keys, mask_steps[3], SCALE, POWERS, CAUSAL, MASKED, MASK_CONTIGUOUS, ACC)
        higher = tl.maximum(top, tl.max(scores, 0))
        base = _finite_base(higher)
        total = total * _power(top - base, POWERS) + tl.sum(_power(scores - base, POWERS), 0)
        top = higher
    base = _finite_base(top)
    share = _share(total)
    for start in range(0, keys, KEYS):
        key = start + tl.arange(0, KEYS)
        scores = _row_scores(attn, mask, query, key, keys, mask_steps[3], SCALE, POWERS, CAUSAL, MASKED, MASK_CONTIGUOUS, ACC)
        tl.store(attn + key, (_power(scores - base, POWERS) * share).to(attn.dtype.element_ty), mask=key < keys)


@triton.jit
def mend_rows(
    y, attn, v, mask, blocks, heads, group, queries, keys, d_v, v_steps, mask_steps, y_steps,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr,
    OUT: tl.constexpr, OUTS: tl.constexpr,
):  # fmt: skip
    """Looks y through for what hidden values have spoiled."""
    program = tl.program_id(0)
    part, block, number = program % OUTS, program // OUTS % blocks, program // OUTS // blocks
    batch, head = (number // heads).to(tl.int64), number % heads
    v += batch * v_steps[0] + head // group * v_steps[1] + part * OUT
    y += batch * y_steps[0] + head * y_steps[1] + part * OUT
    mask += batch * mask_steps[0] + head * mask_steps[1]
    attn += number.to(tl.int64) * queries * keys
    _mend(y, attn, v, mask, block * QUERIES, queries, keys, d_v - part * OUT, y_steps[2], v_steps[2], mask_steps, CAUSAL, MASKED,
          MASK_CONTIGUOUS, ACC, QUERIES, OUT)  # fmt: skip


# --- scores ----------------------------------------------------------------------------------------------------------------------


@triton.jit
def _scores(
    own, q, k, mask, first, start, queries, keys, d_k, q_step, k_step, mask_steps,
    SCALE: tl.constexpr, POWERS: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """-inf where a key is hidden, whatever the product was."""
    QUERIES: tl.constexpr = own.shape[0]
    scores = (
        of_rows(own, q, k, first, start, queries, keys, d_k, q_step, k_step, PRECISION, ACC, KEYS, CHUNK, CHUNKS, WHOLE) * SCALE
    )
    if MASKED:
        added = _mask_tile(mask, first, start, queries, keys, mask_steps, MASK_CONTIGUOUS, QUERIES, KEYS).to(ACC)
        scores = _with_mask(scores, added, POWERS)
    key = start + tl.arange(0, KEYS)[None, :]
    if CAUSAL:
        scores = tl.where(key > first + tl.arange(0, QUERIES)[:, None], float("-inf"), scores)
    if not WHOLE:
        scores = tl.where(key < keys, scores, float("-inf"))
    return scores


@triton.jit
def _folded(scores, tops, totals, UNIT: tl.constexpr, POWERS: tl.constexpr):
    """Some more keys taken into each query's highest score and the sum of its powers."""
    higher = tl.maximum(tops, tl.max(scores, 1))
    base = _finite_base(higher * UNIT)
    return higher, totals * _power(tops * UNIT - base, POWERS) + tl.sum(_power(scores * UNIT - base[:, None], POWERS), 1)


@triton.jit
def _folded_by_thread(scores, tops, totals, UNIT: tl.constexpr, POWERS: tl.constexpr):
    """The same where a thread has pairs of neighbours, eight apart: it takes their maximum and sum alone, without the others."""
    spread = tl.reshape(scores, (scores.shape[0], scores.shape[1] // 8, 4, 2))
    higher = tl.maximum(tops, tl.max(tl.max(spread, 3), 1))
    base = _finite_base(higher * UNIT)
    powers = _power(spread * UNIT - base[:, None, :, None], POWERS)
    return higher, totals * _power(tops * UNIT - base, POWERS) + tl.sum(tl.sum(powers, 3), 1)


@triton.jit
def _row_scores(
    attn, mask, query, key, keys, mask_step,
    SCALE: tl.constexpr, POWERS: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    scores = tl.load(attn + key, mask=key < keys, other=0.0).to(ACC) * SCALE
    if MASKED:
        added = tl.load(mask + along(key, mask_step, MASK_CONTIGUOUS), mask=key < keys, other=0.0).to(ACC)
        scores = _with_mask(scores, added, POWERS)
    if CAUSAL:
        scores = tl.where(key > query, float("-inf"), scores)
    return tl.where(key < keys, scores, float("-inf"))


@triton.jit
def _mask_tile(
    mask, first, start, queries, keys, steps, CONTIGUOUS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):  # fmt: skip
    query, key = first + tl.arange(0, QUERIES), start + tl.arange(0, KEYS)
    at = mask + query.to(tl.int64)[:, None] * steps[2] + along(key, steps[3], CONTIGUOUS)[None, :]
    return tl.load(at, mask=(query < queries)[:, None] & (key < keys)[None, :], other=0.0)


@triton.jit
def _with_mask(scores, added, POWERS: tl.constexpr):
    unit: tl.constexpr = 1.4426950408889634 if POWERS else 1.0
    return tl.where(added == float("-inf"), float("-inf"), scores + added * unit)


@triton.jit
def _power(x, POWERS: tl.constexpr):
    return tl.exp2(x) if POWERS else exp(x, True)


@triton.jit
def _finite_base(top):
    """What powers are taken relative to: 0 where every score so far is -inf."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _share(total):
    """What a power counts for; nothing where all keys are hidden."""
    return tl.where(total == 0.0, 0.0, 1.0 / total)


# --- hidden values that are not finite ----------------------------------------------------------------------------------------------


@triton.jit
def _spoiled(values):
    return ~(tl.abs(values) < float("inf"))


@triton.jit
def _any(flags):
    return tl.max(tl.max(flags.to(tl.int32), 1), 0) > 0


@triton.jit
def _mend(
    y, attn, v, mask, first, queries, keys, width, y_step, v_step, mask_steps,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, MASK_CONTIGUOUS: tl.constexpr, ACC: tl.constexpr, QUERIES: tl.constexpr,
    OUT: tl.constexpr,
):  # fmt: skip
    """A hidden key's weight of 0 times a value that is not finite is NaN: where y shows one, it is summed again without hidden keys."""
    for down in range(first, first + QUERIES, MEND_ROWS):
        for across in range(0, OUT, MEND_COLS):
            before = tile(y + across, down, queries, width - across, y_step, MEND_ROWS, MEND_COLS, False).to(ACC)
            if _any(_spoiled(before)):
                total = tl.zeros((MEND_ROWS, MEND_COLS), ACC)
                for start in range(0, keys, MEND_ROWS):
                    weights = tile(attn + start, down, queries, keys - start, keys, MEND_ROWS, MEND_ROWS, False).to(ACC)
                    values = tile(v + across, start, keys, width - across, v_step, MEND_ROWS, MEND_COLS, False).to(ACC)
                    seen = inside(down, queries, keys - start, MEND_ROWS, MEND_ROWS)
                    if CAUSAL:
                        seen = seen & (start + tl.arange(0, MEND_ROWS)[None, :] <= down + tl.arange(0, MEND_ROWS)[:, None])
                    if MASKED:
                        added = _mask_tile(mask, down, start, queries, keys, mask_steps, MASK_CONTIGUOUS, MEND_ROWS, MEND_ROWS)
                        seen = seen & (added.to(ACC) != float("-inf"))
                    total += tl.sum(tl.where(seen[:, :, None], weights[:, :, None] * values[None, :, :], 0.0), 1)
                after = tl.where(_spoiled(before), total, before).to(y.dtype.element_ty)
                at = places(y + across, down, y_step, MEND_ROWS, MEND_COLS)
                tl.store(at, after, mask=inside(down, queries, width - across, MEND_ROWS, MEND_COLS))
