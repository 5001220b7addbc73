"""The formulas in NumPy float64, sharing nothing with any kernel.

Angles are exact whatever the position: they are integers, multiples of 2^-160, until they have been reduced to one turn.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
UNIT = 1 << 160


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

    with localcontext() as context:
        context.prec = 100 + int(abs(Decimal(descriptor.base).log10()))
        log = Decimal(descriptor.base).ln()
        steps = [(log * -2 * i / descriptor.rotated).exp() for i in range(descriptor.rotated // 2)]
        frequencies = numpy.array([int(step * UNIT) for step in steps], dtype=object)
        turn = int(2 * PI * UNIT)
    whole = numpy.asarray(positions).astype(numpy.int64).astype(object)
    return ((whole[..., None] * frequencies % turn) / UNIT).astype(numpy.float64)
