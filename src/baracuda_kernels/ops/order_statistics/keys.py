"""Elements as integers that are ordered as the elements are, on the CPU: gathered from a line, selected, sorted and found again.

A float's sign and magnitude become one integer, so that both zeros are the same key; every NaN is the largest key. Integers are
their own keys. Keys are as wide as their elements. Like `simd`, this imports Numba: import it inside body factories.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

from numba import types
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu.vectors.simd import inline, outlined, store_one
from baracuda_kernels.targets.cpu.vectors.tasks import locate

__all__ = ["DIGITS", "FEW", "Keys", "buffer", "fill", "keys_of", "offset_along"]

FEW = 32  # keys that are sorted by insertion
BLOCK = 64  # keys that are compared at once
DIGITS = 256
BITS = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8, "u8": 8}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


class Keys(NamedTuple):
    """What bodies do with keys. `keys` and `rest` are buffers for as many as a line has; `digits` for as many numbers as a digit has values."""

    storage: types.Type  # that of a key, and of an element's bits
    gather: Callable  # input, line, words, at, offsets, width, beside, keys, buffer: so many lines' keys, each to its own buffer
    nans: Callable  # keys, count -> how many of them are NaN's
    select: Callable  # keys, rest, count, rank, digits -> the key of that rank, and its number among its equals
    sort: Callable  # keys, rest, count, digits -> which of the two has them in order
    above: Callable  # keys, count, key -> how many keys are not above it, and the least that is
    place: Callable  # keys, count, key, number -> the place of the equal with that number
    bits: Callable  # key -> the element's bits
    place_of_few: Callable  # keys, count, rank -> the place of the key of that rank, equal ones in their order


@intrinsic
def buffer(typingctx, pointer, index, like):
    """The memory from `pointer[index]` on, as what the pointer `like` points at."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(builder.gep(args[0], [args[1]]), context.get_value_type(like))

    return like(pointer, types.int64, like), codegen


@outlined
def fill(pointer, line, words, at, offsets, value):
    """Fills the keys of all elements of a line."""
    for run in range(words[at + 2]):
        locate(words, at + 3, 1, run, offsets)
        for i in range(words[at]):
            store_one(pointer, line + offsets[0] + i * words[at + 1], value)


@inline
def offset_along(words, at, index, offsets):
    """Where the element of that number is along a line: `geometry.line_words` stand at `words[at]`."""
    run = index // words[at]
    locate(words, at + 3, 1, run, offsets)
    return offsets[0] + (index - run * words[at]) * words[at + 1]


@functools.cache
def keys_of(element: str) -> Keys:
    bits, is_float, infinity = BITS[element], element in INFINITY, INFINITY.get(element, 0)
    storage = types.uint8 if element == "u8" else getattr(types, f"int{bits}")
    largest = (1 << (bits - 1)) - 1
    top = 0 if element == "u8" else -1 << (bits - 1)  # signed order to that of digits
    greatest = 255 if element == "u8" else largest

    @inline
    def key_of(raw):
        if not is_float:
            return types.int64(raw)
        size = raw & largest
        key = raw if raw >= 0 else -size
        return largest if size > infinity else key

    @inline
    def bits_of(key):
        return key if not is_float or key >= 0 else -key | top

    @outlined
    def gather(input, line, words, at, offsets, width, beside, keys, buffer):
        extent, step, runs = words[at], words[at + 1], words[at + 2]
        for run in range(runs):
            locate(words, at + 3, 1, run, offsets)
            source, target = line + offsets[0], run * extent
            if step == 1:  # a loop that becomes vectors
                for i in range(extent):
                    keys[target + i] = key_of(input[source + i])
            else:
                for i in range(extent):
                    for j in range(width):
                        keys[j * buffer + target + i] = key_of(input[source + i * step + j * beside])

    @outlined
    def nans(keys, count):
        found = 0
        if is_float:
            for i in range(count):
                found += keys[i] == largest
        return found

    @inline
    def digit(key, shift):
        return ((key ^ top) >> shift) & (DIGITS - 1)

    @inline
    def count_digits(keys, count, shift, digits):
        for d in range(DIGITS):
            digits[d] = 0
        for i in range(count):
            digits[digit(keys[i], shift)] += 1

    @inline
    def sort_few(keys, count):
        for i in range(1, count):
            key, at = keys[i], i
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key

    @outlined
    def select(keys, rest, count, rank, digits):
        """Radix selection: digit by digit from the highest, among the keys whose earlier digits match."""
        source, left, shift = keys, count, bits - 8
        while left > FEW and shift >= 0:
            count_digits(source, left, shift, digits)
            wanted = 0
            while digits[wanted] <= rank:
                rank -= digits[wanted]
                wanted += 1
            kept = 0
            for i in range(left):
                key = source[i]
                rest[kept] = key
                kept += digit(key, shift) == wanted
            source, left, shift = rest, kept, shift - 8
        if left > FEW:  # all of them are the same
            return types.int64(rest[0]), rank
        for i in range(left):
            rest[i] = source[i]
        sort_few(rest, left)
        key, first = types.int64(rest[rank]), rank
        while first > 0 and rest[first - 1] == key:
            first -= 1
        return key, rank - first

    @outlined
    def sort(keys, rest, count, digits):
        """Radix sort from the lowest digit; a digit that all keys share is skipped."""
        if count <= FEW:
            sort_few(keys, count)
            return keys
        source, target = keys, rest
        for shift in range(0, bits, 8):
            count_digits(source, count, shift, digits)
            if digits[digit(source[0], shift)] == count:
                continue
            before = 0
            for d in range(DIGITS):
                digits[d], before = before, before + digits[d]
            for i in range(count):
                key = source[i]
                d = digit(key, shift)
                target[digits[d]] = key
                digits[d] += 1
            source, target = target, source
        return source

    @outlined
    def above(keys, count, key):
        upto, least = 0, types.int64(greatest)
        for i in range(count):  # without branches, so that it becomes vectors
            each = types.int64(keys[i])
            upto += each <= key
            least = min(least, each if each > key else greatest)
        return upto, least

    @outlined
    def place(keys, count, key, number):
        at, here = 0, 0
        while at + BLOCK <= count:
            here = 0
            for i in range(BLOCK):
                here += keys[at + i] == key
            if here > number:
                break
            number -= here
            at += BLOCK
        while keys[at] != key or number > 0:
            number -= keys[at] == key
            at += 1
        return at

    @outlined
    def place_of_few(keys, count, rank):
        """The key of a rank among few keys, by counting for each how many come before it."""
        for at in range(count):
            key, before = keys[at], 0
            for i in range(count):
                before += keys[i] < key or (keys[i] == key and i < at)
            if before == rank:
                return at
        return 0

    return Keys(storage, gather, nans, select, sort, above, place, bits_of, place_of_few)
