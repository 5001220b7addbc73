"""The Triton bodies of the scan.

A program walks a segment of one head's sequence chunk by chunk, its share of the state on chip, and reads every input once. Where there
are too few heads to fill the machine, sequences are cut into several segments: a first walk finds the state each segment ends with if
it starts with none, those are passed on from segment to segment, and a second walk starts from what has been passed on to it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.gpu.products import product
from baracuda_kernels.ops.attention.ssd.triton_chunk import (
    block,
    computed,
    decay,
    decays_between,
    given,
    load_steps,
    log_decays,
    of_head,
    store_block,
)

__all__ = ["pass_states", "walk"]


@triton.jit
def walk(
    x, dt, a, b, c, initial, starts, y, final, decays, length, heads, sharing, width, states, segments, span, strips, enters, leaves,
    x_steps, dt_steps, a_step, b_steps, c_steps, initial_steps, start_steps, y_steps, final_steps,
    OUTPUTS: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, PRECISE: tl.constexpr,
    CHUNK: tl.constexpr, COLS: tl.constexpr, STATES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A segment of one head: y, and the last state; or, without OUTPUTS, each segment's last state and how much it forgets.

    The state is held as [state, column]: x enters as it is, and what is scaled is the smaller operand of each product.
    """
    program = tl.program_id(0)
    strip, segment = program % strips, program // strips % segments
    batch, head = program // strips // segments // heads, program // strips // segments % heads
    x, y = of_head(x, x_steps, batch, head) + strip * COLS, of_head(y, y_steps, batch, head) + strip * COLS
    b, c = of_head(b, b_steps, batch, head // sharing), of_head(c, c_steps, batch, head // sharing)
    dt = of_head(dt, dt_steps, batch, head)
    rate = tl.load(a + head.to(tl.int64) * a_step)
    width -= strip * COLS
    # A state lies as [column, state].
    col, place = tl.arange(0, COLS)[None, :], tl.arange(0, STATES)[:, None]
    inside, row = (col < width) & (place < states), strip * COLS + col
    at = _state_at(initial_steps, batch, head, segment, row) + place
    state = tl.load(initial + at, mask=inside & (segment == 0) & (enters != 0), other=0.0).to(ACC)
    if OUTPUTS:
        at = _state_at(start_steps, batch, head, segment - 1, row) + place
        state += tl.load(starts + at, mask=inside & (segment > 0), other=0.0).to(ACC)
    first = segment * span
    end = tl.minimum(first + span, length)
    forgotten = tl.zeros((), tl.float64)
    following = load_steps(dt, dt_steps[1], first, end, CHUNK)
    for start in tl.range(first, end, CHUNK, num_stages=STAGES):
        steps = following.to(ACC)
        following = load_steps(dt, dt_steps[1], start + CHUNK, end, CHUNK)
        x_chunk = block(x, x_steps[1], start, end, width, CHUNK, COLS)
        b_chunk = block(b, b_steps[1], start, end, states, CHUNK, STATES)
        sums, total = log_decays(steps, rate, end - start)
        if OUTPUTS:
            c_chunk = block(c, c_steps[1], start, end, states, CHUNK, STATES)
            scores = product(c_chunk, tl.trans(b_chunk), tl.zeros((CHUNK, CHUNK), ACC), PRECISION)
            past = product(given(c_chunk), computed(state, c_chunk), tl.zeros((CHUNK, COLS), ACC), PRECISION)
            order = tl.arange(0, CHUNK)
            weights = scores * (decays_between(sums, ACC, PRECISE) * steps[None, :])
            weights = tl.where(order[:, None] >= order[None, :], weights, 0.0)  # even if a score of the future is not finite
            past *= decay(sums, ACC, PRECISE)[:, None]
            result = product(computed(weights, x_chunk), given(x_chunk), past, PRECISION)
            store_block(y, y_steps[1], start, end, width, result)
        entering = x_chunk.to(ACC) * (decay(total - sums, ACC, PRECISE) * steps)[:, None]
        state *= decay(total, ACC, PRECISE)
        state = product(tl.trans(given(b_chunk)), computed(entering, x_chunk), state, PRECISION)
        forgotten += total
    at = _state_at(final_steps, batch, head, segment, row) + place
    if OUTPUTS:
        tl.store(final + at, state, mask=inside & (segment == segments - 1) & (leaves != 0))
    else:
        tl.store(final + at, state, mask=inside)
        tl.store(decays + program // strips, decay(forgotten, ACC, PRECISE), mask=strip == 0)


@triton.jit
def _state_at(steps, batch, head, segment, row):
    """The offset of rows of a state; `steps` are those of batch, head, row and segment."""
    return batch.to(tl.int64) * steps[0] + head.to(tl.int64) * steps[1] + row.to(tl.int64) * steps[2] + segment * steps[3]


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
