"""Order statistics on CUDA of lines that fit the registers of a program: read once, and never moved.

Elements are integers here that are ordered as the elements are (`keys_of`); of floats, every NaN is the largest. The key of a rank is
found bit by bit from the top: a bit is set if no more keys than the rank are below what it then would be.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted
from baracuda_kernels.targets.cuda.triton.indexing import along, offset

__all__ = [
    "as_real",
    "between",
    "choose_in_registers",
    "choose_sorted",
    "keys_of",
    "neighbours",
    "offset_along",
    "quantiles_in_registers",
    "rank_of_median",
    "spread",
]

NANMEDIAN = tl.constexpr("nanmedian")
QUANTILE = tl.constexpr("quantile")
LINEAR, MIDPOINT, HIGHER, NEAREST = (tl.constexpr(name) for name in ("linear", "midpoint", "higher", "nearest"))

COUNT_BYTES = tl.constexpr(4)
MOST_COUNTED = tl.constexpr(32 << 10)  # bytes of counts that registers have room for beside keys and neighbours: more are spilled


# --- keys ------------------------------------------------------------------------------------------------------------------------


@triton.jit
def keys_of(raw, LARGEST: tl.constexpr, INFINITY: tl.constexpr):
    """Sort keys from the bits of elements, as wide as keys are. Sign and magnitude become one number, so that both zeros are equal."""
    if INFINITY is None:
        return raw
    else:
        size = raw & LARGEST
        return tl.where(size > INFINITY, LARGEST, tl.where(raw < 0, -size, raw))


@triton.jit
def as_real(key, LEAST: tl.constexpr, ELEMENT: tl.constexpr, REAL: tl.constexpr):
    """The element of a key, in the numbers that are computed in."""
    raw = tl.where(key < 0, -key | LEAST, key)
    if tl.bfloat16 == ELEMENT:
        return (raw << 16).to(tl.float32, bitcast=True)
    elif tl.float16 == ELEMENT:
        return raw.to(tl.int16).to(tl.float16, bitcast=True).to(REAL)
    else:
        return raw.to(ELEMENT, bitcast=True)


@triton.jit
def offset_along(place, extents, steps, ALONG: tl.constexpr):
    """Where elements are on their line."""
    if ALONG:
        return place
    else:
        return offset(place, extents, steps)


@triton.jit
def key_of_rank(keys, rank, LEAST: tl.constexpr, BITS: tl.constexpr):
    found = tl.zeros_like(rank).to(keys.dtype) + LEAST
    for step in range(BITS):
        candidate = found + (tl.full((), 1, keys.dtype) << (BITS - 1 - step))
        below = tl.sum((keys < candidate[:, None]).to(tl.int32), 1)
        found = tl.where(below <= rank, candidate, found)
    return found


@triton.jit
def place_of(keys, key, number, COLS: tl.constexpr, HAS_BUFFER: tl.constexpr = True):
    """Where the equal with that number is: behind all elements up to which no more equals have been counted. Without buffer in the
    registers for these counts it is found bit by bit, as the key was."""
    if HAS_BUFFER:
        counted = tl.cumsum((keys == key[:, None]).to(tl.int32), 1)
        return tl.sum((counted <= number[:, None]).to(tl.int32), 1)
    else:
        col, found, bit = tl.arange(0, COLS), tl.zeros_like(number), COLS // 2
        while bit > 0:
            before = tl.sum(((keys == key[:, None]) & (col[None, :] < (found + bit)[:, None])).to(tl.int32), 1)
            found += tl.where(before <= number, bit, 0)
            bit //= 2
        return found


@triton.jit
def rank_of_median(count, nans, KIND: tl.constexpr):
    if KIND == NANMEDIAN:
        return tl.maximum(count - nans - 1, 0) // 2
    else:
        return tl.where(nans > 0, count - nans, (count - 1) // 2)


@triton.jit
def neighbours(pattern, count, nans, KIND: tl.constexpr, INTERPOLATION: tl.constexpr):
    """Between which ranks a quantile lies, whose q has these bits: the lower one, and the share of the next."""
    counted = count - nans
    if KIND == QUANTILE:
        counted = tl.zeros_like(nans) + count
    position = (tl.zeros_like(nans).to(tl.int64) + pattern).to(tl.float64, bitcast=True) * tl.maximum(counted - 1, 0).to(tl.float64)
    below = position.to(nans.dtype)
    share = position - below.to(tl.float64)
    if INTERPOLATION == MIDPOINT:
        share = tl.where(share > 0.0, 0.5, 0.0).to(tl.float64)
    elif INTERPOLATION != LINEAR:
        if INTERPOLATION == HIGHER:
            below += (share > 0.0).to(below.dtype)
        elif INTERPOLATION == NEAREST:  # to an even one from the middle
            below += ((share > 0.5) | ((share == 0.5) & (below % 2 == 1))).to(below.dtype)
        share = share * 0.0
    if KIND == QUANTILE:
        below, share = tl.where(nans > 0, count - 1, below), tl.where(nans > 0, 0.0, share)
    return below, share


@triton.jit
def between(low, high, share):
    weight = share.to(low.dtype)
    gap = high - low
    return tl.where(low == high, low, tl.where(weight < 0.5, low + weight * gap, high - (1.0 - weight) * gap))


if is_interpreted():  # the language's own would take seconds for what these do in a blink
    from baracuda_kernels.targets.cuda.runtime.interpret import in_order, running_max
else:

    @triton.jit
    def in_order(keys):
        return tl.sort(keys)

    @triton.jit
    def larger(a, b):
        return tl.maximum(a, b)

    @triton.jit
    def running_max(numbers):
        return tl.associative_scan(numbers, 0, larger)


# --- bodies ----------------------------------------------------------------------------------------------------------------------


@triton.jit
def choose_in_registers(
    input, values, indices, lines, blocks, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    KIND: tl.constexpr, KEY: tl.constexpr, BITS: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr, INFINITY: tl.constexpr,
    ALONG: tl.constexpr, BESIDE: tl.constexpr, LINES: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = program % blocks * LINES + tl.arange(0, LINES)
    outer = program // blocks
    col = tl.arange(0, COLS)
    input += offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0])
    inside = (line < lines)[:, None] & (col < count)[None, :]
    raw = tl.load(input[:, None] + offset_along(col, line_extents, line_steps, ALONG)[None, :], mask=inside, other=0)
    keys = tl.where(inside, keys_of(raw.to(KEY), LARGEST, INFINITY), LARGEST)
    nans = tl.zeros((LINES,), tl.int32)
    if INFINITY is not None:
        nans = tl.sum(((keys == LARGEST) & inside).to(tl.int32), 1)
    rank = rank_of_median(count, nans, KIND)
    key = key_of_rank(keys, rank, LEAST, BITS)
    number = rank - tl.sum((keys < key[:, None]).to(tl.int32), 1)
    index = place_of(keys, key, number, COLS)
    value = tl.load(input + offset_along(index, line_extents, line_steps, ALONG), mask=line < lines)
    tl.store(values + offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1]), value, mask=line < lines)
    tl.store(
        indices + offset(outer, extents, outer_steps[2]) + along(line, beside_steps[2], BESIDE[2]),
        index.to(tl.int64),
        mask=line < lines,
    )


@triton.jit
def choose_sorted(
    input, values, indices, lines, blocks, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    KEY: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr, INFINITY: tl.constexpr, ALONG: tl.constexpr, BESIDE: tl.constexpr,
    LINES: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The mode: the least key that no other outnumbers."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = program % blocks
    outer = program // blocks
    col = tl.arange(0, COLS)
    inside = col < count
    input += offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0])
    raw = tl.load(input + offset_along(col, line_extents, line_steps, ALONG), mask=inside, other=0)
    keys = tl.where(inside, keys_of(raw.to(KEY), LARGEST, INFINITY), LARGEST)
    ordered = in_order(keys)  # what is not inside comes last
    is_next = ordered != tl.gather(ordered, tl.maximum(col - 1, 0), 0)
    run = tl.where(inside, col - running_max(tl.where(is_next, col, 0)), -1)  # how many equals are before each
    key = tl.min(tl.where(run == tl.max(run, 0), ordered, LARGEST), 0)
    index = tl.max(tl.where(inside & (keys == key), col, 0), 0)
    value = tl.load(input + offset_along(index, line_extents, line_steps, ALONG))
    tl.store(values + offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1]), value)
    tl.store(indices + offset(outer, extents, outer_steps[2]) + along(line, beside_steps[2], BESIDE[2]), index.to(tl.int64))


@triton.jit
def quantiles_in_registers(
    input, result, neighbours_at, patterns, q_step, lines, blocks, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    KIND: tl.constexpr, INTERPOLATION: tl.constexpr, PER_QUANTILE: tl.constexpr, ELEMENT: tl.constexpr, REAL: tl.constexpr,
    KEY: tl.constexpr, BITS: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr, INFINITY: tl.constexpr, ALONG: tl.constexpr, BESIDE: tl.constexpr, LINES: tl.constexpr,
    COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Quantiles; or, with buffers for that in `neighbours_at`, where their neighbours are and the share of the upper ones."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = program % blocks * LINES + tl.arange(0, LINES)
    outer = program // blocks
    col = tl.arange(0, COLS)
    is_there = line < lines
    input += offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0])
    inside = is_there[:, None] & (col < count)[None, :]
    raw = tl.load(input[:, None] + offset_along(col, line_extents, line_steps, ALONG)[None, :], mask=inside, other=0)
    keys = tl.where(inside, keys_of(raw.to(KEY), LARGEST, INFINITY), LARGEST)
    nans = tl.sum(((keys == LARGEST) & inside).to(tl.int32), 1)
    HAS_BUFFER: tl.constexpr = COLS * COUNT_BYTES <= MOST_COUNTED
    for number in tl.static_range(len(patterns)):
        below, share = neighbours(patterns[number], count, nans, KIND, INTERPOLATION)
        low = key_of_rank(keys, below, LEAST, BITS)
        high = low
        is_same = share >= 0.0
        if PER_QUANTILE == 2:
            upto = tl.sum((keys <= low[:, None]).to(tl.int32), 1)
            least = tl.min(tl.where(keys > low[:, None], keys, LARGEST), 1)
            is_same = (share == 0.0) | (upto > below + 1)
            high = tl.where(is_same, low, least)
        if len(neighbours_at) == 0:
            found = between(as_real(low, LEAST, ELEMENT, REAL), as_real(high, LEAST, ELEMENT, REAL), share)
            at = offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1]) + number * q_step
            tl.store(result + at, found.to(result.dtype.element_ty), mask=is_there)
        else:
            slot = ((outer.to(tl.int64) * lines + line) * len(patterns) + number) * PER_QUANTILE
            places, shares = neighbours_at
            equal = below - tl.sum((keys < low[:, None]).to(tl.int32), 1)
            tl.store(places + slot, place_of(keys, low, equal, COLS, HAS_BUFFER).to(tl.int64), mask=is_there)
            tl.store(shares + slot, share, mask=is_there)
            if PER_QUANTILE == 2:
                upper = place_of(keys, high, tl.where(is_same, equal + 1, 0), COLS, HAS_BUFFER)
                tl.store(places + slot + 1, tl.where(share > 0.0, upper, -1).to(tl.int64), mask=is_there)


@triton.jit
def spread(
    d_input, d_result, places, shares, quantiles, q_step, lines, blocks, tiles, count, extents, outer_steps, beside_steps, line_extents,
    line_steps, PER_QUANTILE: tl.constexpr, REAL: tl.constexpr, ALONG: tl.constexpr, BESIDE: tl.constexpr, LINES: tl.constexpr, COLS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The gradients of quantiles to where their neighbours are; 0 to all others."""
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    tile = program % tiles
    line = program // tiles % blocks * LINES + tl.arange(0, LINES)
    outer = program // tiles // blocks
    place = tile * COLS + tl.arange(0, COLS)
    is_there = line < lines
    d_result += offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1])
    slot = (outer.to(tl.int64) * lines + line) * quantiles * PER_QUANTILE
    total = tl.zeros((LINES, COLS), REAL)
    for number in range(quantiles):
        d = tl.load(d_result + number * q_step, mask=is_there, other=0.0).to(REAL)
        share = tl.load(shares + slot, mask=is_there, other=0.0).to(REAL)
        lower = tl.load(places + slot, mask=is_there, other=-1)
        total += tl.where(place[None, :] == lower[:, None], (d * (1.0 - share))[:, None], 0.0)
        if PER_QUANTILE == 2:
            upper = tl.load(places + slot + 1, mask=is_there, other=-1)
            total += tl.where(place[None, :] == upper[:, None], (d * share)[:, None], 0.0)
        slot += PER_QUANTILE
    d_input += offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0])
    at = d_input[:, None] + offset_along(place, line_extents, line_steps, ALONG)[None, :]
    tl.store(at, total.to(d_input.dtype.element_ty), mask=is_there[:, None] & (place < count)[None, :])
