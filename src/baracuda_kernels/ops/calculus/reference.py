"""Ops on neighbours from their formulas, in NumPy float64."""

from __future__ import annotations

import functools
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded

__all__ = [
    "cumulative_trapezoid",
    "cumulative_trapezoid_backward",
    "diff",
    "diff_backward",
    "gradient",
    "gradient_backward",
    "trapezoid",
    "trapezoid_backward",
]


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
    """The array with the axis last; a one-dimensional one is the same for all lines."""
    import numpy

    return numpy.moveaxis(values, descriptor.axis, -1) if values.ndim == len(descriptor.shape) else values


def _widths(descriptor: Any, x: Any) -> Any:
    import numpy

    return descriptor.dx if x is None else numpy.diff(_along(descriptor, x))


def _areas(descriptor: Any, y: Any, x: Any) -> Any:
    heights = _along(descriptor, y)
    return (heights[..., 1:] + heights[..., :-1]) * _widths(descriptor, x) / 2


def trapezoid(descriptor: Any, y: Any, x: Any = None) -> Any:
    return _areas(descriptor, y, x).sum(-1)


def cumulative_trapezoid(descriptor: Any, y: Any, x: Any = None) -> Any:
    import numpy

    return numpy.moveaxis(_areas(descriptor, y, x).cumsum(-1), -1, descriptor.axis)


def cumulative_trapezoid_backward(descriptor: Any, d_result: Any, y: Any, x: Any = None) -> Any:
    """An area has a part in all integrals from its own on."""
    return _areas_backward(descriptor, _along(descriptor, d_result)[..., ::-1].cumsum(-1)[..., ::-1], y, x)


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


def _without_warnings(formula: Any) -> Any:
    """Points that are the same are no distance apart, and what is divided by it is infinite, or NaN."""

    @functools.wraps(formula)
    def quiet(*given: Any, **named: Any) -> Any:
        import numpy

        with numpy.errstate(all="ignore"):
            return formula(*given, **named)

    return quiet


@_without_warnings
def gradient(descriptor: Any, input: Any, spacing: Any = None) -> Any:
    import numpy

    values = _along(descriptor, input)
    rise, gaps = numpy.diff(values), _gaps(descriptor, spacing)
    slopes = numpy.empty(values.shape)
    if spacing is None:
        slopes[..., 1:-1] = (values[..., 2:] - values[..., :-2]) / (2 * descriptor.spacing_value)
    else:
        u, v, a, b = rise[..., :-1], rise[..., 1:], gaps[:-1], gaps[1:]
        slopes[..., 1:-1] = (u * b / a + v * a / b) / (a + b)
    for edge, near, far in _edges(descriptor):
        u, a = rise[..., near], gaps[near]
        slopes[..., edge] = u / a
        if descriptor.edge_order == 2:
            slopes[..., edge] += (u / a - rise[..., far] / gaps[far]) * a / (a + gaps[far])
    return numpy.moveaxis(slopes, -1, descriptor.axis)


def _gaps(descriptor: Any, spacing: Any) -> Any:
    import numpy

    return numpy.full(descriptor.extent - 1, descriptor.spacing_value) if spacing is None else numpy.diff(spacing)


def _edges(descriptor: Any) -> Any:
    """Both, with the gap beside each and the one behind that."""
    last = descriptor.extent - 2
    return (0, 0, min(1, last)), (descriptor.extent - 1, last, max(0, last - 1))


@_without_warnings
def gradient_backward(descriptor: Any, d_result: Any, input: Any, spacing: Any = None) -> Any:
    """Slopes are functions of what the tensor rises by in each gap, and of the gaps; those are differences of neighbours. Of gaps that
    lines share, the gradient is taken of the sum over all lines."""
    import numpy

    values, d = _along(descriptor, input), _along(descriptor, d_result)
    lines = tuple(range(values.ndim - 1))
    rise, gaps = numpy.diff(values), _gaps(descriptor, spacing)
    d_rise, d_gaps, d_values = numpy.zeros(rise.shape), numpy.zeros(gaps.shape), numpy.zeros(values.shape)
    inner = d[..., 1:-1]
    if spacing is None:
        d_values[..., 2:] += inner / (2 * descriptor.spacing_value)
        d_values[..., :-2] -= inner / (2 * descriptor.spacing_value)
    else:
        u, v, a, b = (inner * rise[..., :-1]).sum(lines), (inner * rise[..., 1:]).sum(lines), gaps[:-1], gaps[1:]
        s = a + b
        d_rise[..., :-1] += inner * b / (a * s)
        d_rise[..., 1:] += inner * a / (b * s)
        d_gaps[:-1] += (v - u * b * (s + a) / a**2) / s**2
        d_gaps[1:] += (u - v * a * (s + b) / b**2) / s**2
    for edge, near, far in _edges(descriptor):
        d_edge = d[..., edge]
        u, v, a, b = (d_edge * rise[..., near]).sum(), (d_edge * rise[..., far]).sum(), gaps[near], gaps[far]
        d_rise[..., near] += d_edge / a
        d_gaps[near] -= u / a**2
        if descriptor.edge_order == 2:
            s = a + b
            d_rise[..., near] += d_edge / s
            d_rise[..., far] -= d_edge * a / (b * s)
            d_gaps[near] -= (u + v) / s**2
            d_gaps[far] += (v * a * (s + b) / b**2 - u) / s**2
    d_values[..., 1:] += d_rise
    d_values[..., :-1] -= d_rise
    d_points = numpy.zeros(descriptor.extent)
    d_points[1:] += d_gaps
    d_points[:-1] -= d_gaps
    return numpy.moveaxis(d_values, -1, descriptor.axis), None if spacing is None else d_points
