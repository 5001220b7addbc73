"""The definitions in NumPy float64, by sorting, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.order_statistics.descriptor import (
    Interpolation,
    OrderBackwardDescriptor,
    OrderDescriptor,
    OrderKind,
    QuantileBackwardDescriptor,
    QuantileDescriptor,
    QuantileKind,
)


def _lines(descriptor: Any, values: Any) -> Any:
    """One line after the other, each in the order of its elements' numbers."""
    kept = [axis for axis in range(values.ndim) if axis not in descriptor.axes]
    return values.transpose(*kept, *descriptor.axes).reshape(-1, descriptor.count)


def _back(descriptor: Any, lines: Any) -> Any:
    """Lines to where they came from."""
    import numpy

    kept = [axis for axis in range(len(descriptor.shape)) if axis not in descriptor.axes]
    order = (*kept, *descriptor.axes)
    return lines.reshape([descriptor.shape[axis] for axis in order]).transpose(numpy.argsort(order))


def _ordered(descriptor: Any, input: Any) -> tuple[Any, Any, Any]:
    """Lines, the numbers of their elements in the order of these, NaN last, and how many of them are NaN."""
    import numpy

    lines = _lines(descriptor, input)
    return lines, numpy.argsort(lines, axis=1, kind="stable"), numpy.isnan(lines).sum(1)


def order(descriptor: OrderDescriptor, input: Any) -> tuple[Any, Any]:
    import numpy

    lines, numbers, nans = _ordered(descriptor, input)
    if descriptor.kind is OrderKind.MODE:
        places = numpy.array([_mode(line) for line in lines], int).reshape(descriptor.result_shape)
        return numpy.take_along_axis(lines, places.reshape(-1, 1), 1).reshape(descriptor.result_shape), places
    if descriptor.kind is OrderKind.MEDIAN:
        ranks = numpy.where(nans > 0, descriptor.count - nans, (descriptor.count - 1) // 2)
    else:
        ranks = numpy.maximum(descriptor.count - nans - 1, 0) // 2
    places = numpy.take_along_axis(numbers, ranks[:, None], 1)
    values = numpy.take_along_axis(lines, places, 1)
    return values.reshape(descriptor.result_shape), places.reshape(descriptor.result_shape)


def _mode(line: Any) -> int:
    """Where the least of the most frequent values stands last; NaN is one value, and the greatest."""
    import numpy

    values, times = numpy.unique(line, return_counts=True)
    value = values[numpy.argmax(times)]
    return int(numpy.flatnonzero((line == value) | (numpy.isnan(line) & numpy.isnan(value)))[-1])


def order_backward(descriptor: OrderBackwardDescriptor, d_values: Any, input: Any, indices: Any) -> Any:
    import numpy

    gradient = numpy.zeros((descriptor.lines, descriptor.count))
    numpy.put_along_axis(gradient, indices.reshape(-1, 1).astype(int), d_values.reshape(-1, 1), 1)
    return _back(descriptor, gradient)


def _neighbours(descriptor: QuantileDescriptor, q: float, nans: Any) -> tuple[Any, Any, Any]:
    """For every line the ranks of the elements on both sides of a quantile, and the weight of the second."""
    import numpy

    counted = descriptor.count - nans if descriptor.kind is QuantileKind.NANQUANTILE else numpy.full_like(nans, descriptor.count)
    position = q * numpy.maximum(counted - 1, 0)
    if descriptor.kind is QuantileKind.QUANTILE:
        position = numpy.where(nans > 0, descriptor.count - 1.0, position)
    rounded: Any = {
        Interpolation.LOWER: numpy.floor,
        Interpolation.HIGHER: numpy.ceil,
        Interpolation.NEAREST: numpy.rint,
    }.get(descriptor.interpolation, lambda position: position)
    position = rounded(position)
    below, above = numpy.floor(position), numpy.ceil(position)
    share = 0.5 * (above - below) if descriptor.interpolation is Interpolation.MIDPOINT else position - below
    return below.astype(int), above.astype(int), share


def quantile(descriptor: QuantileDescriptor, input: Any) -> Any:
    import numpy

    lines, numbers, nans = _ordered(descriptor, input)
    ordered, found = numpy.take_along_axis(lines, numbers, 1), []
    for q in descriptor.q:
        below, above, share = _neighbours(descriptor, q, nans)
        low, high = (numpy.take_along_axis(ordered, rank[:, None], 1)[:, 0] for rank in (below, above))
        with numpy.errstate(invalid="ignore"):
            gap = high - low
            between = numpy.where(share < 0.5, low + share * gap, high - (1.0 - share) * gap)
        found.append(numpy.where(low == high, low, between))
    return numpy.stack(found).reshape(descriptor.result_shape)


def quantile_backward(descriptor: QuantileBackwardDescriptor, d_result: Any, input: Any) -> Any:
    import numpy

    _, numbers, nans = _ordered(descriptor, input)
    gradient, every = numpy.zeros((descriptor.lines, descriptor.count)), numpy.arange(descriptor.lines)
    for q, d in zip(descriptor.q, d_result.reshape(len(descriptor.q), -1), strict=True):
        below, above, share = _neighbours(descriptor, q, nans)
        numpy.add.at(gradient, (every, numbers[every, below]), d * (1.0 - share))
        with numpy.errstate(invalid="ignore"):
            above_too = numpy.where(share > 0.0, d * share, 0.0)
        numpy.add.at(gradient, (every, numbers[every, above]), above_too)
    return _back(descriptor, gradient)
