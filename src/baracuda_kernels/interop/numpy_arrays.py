"""NumPy's arrays; bf16 is ml_dtypes'."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape

_NAMES = {
    ElementKind.F32: "float32", ElementKind.F64: "float64", ElementKind.F16: "float16",
    ElementKind.I8: "int8", ElementKind.I16: "int16", ElementKind.I32: "int32", ElementKind.I64: "int64",
    ElementKind.U8: "uint8", ElementKind.BOOL: "bool", ElementKind.C64: "complex64", ElementKind.C128: "complex128",
}  # fmt: skip


@functools.cache
def dtype_of(element: ElementKind) -> numpy.dtype[Any]:
    if element is ElementKind.BF16:
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(_NAMES[element])


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    return functools.partial(numpy.empty, shape, dtype_of(element))


def address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


FRAMEWORK = Framework("NumPy", maker, address, "numpy.ascontiguousarray({})")
