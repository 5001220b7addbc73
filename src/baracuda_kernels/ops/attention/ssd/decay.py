"""The scalars of one chunk of one head: step lengths, sums of log-decays, and the decays they make.

A decay is exp of a difference of two sums that start with the chunk. Sums are taken in compensated f64 and kept as two numbers of the
kernel's precision, so a difference is as good as the numbers it is between are far apart, whatever came before them in the chunk.

Like `simd`, this imports Numba: import it inside body factories.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.ops.attention.ssd.spans import CHUNK
from baracuda_kernels.targets.cpu.vectors import simd, vmath
from baracuda_kernels.targets.cpu.vectors.simd import inline, outlined
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["PARTS", "Decays", "decays"]

# The scalars lie in one block, CHUNK numbers each.
STEP, HIGH, LOW, SINCE_START, TO_END, INFLOW = (part * CHUNK for part in range(6))
PARTS = 6 * CHUNK
FARTHEST = 2000.0  # exp of it is zero or infinite in every precision, and sums of such steps stay finite


class Decays(NamedTuple):
    prepare: Callable
    between: Callable


def decays(element: str) -> Decays:
    real, float64 = simd.widened(element), simd.float64
    zero, start, step_at, high_at, low_at, end_at, inflow_at = real(0), SINCE_START, STEP, HIGH, LOW, TO_END, INFLOW

    @outlined
    def prepare(dt, at, stride, rate, rows, scalars):
        """Fills the scalars for `rows` steps: dt, the sum of log-decays up to each step in two parts, the decay from the chunk's start up
        to each step, from each step to the chunk's end, and the latter times dt. Steps that fill up the chunk have no length."""
        total, rest = 0.0, 0.0
        for i in range(rows):
            step = simd.load_one(dt, at + i * stride)
            exponent = float64(step) * rate
            if exponent < -FARTHEST or exponent > FARTHEST:  # but not if it is NaN
                exponent = math.copysign(FARTHEST, exponent)
            grown = total + exponent
            taken = grown - total
            rest += (total - (grown - taken)) + (exponent - taken)
            total = grown
            high = real(total)
            scalars[step_at + i] = real(step)
            scalars[high_at + i] = high
            scalars[low_at + i] = real((total - high) + rest)
        for i in range(rows, CHUNK):
            scalars[step_at + i] = zero
            scalars[high_at + i] = scalars[high_at + rows - 1]
            scalars[low_at + i] = scalars[low_at + rows - 1]
        last_high, last_low = scalars[high_at + rows - 1], scalars[low_at + rows - 1]
        for i in range(0, CHUNK, LANES):
            high, low = simd.load(scalars, high_at + i, 1), simd.load(scalars, low_at + i, 1)
            to_end = vmath.exp((last_high - high) + (last_low - low))
            simd.store(scalars, start + i, 1, vmath.exp(high + low))
            simd.store(scalars, end_at + i, 1, to_end)
            simd.store(scalars, inflow_at + i, 1, to_end * simd.load(scalars, step_at + i, 1))

    @inline
    def between(scalars, later, lane):
        """The decays from LANES steps, those from `lane` on, to one step `later`."""
        high = scalars[high_at + later] - simd.load(scalars, high_at + lane, 1)
        low = scalars[low_at + later] - simd.load(scalars, low_at + lane, 1)
        return vmath.exp(high + low)

    return Decays(prepare, between)
