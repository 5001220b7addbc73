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
    if descriptor.kind.value == "bitcast":
        return decode(encode(input, source), target).reshape(numpy.shape(input))
    if target.is_float:
        return numpy.asarray(input, dtype=numpy.float64)
    if target is ElementKind.BOOL:
        return (numpy.asarray(input) != 0).astype(numpy.int64)
    if not source.is_float:
        return rounded(input, target)
    limits = numpy.iinfo(NUMPY_NAMES[target])
    whole = numpy.trunc(numpy.nan_to_num(input, nan=0.0, posinf=numpy.inf, neginf=-numpy.inf))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max))
    found = numpy.where(inside, whole, 0.0).astype(numpy.int64)
    return numpy.where(inside, found, numpy.where(whole < 0, limits.min, limits.max))
