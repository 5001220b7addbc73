"""Order statistics on CUDA of longer lines, which are read once for every digit of eight bits.

Ranks are looked for by digits from the first on: `count_digits` counts, for every segment of a line, the digits of those keys whose earlier
ones are known, and `pick` finds from that the next one. Then `count_equals` counts how often each segment has the key, and `find` looks into
the one where it is. No sum is of anything but integers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.order_statistics.triton_registers import (
    as_real,
    between,
    keys_of,
    neighbours,
    offset_along,
    rank_of_median,
)
from baracuda_kernels.targets.cuda.triton.indexing import along, offset

__all__ = ["count_digits", "count_equals", "find", "join", "pick"]


@triton.jit
def line_of(number, lines, extents, outer_steps, beside_steps, BESIDE: tl.constexpr):
    """Where an operand has the line of that number, or what belongs to it."""
    return offset(number // lines, extents, outer_steps) + along(number % lines, beside_steps, BESIDE)


@triton.jit
def digits_of(keys, LEAST: tl.constexpr):
    """Keys as numbers that are not negative: their digits are in the keys' order."""
    return keys - tl.full((), LEAST, keys.dtype)


@triton.jit
def count_digits(
    input, prefixes, nans, digits, segments, length, lines, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    QUERIES: tl.constexpr, SHIFT: tl.constexpr, KEY: tl.constexpr, BITS: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr,
    INFINITY: tl.constexpr, ALONG: tl.constexpr, BESIDE: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    segment = program % segments
    query = program // segments
    line = query // QUERIES
    input += line_of(line, lines, extents, outer_steps[0], beside_steps[0], BESIDE[0])
    IS_FIRST: tl.constexpr = SHIFT == BITS - 8
    known = tl.load(prefixes + query, mask=SHIFT < BITS - 8, other=0).to(KEY)
    begin = (segment * length).to(tl.int64 if WIDE else tl.int32)
    end = tl.minimum(begin + length, count)
    counts, not_a_number = tl.zeros((256,), tl.int32), tl.zeros((COLS,), tl.int32)
    for start in range(begin, end, COLS):
        place = start + tl.arange(0, COLS)
        inside = place < end
        raw = tl.load(input + offset_along(place, line_extents, line_steps, ALONG), mask=inside, other=0)
        keys = keys_of(raw.to(KEY), LARGEST, INFINITY)
        if IS_FIRST and INFINITY is not None:
            not_a_number += (inside & (keys == LARGEST)).to(tl.int32)
        numbers = digits_of(keys, LEAST)
        if not IS_FIRST:
            MASK: tl.constexpr = (1 << (BITS - SHIFT - 8)) - 1
            inside &= ((numbers >> (SHIFT + 8)) & MASK) == known
        counts += tl.histogram(((numbers >> SHIFT) & 255).to(tl.int32), 256, mask=inside)
    tl.store(digits + program * 256 + tl.arange(0, 256), counts)
    if IS_FIRST and INFINITY is not None:
        tl.store(nans + line * segments + segment, tl.sum(not_a_number, 0).to(tl.int64), mask=query % QUERIES == 0)


@triton.jit
def pick(
    prefixes, ranks, shares, nans, digits, patterns, segments, count,
    KIND: tl.constexpr, INTERPOLATION: tl.constexpr, QUERIES: tl.constexpr, IS_FIRST: tl.constexpr, HAS_NAN: tl.constexpr, SEGMENTS: tl.constexpr,
):  # fmt: skip
    query = tl.program_id(0).to(tl.int64)
    segment = tl.arange(0, SEGMENTS)
    if IS_FIRST:
        known = tl.zeros((), tl.int64)
        line = query // QUERIES
        not_a_number = tl.zeros((), tl.int64)
        if HAS_NAN:
            not_a_number = tl.sum(tl.load(nans + line * segments + segment, mask=segment < segments, other=0), 0)
        if INTERPOLATION is None:
            rank = rank_of_median(count, not_a_number, KIND)
        else:
            rank, share = first_rank(patterns, query % QUERIES, count, not_a_number, KIND, INTERPOLATION, QUERIES)
            tl.store(shares + query, share)
    else:
        known, rank = tl.load(prefixes + query), tl.load(ranks + query)
    bin = tl.arange(0, 256)
    at = digits + (query * segments + segment)[:, None] * 256 + bin[None, :]
    counts = tl.sum(tl.load(at, mask=(segment < segments)[:, None], other=0).to(tl.int64), 0)
    upto = tl.cumsum(counts, 0)
    digit = tl.sum((upto <= rank).to(tl.int64), 0)
    tl.store(prefixes + query, known * 256 + digit)
    tl.store(ranks + query, rank - tl.sum(tl.where(bin < digit, counts, 0), 0))


@triton.jit
def first_rank(
    patterns, query, count, nans, KIND: tl.constexpr, INTERPOLATION: tl.constexpr, QUERIES: tl.constexpr
):  # fmt: skip
    """The rank that a query looks for, one of the two neighbours of a quantile, and the share of the upper one."""
    PER_QUANTILE: tl.constexpr = QUERIES // len(patterns)
    pattern = tl.zeros((), tl.int64)
    for number in tl.static_range(len(patterns)):
        pattern = tl.where(query // PER_QUANTILE == number, pattern * 0 + patterns[number], pattern)
    below, share = neighbours(pattern, count, nans, KIND, INTERPOLATION)
    if PER_QUANTILE == 2:
        below += tl.where((query % 2 == 1) & (share > 0.0), 1, 0)
    return below, share


@triton.jit
def count_equals(
    input, prefixes, equals, segments, length, lines, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    QUERIES: tl.constexpr, KEY: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr, INFINITY: tl.constexpr, ALONG: tl.constexpr,
    BESIDE: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    segment = program % segments
    query = program // segments
    input += line_of(query // QUERIES, lines, extents, outer_steps[0], beside_steps[0], BESIDE[0])
    wanted = tl.load(prefixes + query).to(KEY)
    begin = (segment * length).to(tl.int64 if WIDE else tl.int32)
    end = tl.minimum(begin + length, count)
    found = tl.zeros((COLS,), tl.int32)
    for start in range(begin, end, COLS):
        place = start + tl.arange(0, COLS)
        raw = tl.load(input + offset_along(place, line_extents, line_steps, ALONG), mask=place < end, other=0)
        found += ((place < end) & (digits_of(keys_of(raw.to(KEY), LARGEST, INFINITY), LEAST) == wanted)).to(tl.int32)
    tl.store(equals + program, tl.sum(found, 0).to(tl.int64))


@triton.jit
def find(
    input, results, places, prefixes, ranks, shares, equals, segments, length, lines, count, extents, outer_steps, beside_steps, line_extents, line_steps,
    QUERIES: tl.constexpr, PER_QUANTILE: tl.constexpr, KEY: tl.constexpr, LEAST: tl.constexpr, LARGEST: tl.constexpr, INFINITY: tl.constexpr,
    ALONG: tl.constexpr, BESIDE: tl.constexpr, SEGMENTS: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Where the element of a rank is, among equal ones the right one. It is told query by query, or in `results` together with the element."""
    query = tl.program_id(0).to(tl.int64)
    line = query // QUERIES
    input += line_of(line, lines, extents, outer_steps[0], beside_steps[0], BESIDE[0])
    wanted, rank = tl.load(prefixes + query).to(KEY), tl.load(ranks + query)
    each = tl.arange(0, SEGMENTS)
    upto = tl.cumsum(tl.load(equals + query * segments + each, mask=each < segments, other=0), 0)
    segment = tl.sum((upto <= rank).to(tl.int32), 0)
    before = tl.max(tl.where(upto <= rank, upto, 0), 0)
    begin = (segment * length).to(tl.int64 if WIDE else tl.int32)
    end = tl.minimum(begin + length, count)
    index = tl.zeros((), tl.int64)
    for start in range(begin, end, COLS):
        place = start + tl.arange(0, COLS)
        raw = tl.load(input + offset_along(place, line_extents, line_steps, ALONG), mask=place < end, other=0)
        is_equal = ((place < end) & (digits_of(keys_of(raw.to(KEY), LARGEST, INFINITY), LEAST) == wanted)).to(tl.int32)
        is_it = (is_equal > 0) & (before + tl.cumsum(is_equal, 0) == rank + 1)
        index += tl.sum(tl.where(is_it, place, 0).to(tl.int64), 0)
        before += tl.sum(is_equal, 0)
    if len(results) == 0:
        if PER_QUANTILE == 2:
            index = tl.where((query % 2 == 1) & (tl.load(shares + query) == 0.0), -1, index)
        tl.store(places + query, index)
    else:
        values, indices = results
        value = tl.load(input + offset_along(index, line_extents, line_steps, ALONG))
        tl.store(values + line_of(line, lines, extents, outer_steps[1], beside_steps[1], BESIDE[1]), value)
        tl.store(indices + line_of(line, lines, extents, outer_steps[2], beside_steps[2], BESIDE[2]), index)


@triton.jit
def join(
    result, prefixes, shares, quantiles, q_step, lines, extents, outer_steps, beside_steps,
    PER_QUANTILE: tl.constexpr, ELEMENT: tl.constexpr, REAL: tl.constexpr, KEY: tl.constexpr, LEAST: tl.constexpr, BESIDE: tl.constexpr,
):  # fmt: skip
    """Quantiles from the keys of their neighbours."""
    number = tl.program_id(0).to(tl.int64)
    least = tl.full((), LEAST, KEY)
    low = tl.load(prefixes + number * PER_QUANTILE).to(KEY) + least
    high = tl.load(prefixes + number * PER_QUANTILE + PER_QUANTILE - 1).to(KEY) + least
    share = tl.load(shares + number * PER_QUANTILE)
    found = between(as_real(low, LEAST, ELEMENT, REAL), as_real(high, LEAST, ELEMENT, REAL), share)
    at = line_of(number // quantiles, lines, extents, outer_steps[1], beside_steps[1], BESIDE[1]) + number % quantiles * q_step
    tl.store(result + at, found.to(result.dtype.element_ty))
