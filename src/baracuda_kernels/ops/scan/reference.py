"""The formulas in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.scan.descriptor import EXTREMA, ScanBackwardDescriptor, ScanDescriptor, ScanKind


def _turned(descriptor: ScanDescriptor, values: Any) -> Any:
    """The axis first, in the order of the scan."""
    import numpy

    moved = numpy.moveaxis(values, descriptor.axis, 0)
    return moved[::-1] if descriptor.reverse else moved


def _back(descriptor: ScanDescriptor, values: Any) -> Any:
    import numpy

    return numpy.ascontiguousarray(numpy.moveaxis(values[::-1] if descriptor.reverse else values, 0, descriptor.axis))


def scan(descriptor: ScanDescriptor, input: Any) -> Any:
    import numpy

    x, kind = _turned(descriptor, input), descriptor.kind
    with numpy.errstate(all="ignore"):
        if kind in EXTREMA:
            values, places = _extrema(descriptor, x)
            return (values, places) if descriptor.indices else values
        if kind is ScanKind.LOGCUMSUMEXP:
            return _back(descriptor, numpy.logaddexp.accumulate(x, axis=0) if x.size else x)
        function: Any = {
            ScanKind.CUMSUM: numpy.cumsum,
            ScanKind.CUMPROD: numpy.cumprod,
            ScanKind.NANCUMSUM: numpy.nancumsum,
            ScanKind.NANCUMPROD: numpy.nancumprod,
        }[kind]
        return _back(descriptor, function(x, axis=0))


def _extrema(descriptor: ScanDescriptor, x: Any) -> tuple[Any, Any]:
    import numpy

    extent = x.shape[0]
    sticky = numpy.maximum if descriptor.kind is ScanKind.CUMMAX else numpy.minimum  # both give NaN from the first NaN on
    best = sticky.accumulate(x, axis=0) if x.size else x
    here = (x == best) | numpy.isnan(x)
    walked = numpy.arange(extent).reshape(-1, *[1] * (x.ndim - 1))
    latest = numpy.maximum.accumulate(numpy.where(here, walked, -1), axis=0) if x.size else numpy.zeros(x.shape, numpy.int64)
    places = extent - 1 - latest if descriptor.reverse else latest
    return _back(descriptor, best), _back(descriptor, places.astype(numpy.int64))


def scan_backward(
    descriptor: ScanBackwardDescriptor, d_result: Any, input: Any = None, result: Any = None, indices: Any = None
) -> Any:
    import numpy

    kind, d = descriptor.kind, _turned(descriptor, d_result)
    saved: list[Any] = [None if each is None else _turned(descriptor, each) for each in (input, result, indices)]
    x, y, places = saved
    with numpy.errstate(all="ignore"):
        if kind in EXTREMA:
            gradient = _by_place(descriptor, d, places)
        elif kind is ScanKind.LOGCUMSUMEXP:
            gradient = _shares(d, x, y)
        elif kind in (ScanKind.CUMSUM, ScanKind.NANCUMSUM):
            gradient = numpy.cumsum(d[::-1], axis=0)[::-1]
        else:
            gradient = _of_product(d, numpy.where(numpy.isnan(x), 1.0, x) if kind is ScanKind.NANCUMPROD else x)
        if kind in (ScanKind.NANCUMSUM, ScanKind.NANCUMPROD):
            gradient = numpy.where(numpy.isnan(x), 0.0, gradient)
    return _back(descriptor, gradient)


def _by_place(descriptor: ScanBackwardDescriptor, d: Any, places: Any) -> Any:
    """What was taken from a place goes back there: to the latest one that was its own extremum."""
    import numpy

    extent = d.shape[0]
    walked = numpy.arange(extent).reshape(-1, *[1] * (d.ndim - 1))
    own = (extent - 1 - places if descriptor.reverse else places) == walked
    owner = numpy.maximum.accumulate(numpy.where(own, walked, -1), axis=0) if d.size else numpy.zeros(d.shape, int)
    gradient = numpy.zeros((extent + 1, *d.shape[1:]))  # the last row takes what belongs to none
    rest = numpy.indices(d.shape)[1:]
    numpy.add.at(gradient, (owner, *rest), d)
    return gradient[:extent]


def _shares(d: Any, x: Any, y: Any) -> Any:
    """The sum of d exp(x - y) over all y from that place on, relative to y's own power, which does not overflow."""
    import numpy

    gradient, running = numpy.empty_like(d), numpy.zeros(d.shape[1:])
    for at in reversed(range(d.shape[0])):
        if at + 1 < d.shape[0]:
            gap = numpy.where(y[at] == y[at + 1], 0.0, y[at] - y[at + 1])
            running = running * numpy.exp(gap)
        running = running + d[at]
        gradient[at] = numpy.where(numpy.isneginf(x[at]), 0.0, numpy.exp(x[at] - y[at]) * running)
    return gradient


def _of_product(d: Any, x: Any) -> Any:
    """What precedes a factor, times what follows from it: no division, so that zeros are like all others."""
    import numpy

    before = numpy.ones_like(x)
    before[1:] = numpy.cumprod(x[:-1], axis=0)
    after, running = numpy.empty_like(d), numpy.zeros(d.shape[1:])
    for at in reversed(range(d.shape[0])):
        running = d[at] + (running * x[at + 1] if at + 1 < d.shape[0] else 0.0)
        after[at] = running
    return before * after
