"""Conversions in NumPy, sharing nothing with any kernel or formula."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import NUMPY_NAMES, decode, encode, rounded

__all__ = ["cast"]


def cast(descriptor: Any, input: Any) -> Any:
    """The numbers, or the bits, as float64 or int64."""
    import numpy

    source, target = descriptor.element, descriptor.result_element
    if descriptor.saturate and target is not ElementKind.BOOL:
        input = _within(input, target)
    if descriptor.kind.value == "bitcast":
        return decode(encode(input, source), target).reshape(numpy.shape(input))
    if target.is_complex:
        return numpy.asarray(input, dtype=complex)
    if source.is_complex and target is not ElementKind.BOOL:
        input = numpy.real(input)
    if target.is_float:
        return numpy.asarray(input, dtype=numpy.float64)
    if target is ElementKind.BOOL:
        return (numpy.asarray(input) != 0).astype(numpy.int64)
    if not source.part.is_float:
        return rounded(input, target)
    limits = numpy.iinfo(NUMPY_NAMES[target])
    whole = numpy.trunc(numpy.nan_to_num(input, nan=0.0, posinf=numpy.inf, neginf=-numpy.inf))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max))
    found = numpy.where(inside, whole, 0.0).astype(numpy.int64)
    return numpy.where(inside, found, numpy.where(whole < 0, limits.min, limits.max))


def _within(input: Any, target: ElementKind) -> Any:
    """Numbers beyond the least and the largest of the element are these."""
    import numpy

    if target.is_float:
        return numpy.clip(numpy.asarray(input, numpy.float64), -_largest(target), _largest(target))
    if numpy.asarray(input).dtype.kind == "f":
        return input  # floats saturate as they become integers
    limits = numpy.iinfo(NUMPY_NAMES[target])
    found = [min(max(int(each), limits.min), limits.max) for each in numpy.ravel(input)]
    return numpy.array(found, NUMPY_NAMES[target]).reshape(numpy.shape(input))


def _largest(element: ElementKind) -> float:
    """The largest finite number, of short floats by looking at all of them."""
    import numpy

    if element.size > 2:
        return float(numpy.finfo(NUMPY_NAMES[element]).max)
    every = decode(numpy.arange(1 << 8 * element.size, dtype=f"uint{8 * element.size}").view(numpy.uint8), element)
    return float(every[numpy.isfinite(every)].max())
