"""Sums down columns: sixteen adjacent columns in a vector, one row after the other.

A tile is a strip of a matrix copied into scratch as one stack of vectors per sixteen columns, `pitch` rows apart, so that later
passes read it in order whatever the stride of the source. A column's sum keeps the canonical order: its element i goes to
accumulator i mod LANES, and `fold` ends a block with the same tree as `simd.tree_sum`.

Like `simd`, this imports Numba: import it inside body factories.
"""

from baracuda_kernels.targets.cpu.vectors.simd import inline, load, load_part, prefetch, spread, store
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["clear", "fold", "gather", "vectors"]

AHEAD = 12  # rows to ask for before they are read: the hardware does not follow such strides


@inline
def vectors(columns):
    """How many vectors hold so many columns."""
    return (columns + LANES - 1) // LANES


@inline
def gather(x, at, step, tile, pitch, rows, columns):
    """Copies `rows` rows of `columns` side by side, `step` apart, from `x[at]` into `tile`, widened."""
    for i in range(rows):
        here = at + i * step
        for c in range(columns // LANES):
            prefetch(x, here + AHEAD * step + c * LANES)
            store(tile, (c * pitch + i) * LANES, 1, load(x, here + c * LANES, 1))
        rest = columns % LANES
        if rest > 0:
            c = columns // LANES
            store(tile, (c * pitch + i) * LANES, 1, load_part(x, here + c * LANES, 1, rest))


@inline
def clear(numbers, at, count, value):
    """Sets `count` vectors from `numbers[at]` on to `value`, which has the type of the numbers."""
    for i in range(count):
        store(numbers, at + i * LANES, 1, spread(value))


@inline
def fold(accumulators, at):
    """The sum of the LANES accumulators from `accumulators[at]` on, one sum in each lane."""
    half = LANES // 2
    while half > 0:
        for i in range(half):
            place = at + i * LANES
            store(accumulators, place, 1, load(accumulators, place, 1) + load(accumulators, place + half * LANES, 1))
        half //= 2
    return load(accumulators, at, 1)
