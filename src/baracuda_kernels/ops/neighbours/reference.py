"""Ops on neighbours from their formulas, in NumPy float64."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded

__all__ = ["diff", "diff_backward", "trapezoid", "trapezoid_backward"]


def diff(descriptor: Any, input: Any, prepend: Any = None, append: Any = None) -> Any:
    import numpy

    given = (prepend, input, append) if descriptor.n else (input,)
    every = numpy.concatenate([each for each in given if each is not None], descriptor.axis)
    for _ in range(descriptor.n):
        every = numpy.diff(every, axis=descriptor.axis)
    if descriptor.element.is_float:
        return every
    return rounded(every % 2 if descriptor.element is ElementKind.BOOL else every, descriptor.element)  # which wraps around


def diff_backward(descriptor: Any, d_result: Any, input: Any, prepend: Any = None, append: Any = None) -> Any:
    """Every difference gives its gradient to the later element, and takes it from the earlier one."""
    import numpy

    before, middle, behind = descriptor.extents
    slopes = numpy.moveaxis(d_result, descriptor.axis, -1)
    if not descriptor.n:
        slopes = numpy.pad(slopes, [(0, 0)] * (slopes.ndim - 1) + [(before, behind)])
    for _ in range(descriptor.n):
        wider = numpy.zeros((*slopes.shape[:-1], slopes.shape[-1] + 1))
        wider[..., 1:] += slopes
        wider[..., :-1] -= slopes
        slopes = wider
    slopes = numpy.moveaxis(slopes, -1, descriptor.axis)
    firsts = {"d_input": (before, middle), "d_prepend": (0, before), "d_append": (before + middle, behind)}
    wanted = {"d_input": True, "d_prepend": descriptor.has_prepend, "d_append": descriptor.has_append}
    return tuple(
        slopes.take(range(first, first + extent), descriptor.axis) if wanted[name] else None
        for name, (first, extent) in firsts.items()
    )


def _along(descriptor: Any, values: Any) -> Any:
    """With the axis as the last one; what has that axis alone is the same for all lines."""
    import numpy

    return numpy.moveaxis(values, descriptor.axis, -1) if values.ndim == len(descriptor.shape) else values


def _widths(descriptor: Any, x: Any) -> Any:
    import numpy

    return descriptor.dx if x is None else numpy.diff(_along(descriptor, x))


def trapezoid(descriptor: Any, y: Any, x: Any = None) -> Any:
    heights = _along(descriptor, y)
    return ((heights[..., 1:] + heights[..., :-1]) * _widths(descriptor, x) / 2).sum(-1)


def trapezoid_backward(descriptor: Any, d_result: Any, y: Any, x: Any = None) -> Any:
    return _areas_backward(descriptor, d_result[..., None], y, x)


def _areas_backward(descriptor: Any, slopes: Any, y: Any, x: Any) -> Any:
    """Every area gives half its width to both heights, and to its two points, with opposite signs, half the sum of the heights."""
    import numpy

    heights = _along(descriptor, y)
    wide, high = slopes * _widths(descriptor, x) / 2, slopes * (heights[..., 1:] + heights[..., :-1]) / 2
    d_y, d_x = numpy.zeros(heights.shape), numpy.zeros(heights.shape)
    d_y[..., 1:] += wide
    d_y[..., :-1] += wide
    d_y = numpy.moveaxis(d_y, -1, descriptor.axis)
    if x is None:
        return d_y, None
    d_x[..., 1:] += high
    d_x[..., :-1] -= high
    if x.ndim < len(descriptor.shape):
        return d_y, d_x.sum(tuple(range(d_x.ndim - 1)))
    return d_y, numpy.moveaxis(d_x, -1, descriptor.axis)
