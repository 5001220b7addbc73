"""States, as they are carried from chunk to chunk: in the caller's workspace, row by row without gaps.

Like `simd`, this imports Numba: import it inside body factories.
"""

from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.ops.attention.ssd.matrix import Matrices
from baracuda_kernels.targets.cpu.vectors import simd
from baracuda_kernels.targets.cpu.vectors.simd import inline
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["Carry", "carry", "weigh"]


@inline
def weigh(matrix, pitch, rows, scalars, weights):
    """Every row of a matrix times its weight, `scalars[weights + row]`."""
    for j in range(rows):
        for here in range(j * pitch, (j + 1) * pitch, LANES):
            simd.store(matrix, here, 1, simd.load(matrix, here, 1) * scalars[weights + j])


class Carry(NamedTuple):
    clear: Callable
    begin: Callable
    pass_on: Callable
    end: Callable


def carry(element: str, matrices: Matrices) -> Carry:
    zero, fetch, put = simd.widened(element)(0), matrices.fetch, matrices.put

    @inline
    def clear(matrix, count):
        for i in range(0, count, LANES):
            simd.store(matrix, i, 1, simd.spread(zero))

    @inline
    def begin(given, start, at, step, rows, columns, state, pitch, kept, record):
        """The first state, the caller's or zero, to its place; `state` is scratch."""
        if given:
            fetch(start, at, step, rows, columns, state, pitch)
        else:
            clear(state, rows * pitch)
        put(state, pitch, rows, columns, kept, record, columns)

    @inline
    def pass_on(kept, record, rows, columns, inflow, pitch, decay):
        """One chunk further: what is left of the state, and what came in."""
        for d in range(rows):
            for n in range(0, columns, LANES):
                at, came = record + d * columns + n, simd.load(inflow, d * pitch + n, 1)
                if columns - n >= LANES:
                    simd.store(kept, at, 1, simd.fma(simd.load(kept, at, 1), decay, came))
                else:
                    left = simd.load_part(kept, at, 1, columns - n)
                    simd.store_part(kept, at, 1, simd.fma(left, decay, came), columns - n)

    @inline
    def end(kept, record, rows, columns, state, pitch, target, at, step):
        """The last state to the caller."""
        fetch(kept, record, columns, rows, columns, state, pitch)
        put(state, pitch, rows, columns, target, at, step)

    return Carry(clear, begin, pass_on, end)
