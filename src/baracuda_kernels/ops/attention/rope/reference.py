"""The formulas in NumPy float64, sharing nothing with any kernel.

Angles are exact whatever the position: they are integers, multiples of 2^-160, until they have been reduced to one turn.
"""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext
from typing import Any

from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle

PI_DIGITS = "314159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
UNIT = 1 << 160
TURN = 2 * UNIT * int(PI_DIGITS) // 10 ** (len(PI_DIGITS) - 1)


def rope(descriptor: RopeDescriptor, x: Any, positions: Any = None) -> Any:
    return _rotated(descriptor, x, positions, 1.0)


def rope_backward(descriptor: RopeDescriptor, dy: Any, positions: Any = None) -> Any:
    return _rotated(descriptor, dy, positions, -1.0)


def _rotated(descriptor: RopeDescriptor, x: Any, positions: Any, direction: float) -> Any:
    import numpy

    rotated = descriptor.rotated
    if positions is None:
        positions = numpy.arange(descriptor.seq_len)
    angles = _angles(descriptor, positions)
    angles = angles[None, None] if angles.ndim == 2 else angles[:, None]  # [B or 1, 1, S, R/2]
    cos, sin = numpy.cos(angles), direction * numpy.sin(angles)
    if descriptor.style is RopeStyle.INTERLEAVED:
        first, second = slice(0, rotated, 2), slice(1, rotated, 2)
    else:
        first, second = slice(0, rotated // 2), slice(rotated // 2, rotated)
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


def _angles(descriptor: RopeDescriptor, positions: Any) -> Any:
    """p · base^(-2i/R), less whole turns, for each position and pair."""
    import numpy

    frequencies = numpy.array(_frequencies(descriptor.base, descriptor.rotated), dtype=object)
    whole = numpy.asarray(positions).astype(numpy.int64).astype(object)
    return ((whole[..., None] * frequencies % TURN) / UNIT).astype(numpy.float64)


@functools.lru_cache(maxsize=16)
def _frequencies(base: float, rotated: int) -> tuple[int, ...]:
    with localcontext() as context:
        context.prec = 100 + int(abs(Decimal(base).log10()))
        log = Decimal(base).ln()
        return tuple(int((log * -2 * i / rotated).exp() * UNIT) for i in range(rotated // 2))
