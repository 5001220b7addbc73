"""NumPy's arrays; bf16 is ml_dtypes'."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from ctypes import addressof, c_char
from typing import Any

import numpy

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import NUMPY_NAMES, aligned_bytes
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape

LARGE = 1 << 16  # bytes from which on kernels are faster where cache lines begin with rows


@functools.cache
def dtype_of(element: ElementKind) -> numpy.dtype[Any]:
    if element is ElementKind.BF16:
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(NUMPY_NAMES[element])


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    dtype = dtype_of(element)
    size = math.prod(shape) * dtype.itemsize
    if size < LARGE:
        return functools.partial(numpy.empty, shape, dtype)
    return lambda: aligned_bytes(size).view(dtype).reshape(shape)


def address(array: Any) -> int:
    """Of an array that was made here."""
    if array.size and array.dtype.isbuiltin == 1:  # of others, such as bf16, there are no buffers
        return addressof(c_char.from_buffer(array))  # a fifth of the time that asking NumPy takes
    found: int = array.__array_interface__["data"][0]
    return found


FRAMEWORK = Framework("NumPy", maker, address, "numpy.ascontiguousarray({})")
