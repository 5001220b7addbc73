"""Order statistics on the CPU, a line at a time, whose keys are in a part of the workspace that belongs to the thread.

Where lines are adjacent, the keys of several are gathered at once. Operands are the input and two others: the results,
or the gradients of result and input: body(words, counter, input, first, second, workspace, slots).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.ops.order_statistics.geometry import (
    BESIDE,
    BUFFER,
    COUNT,
    INTERPOLATION,
    ITEMS,
    KIND,
    LINE,
    OUTER,
    OWN,
    PER_TASK,
    Q_COUNT,
    Q_STEP,
    QS,
    SLOPES,
    STRIPS,
    TASKS,
    THREADS,
    WIDTH,
)

__all__ = ["chosen_body", "quantile_backward_body", "quantile_body"]

FEW_QUANTILES = 2  # that are selected; of more, the line is sorted
# The members of the descriptors' enums, by their numbers.
MEDIAN, NANMEDIAN, MODE = range(3)
QUANTILE, NANQUANTILE = range(2)
LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST = range(5)


def _body(of: Any, each: Callable[..., None]) -> Callable[..., None]:
    """The walk over all lines, of which `each` is told where its operands and its keys are."""
    from baracuda_kernels.ops.order_statistics.keys import DIGITS, buffer
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    gather = of.gather

    def body(words, counter, input, first, second, workspace, slots):
        slot = tasks.claim(slots, -1)
        if slot >= words[THREADS]:
            return
        own = slot * words[OWN]
        rest = buffer(workspace, own + words[WIDTH] * words[BUFFER], input)
        digits, offsets = tasks.scratch(simd.int64, DIGITS), tasks.scratch(simd.int64, 3)
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            for item in range(task * words[PER_TASK], min((task + 1) * words[PER_TASK], words[ITEMS])):
                tasks.locate(words, words[OUTER], 3, item // words[STRIPS], offsets)
                before = item % words[STRIPS] * words[WIDTH]
                width = min(words[WIDTH], words[BESIDE] - before)
                at = offsets[0] + before * words[BESIDE + 1]
                at_first = offsets[1] + before * words[BESIDE + 2]
                at_second = offsets[2] + before * words[BESIDE + 3]
                gather(
                    input, at, words, words[LINE], offsets, width, words[BESIDE + 1], buffer(workspace, own, input), words[BUFFER]
                )
                for line in range(width):
                    keys = buffer(workspace, own + line * words[BUFFER], input)
                    each(words, input, at, first, at_first, second, at_second, keys, rest, digits, offsets)
                    at += words[BESIDE + 1]
                    at_first += words[BESIDE + 2]
                    at_second += words[BESIDE + 3]
            task = tasks.claim(counter, task)

    return body


def chosen_body(element: str) -> Any:
    """The median, with or without NaN, or the mode."""
    from numba import types

    from baracuda_kernels.ops.order_statistics.keys import FEW, keys_of, offset_along
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    of = keys_of(element)
    gather, nans_among, select, sort, place, place_of_few = of.gather, of.nans, of.select, of.sort, of.place, of.place_of_few

    @simd.inline
    def median(keys, rest, count, digits, without_nan):
        nans = nans_among(keys, count)
        rank = (count - 1) // 2
        if nans > 0:
            rank = max(count - nans - 1, 0) // 2 if without_nan else count - nans
        if count <= FEW:
            return place_of_few(keys, count, rank)
        key, number = select(keys, rest, count, rank, digits)
        return place(keys, count, key, number)

    @simd.inline
    def most_frequent(keys, rest, count, digits):
        """The least key that no other outnumbers."""
        ordered = sort(keys, rest, count, digits)
        best, most, times = ordered[0], 0, 0
        for i in range(count):
            times = times + 1 if i > 0 and ordered[i] == ordered[i - 1] else 1
            if times > most:
                best, most = ordered[i], times
        return best

    @simd.outlined
    def each(words, input, at, values, at_value, indices, at_index, keys, rest, digits, offsets):
        count = words[COUNT]
        if words[KIND] == MODE:
            key = most_frequent(keys, rest, count, digits)
            gather(input, at, words, words[LINE], offsets, 1, 0, keys, 0)  # they have lost their places
            index = count - 1
            while keys[index] != key:
                index -= 1
        else:
            index = median(keys, rest, count, digits, words[KIND] == NANMEDIAN)
        values[at_value] = input[at + offset_along(words, words[LINE], index, offsets)]
        indices[at_index] = index

    pointer = types.CPointer(of.storage)
    return _body(of, each), (tasks.words, tasks.words, pointer, pointer, tasks.words, pointer, tasks.words)


def _neighbours() -> Callable[..., Any]:
    """Between which ranks a quantile lies: the lower one, and the share of the next."""
    from baracuda_kernels.targets.cpu.vectors import simd

    @simd.inline
    def neighbours(q, count, nans, kind, interpolation):
        if nans > 0 and kind == QUANTILE:
            return count - 1, 0.0
        position = q * max(count - nans - 1, 0)
        below = simd.int64(position)
        share = position - below
        if interpolation == MIDPOINT:
            return below, 0.5 if share > 0.0 else 0.0
        if interpolation == LINEAR:
            return below, share
        goes_up = interpolation == HIGHER and share > 0.0
        if interpolation == NEAREST:  # to an even one from the middle
            goes_up = share > 0.5 or (share == 0.5 and below % 2 == 1)
        return below + 1 if goes_up else below, 0.0

    return neighbours


def quantile_body(element: str) -> Any:
    """Quantiles; the result is both other operands."""
    from numba import types

    from baracuda_kernels.ops.order_statistics.keys import buffer, keys_of
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    of = keys_of(element)
    nans_among, select, sort, above, bits_of = of.nans, of.select, of.sort, of.above, of.bits
    neighbours = _neighbours()
    real: Any = simd.widened(element)
    half, one = real(0.5), real(1.0)

    @simd.inline
    def between(low, high, share):
        if low == high:
            return low
        return low + share * (high - low) if share < half else high - (one - share) * (high - low)

    @simd.outlined
    def each(words, input, at, result, at_result, unused, at_unused, keys, rest, digits, offsets):
        count, quantiles, qs = words[COUNT], words[Q_COUNT], tasks.as_f64(words, words[QS])
        nans = nans_among(keys, count)
        ordered = sort(keys, rest, count, digits) if quantiles > FEW_QUANTILES else keys
        for number in range(quantiles):
            below, share = neighbours(qs[number], count, nans, words[KIND], words[INTERPOLATION])
            if quantiles > FEW_QUANTILES:
                low, high = simd.int64(ordered[below]), simd.int64(ordered[below + (share > 0.0)])
            else:
                low = select(keys, rest, count, below, digits)[0]
                high = low
                if share > 0.0:
                    upto, least = above(keys, count, low)
                    high = low if upto > below + 1 else least
            pair, values = buffer(offsets, 0, keys), buffer(offsets, 0, result)  # the same memory, as bits and as elements
            pair[0], pair[1] = bits_of(low), bits_of(high)
            found = between(simd.load_one(values, 0), simd.load_one(values, 1), real(share))
            simd.store_one(result, at_result + number * words[Q_STEP], found)

    pointer, floats = types.CPointer(of.storage), simd.pointer_to(element)
    return _body(of, each), (tasks.words, tasks.words, pointer, floats, floats, pointer, tasks.words)


def quantile_backward_body(element: str) -> Any:
    """The gradient of quantiles."""
    from numba import types

    from baracuda_kernels.ops.order_statistics.keys import buffer, fill, keys_of, offset_along
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    of = keys_of(element)
    nans_among, select, above, place = of.nans, of.select, of.above, of.place
    neighbours = _neighbours()
    real: Any = simd.widened(element)
    zero, one, nowhere = real(0.0), real(1.0), -1

    @simd.outlined
    def each(words, input, at, d_result, at_result, d_input, at_input, keys, rest, digits, offsets):
        count, quantiles, qs = words[COUNT], words[Q_COUNT], tasks.as_f64(words, words[QS])
        places = buffer(rest, words[BUFFER], words)
        shares = tasks.as_f64(places, 2 * quantiles)
        nans = nans_among(keys, count)
        for number in range(quantiles):
            below, share = neighbours(qs[number], count, nans, words[KIND], words[INTERPOLATION])
            d = simd.load_one(d_result, at_result + number * words[Q_STEP])
            key, equal = select(keys, rest, count, below, digits)
            places[2 * number], shares[2 * number] = place(keys, count, key, equal), d * (one - real(share))
            places[2 * number + 1], shares[2 * number + 1] = nowhere, zero
            if share > 0.0:
                upto, least = above(keys, count, key)
                key, equal = (key, equal + 1) if upto > below + 1 else (least, 0)
                places[2 * number + 1], shares[2 * number + 1] = place(keys, count, key, equal), d * real(share)
        fill(d_input, at_input, words, words[SLOPES], offsets, zero)
        for number in range(2 * quantiles):
            total, is_first = zero, places[number] != nowhere
            for other in range(2 * quantiles):  # one place may belong to several quantiles
                if places[other] == places[number]:
                    total += real(shares[other])
                    is_first = is_first and other >= number
            if is_first:
                simd.store_one(d_input, at_input + offset_along(words, words[SLOPES], places[number], offsets), total)

    pointer, floats = types.CPointer(of.storage), simd.pointer_to(element)
    return _body(of, each), (tasks.words, tasks.words, pointer, floats, floats, pointer, tasks.words)
