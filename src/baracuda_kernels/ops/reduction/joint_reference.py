"""The reductions of two operands in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.reduction.descriptor import ReduceJointBackwardDescriptor, ReduceJointDescriptor
from baracuda_kernels.ops.reduction.reference import in_place, lines, norm, per_line, slope_of_norm

__all__ = ["reduce_joint", "reduce_joint_backward"]


def _reduced(kind: str, x: Any, other: Any, numbers: tuple[float, ...]) -> Any:
    import numpy

    if kind in ("dist", "pairwise_distance"):
        return norm(x - other + sum(numbers[1:]), numbers[0])
    if kind == "cosine_similarity":
        return (x * other).sum(-1) / (_length(x, *numbers) * _length(other, *numbers))[..., 0]
    if kind == "average":
        return (x * other).sum(-1) / other.sum(-1)
    if kind == "equal":
        return (x == other).all(-1)
    relative, absolute, nan_is_nan = numbers
    return numpy.isclose(x, other, relative, absolute, bool(nan_is_nan)).all(-1)


def _length(x: Any, least: float) -> Any:
    import numpy

    return numpy.sqrt((x * x).sum(-1, keepdims=True)).clip(least)


def reduce_joint(descriptor: ReduceJointDescriptor, input: Any, other: Any) -> Any:
    import numpy

    with numpy.errstate(all="ignore"):
        found = _reduced(descriptor.kind.value, lines(descriptor, input), lines(descriptor, other), descriptor.numbers)
    return numpy.asarray(found).reshape(descriptor.result_shape)


def reduce_joint_backward(
    descriptor: ReduceJointBackwardDescriptor, d_result: Any, input: Any, other: Any, result: Any
) -> tuple[Any, Any]:
    import numpy

    x, y = lines(descriptor, input), lines(descriptor, other)
    if not x.size:
        return numpy.zeros(descriptor.shape), numpy.zeros(descriptor.shape)
    upstream, result = per_line(descriptor, d_result), per_line(descriptor, result)
    numbers = descriptor.numbers
    with numpy.errstate(all="ignore"):
        if descriptor.kind.value == "average":
            total = y.sum(-1, keepdims=True)
            slopes = y / total, (x - (x * y).sum(-1, keepdims=True) / total) / total
        elif descriptor.kind.value == "cosine_similarity":
            slopes = _turned(x, y, *numbers), _turned(y, x, *numbers)
        else:
            slope = slope_of_norm(x - y + sum(numbers[1:]), result, numbers[0])
            slopes = slope, -slope
        first, second = (in_place(descriptor, upstream * slope) for slope in slopes)
    return first, second


def _turned(x: Any, y: Any, least: float) -> Any:
    """The slope of the cosine as x turns: y as far as it is across x."""
    import numpy

    length, other = _length(x, least), _length(y, least)
    is_long = numpy.sqrt((x * x).sum(-1, keepdims=True)) > least
    unit = numpy.where(is_long, x / length, 0.0)
    across = y / other - unit * (unit * (y / other)).sum(-1, keepdims=True)
    return across / length
