"""The Triton bodies of the scan.

A program walks a segment of one head's sequence chunk by chunk, its share of the state on chip, and reads every input once. Where there
are too few heads to fill the machine, sequences are split into several segments: a first walk finds the state each segment ends with if
it starts with none, those are passed on from segment to segment, and a second walk starts from what has been passed on to it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.ssd.triton_chunk import (
    block,
    bounded_exponents,
    computed,
    decay,
    differences,
    given,
    in_parts,
    load_steps,
    log_decays,
    of_head,
    store_block,
)
from baracuda_kernels.targets.cuda.triton.products import product

__all__ = ["PARTS", "pass_states", "prepare", "recur", "walk"]

LOG2E = tl.constexpr(1.4426950408889634)
PARTS = tl.constexpr(4)  # numbers that are prepared of every step


@triton.jit
def walk(
    x, dt, a, b, c, initial, starts, y, length, heads, sharing, width, states, segments, span, strips, enters,
    x_steps, dt_steps, a_step, b_steps, c_steps, initial_steps, start_steps, y_steps,
    final, decays, prepared, kept, leaves, final_steps,
    OUTPUTS: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, PRECISE: tl.constexpr, WHOLE: tl.constexpr,
    PREPARED: tl.constexpr, TURNED: tl.constexpr, CHUNK: tl.constexpr, COLS: tl.constexpr, STATES: tl.constexpr,
    PIECES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A segment of one head: y, and the last state; or, without OUTPUTS, each segment's last state and how much it keeps.

    The state is held in PIECES, [state, column] each. TURNED, it is [column, state], and y is computed as [column, step]: then the
    state is the operand that a product takes from registers, which is the best for elements that need no conversion.
    """
    program = tl.program_id(0)
    strip, segment = program % strips, program // strips % segments
    batch, head = program // strips // segments // heads, program // strips // segments % heads
    x, y = of_head(x, x_steps, batch, head) + strip * COLS, of_head(y, y_steps, batch, head) + strip * COLS
    b, c = of_head(b, b_steps, batch, head // sharing), of_head(c, c_steps, batch, head // sharing)
    dt = of_head(dt, dt_steps, batch, head)
    rate = tl.load(a + head.to(tl.int64) * a_step)
    initial += _state_at(initial_steps, batch, head, segment, strip * COLS)
    starts += _state_at(start_steps, batch, head, segment - 1, strip * COLS)
    final += _state_at(final_steps, batch, head, segment, strip * COLS)
    width = COLS if WHOLE else width - strip * COLS
    state = ()
    for piece in tl.static_range(PIECES):
        at, inside = _state_places(initial_steps, 0, width, states, piece, STATES, COLS, WHOLE, TURNED)
        first_state = tl.load(initial + at, mask=inside & (segment == 0) & (enters != 0), other=0.0).to(ACC)
        if OUTPUTS:
            at, inside = _state_places(start_steps, 0, width, states, piece, STATES, COLS, WHOLE, TURNED)
            first_state += tl.load(starts + at, mask=inside & (segment > 0), other=0.0).to(ACC)
        state = state + (first_state,)  # type: ignore[assignment]  # noqa: RUF005
    first = segment * span
    end = tl.minimum(first + span, length)
    forgotten, chunks = tl.full((), 1.0, ACC), 0
    if PREPARED:
        before = (batch * heads + head).to(tl.int64) * _count(length, CHUNK)
        prepared += before * (PARTS * CHUNK)
        kept += before
        next_keep = tl.load(kept + first // CHUNK, mask=first < end, other=0.0)
    else:
        next_steps = load_steps(dt, dt_steps[1], first, end, CHUNK)
    for start in tl.range(first, end, CHUNK, num_stages=STAGES):
        if PREPARED:
            steps, inflow, high, low = _prepared(prepared, start, CHUNK, PRECISE)
            keep, next_keep = next_keep, tl.load(kept + start // CHUNK + 1, mask=start + CHUNK < end, other=0.0)
        else:
            steps, next_steps = next_steps.to(ACC), load_steps(dt, dt_steps[1], start + CHUNK, end, CHUNK)
            sums, total = log_decays(steps, rate, end - start)
            inflow, keep = decay(total - sums, ACC, PRECISE) * steps, decay(total, ACC, PRECISE)
            high, low = in_parts(sums * LOG2E, ACC)
        x_chunk = block(x, x_steps[1], start, end, width, CHUNK, COLS)
        entering = computed(x_chunk.to(ACC) * inflow[:, None], x_chunk)
        if OUTPUTS:
            scores = tl.zeros((CHUNK, CHUNK), ACC)
            for piece in tl.static_range(PIECES):
                b_chunk = _piece(b, b_steps[1], start, end, states, piece, CHUNK, STATES, WHOLE)
                c_chunk = _piece(c, c_steps[1], start, end, states, piece, CHUNK, STATES, WHOLE)
                if TURNED:
                    scores = product(b_chunk, tl.trans(c_chunk), scores, PRECISION)
                else:
                    scores = product(c_chunk, tl.trans(b_chunk), scores, PRECISION)
                if PIECES > 1 and STAGES == 1:
                    tl.debug_barrier()  # lest all pieces are loaded at once
            weights = computed(_weighted(scores, steps, high, low, start, PRECISE, TURNED), x_chunk)
            result = tl.zeros((COLS, CHUNK) if TURNED else (CHUNK, COLS), ACC)
            for piece in tl.static_range(PIECES):
                if PIECES > 1:
                    c_chunk = _piece(c, c_steps[1], start, end, states, piece, CHUNK, STATES, WHOLE)
                if TURNED:
                    result = product(computed(state[piece], c_chunk), tl.trans(given(c_chunk)), result, PRECISION)
                else:
                    result = product(given(c_chunk), computed(state[piece], c_chunk), result, PRECISION)
                if PIECES > 1 and STAGES == 1:
                    tl.debug_barrier()
            if TURNED:
                result = product(tl.trans(given(x_chunk)), weights, result * tl.exp2(high)[None, :], PRECISION)
                result = tl.trans(result)
            else:
                result = product(weights, given(x_chunk), result * tl.exp2(high)[:, None], PRECISION)
            store_block(y, y_steps[1], start, end, width, result)
        next_state = ()
        for piece in tl.static_range(PIECES):
            if PIECES > 1 or not OUTPUTS:
                b_chunk = _piece(b, b_steps[1], start, end, states, piece, CHUNK, STATES, WHOLE)
            if TURNED:
                grown = product(tl.trans(entering), given(b_chunk), state[piece] * keep, PRECISION)
            else:
                grown = product(tl.trans(given(b_chunk)), entering, state[piece] * keep, PRECISION)
            next_state = next_state + (grown,)  # type: ignore[assignment]  # noqa: RUF005
            if PIECES > 1 and STAGES == 1:
                tl.debug_barrier()
        state = next_state
        forgotten, chunks = forgotten * keep, chunks + 1
    for piece in tl.static_range(PIECES):
        # From `chunks` on, lest all these places are kept through the loop.
        at, inside = _state_places(final_steps, tl.minimum(chunks, 0), width, states, piece, STATES, COLS, WHOLE, TURNED)
        wanted = (segment == segments - 1) & (leaves != 0) if OUTPUTS else True
        tl.store(final + at, state[piece], mask=inside & wanted)
    if not OUTPUTS:
        tl.store(decays + program // strips, forgotten, mask=strip == 0)


@triton.jit
def _weighted(scores, steps, high, low, start, PRECISE: tl.constexpr, TURNED: tl.constexpr):
    """What each step's input counts at each step that is not before it, from c times b: [later, earlier], or TURNED."""
    order = start + tl.arange(0, scores.shape[0])  # from `start` on, lest a mask of all pairs is kept through the loop
    between = differences(high, low, PRECISE)
    if TURNED:
        weights, counts = scores * (tl.exp2(-between) * steps[:, None]), order[:, None] <= order[None, :]
    else:
        weights, counts = scores * (tl.exp2(between) * steps[None, :]), order[:, None] >= order[None, :]
    return tl.where(counts, weights, 0.0)  # whatever the others are


@triton.jit
def _prepared(prepared, start, CHUNK: tl.constexpr, PRECISE: tl.constexpr):
    """dt of a chunk's steps, how much of their input reaches its end, and the sums of log-decays to the base 2 in two parts."""
    place = prepared + (tl.zeros((), tl.int64) + start) * PARTS + tl.arange(0, CHUNK)
    high = tl.load(place + 2 * CHUNK)
    return tl.load(place), tl.load(place + CHUNK), high, tl.load(place + 3 * CHUNK) if PRECISE else high


@triton.jit
def prepare(
    dt, a, prepared, kept, length, heads, blocks, dt_steps, a_step,
    ACC: tl.constexpr, PRECISE: tl.constexpr, CHUNK: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """All that depends on dt and a alone, of one chunk of some heads, in the order in which `walk` reads it."""
    chunks = _count(length, CHUNK)
    program = tl.program_id(0)
    chunk, batch = program // blocks % chunks, (program // blocks // chunks).to(tl.int64)
    head, row = program % blocks * HEADS + tl.arange(0, HEADS)[None, :], tl.arange(0, CHUNK)[:, None]
    place, exists = chunk * CHUNK + row, head < heads
    inside = exists & (place < length)
    at = batch * dt_steps[0] + place.to(tl.int64) * dt_steps[1] + head.to(tl.int64) * dt_steps[2]
    steps = tl.load(dt + at, mask=inside, other=0.0)
    rate = tl.load(a + head.to(tl.int64) * a_step, mask=exists, other=0.0)
    exponents = bounded_exponents(steps, rate, inside)
    sums, total = tl.cumsum(exponents, 0), tl.sum(exponents, 0, keep_dims=True)
    number = (batch * heads + head) * chunks + chunk
    at = number * (PARTS * CHUNK) + row
    high, low = in_parts(sums * LOG2E, ACC)
    tl.store(prepared + at, steps.to(ACC), mask=exists)
    tl.store(prepared + at + CHUNK, decay(total - sums, ACC, PRECISE) * steps.to(ACC), mask=exists)
    tl.store(prepared + at + 2 * CHUNK, high, mask=exists)
    if PRECISE:
        tl.store(prepared + at + 3 * CHUNK, low, mask=exists)
    tl.store(kept + number, decay(total, ACC, PRECISE), mask=exists)


@triton.jit
def _count(length, CHUNK: tl.constexpr):
    """How many chunks there are."""
    return (length + (CHUNK - 1)) // CHUNK


@triton.jit
def _piece(pointer, step, start, end, states, piece: tl.constexpr, CHUNK: tl.constexpr, STATES: tl.constexpr, WHOLE: tl.constexpr):
    """Some columns of b or c."""
    width = STATES if WHOLE else states - piece * STATES
    return block(pointer + piece * STATES, step, start, end, width, CHUNK, STATES)


@triton.jit
def _state_at(steps, batch, head, segment, row):
    """Where rows of a state begin; `steps` are those of batch, head, row and segment."""
    return batch.to(tl.int64) * steps[0] + head.to(tl.int64) * steps[1] + row.to(tl.int64) * steps[2] + segment * steps[3]


@triton.jit
def _state_places(
    steps, first, width, states, piece: tl.constexpr, STATES: tl.constexpr, COLS: tl.constexpr, WHOLE: tl.constexpr, TURNED: tl.constexpr
):  # fmt: skip
    """Offsets of a piece of a state, as it is held, and which of them there are."""
    col, place = first + tl.arange(0, COLS), piece * STATES + tl.arange(0, STATES)
    if TURNED:
        col, place = col[:, None], place[None, :]
    else:
        col, place = col[None, :], place[:, None]
    return col * steps[2] + place, (col < width) & ((place >= 0) if WHOLE else (place < states))


@triton.jit
def recur(
    x, dt, a, b, c, initial, starts, y, length, heads, sharing, width, states, segments, span, strips, enters,
    x_steps, dt_steps, a_step, b_steps, c_steps, initial_steps, start_steps, y_steps, final, leaves, final_steps,
    REPAIR: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr, COLS: tl.constexpr, STATES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A segment of one head step by step; to REPAIR, only if its last y is not finite.

    In a product, zero times what is not finite is not zero: an x that is not would go back in time, to the start of its chunk.
    """
    program = tl.program_id(0)
    strip, segment = program % strips, program // strips % segments
    batch, head = program // strips // segments // heads, program // strips // segments % heads
    first = segment * span
    end = tl.minimum(first + span, length)
    width -= strip * COLS
    y = of_head(y, y_steps, batch, head) + strip * COLS
    wanted = True
    if REPAIR:
        last = tl.abs(block(y, y_steps[1], end - 1, end, width, 1, COLS).to(ACC))
        wanted = tl.sum(tl.where(last < float("inf"), 0, 1)) > 0
    if wanted:
        x, dt = of_head(x, x_steps, batch, head) + strip * COLS, of_head(dt, dt_steps, batch, head)
        b, c = of_head(b, b_steps, batch, head // sharing), of_head(c, c_steps, batch, head // sharing)
        initial += _state_at(initial_steps, batch, head, segment, strip * COLS)
        starts += _state_at(start_steps, batch, head, segment - 1, strip * COLS)
        at, inside = _state_places(initial_steps, 0, width, states, 0, STATES, COLS, False, True)
        state = tl.load(initial + at, mask=inside & (segment == 0) & (enters != 0), other=0.0).to(ACC)
        at, inside = _state_places(start_steps, 0, width, states, 0, STATES, COLS, False, True)
        state += tl.load(starts + at, mask=inside & (segment > 0), other=0.0).to(ACC)
        rate = tl.load(a + head.to(tl.int64) * a_step).to(tl.float64)
        for place in tl.range(first, end, num_stages=STAGES):
            step = tl.load(dt + (tl.zeros((), tl.int64) + place) * dt_steps[1])
            entering = tl.trans(block(x, x_steps[1], place, end, width, 1, COLS).to(ACC)) * step.to(ACC)
            state *= decay(step.to(tl.float64) * rate, ACC, PRECISE)
            state += entering * block(b, b_steps[1], place, end, states, 1, STATES).to(ACC)
            result = tl.sum(state * block(c, c_steps[1], place, end, states, 1, STATES).to(ACC), 1)
            store_block(y, y_steps[1], place, end, width, result[None, :])
        if not REPAIR:
            final += _state_at(final_steps, batch, head, segment, strip * COLS)
            at, inside = _state_places(final_steps, 0, width, states, 0, STATES, COLS, False, True)
            tl.store(final + at, state, mask=inside & (leaves != 0))


@triton.jit
def pass_states(states, decays, segments, size, blocks, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """What each segment ends with if it starts with nothing becomes what it ends with; the first one is right already."""
    sequence, number = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    place = number * BLOCK + tl.arange(0, BLOCK)
    states += sequence.to(tl.int64) * segments * size + place
    decays += sequence.to(tl.int64) * segments
    state = tl.load(states, mask=place < size, other=0.0)
    following = tl.load(decays + 1, mask=segments > 1, other=0.0)
    for segment in tl.range(1, segments, num_stages=STAGES):
        kept, following = following, tl.load(decays + segment + 1, mask=segment + 1 < segments, other=0.0)
        at = states + size.to(tl.int64) * segment
        state = tl.load(at, mask=place < size, other=0.0) + kept * state
        tl.store(at, state, mask=place < size)
