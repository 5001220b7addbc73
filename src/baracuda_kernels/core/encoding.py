"""Conversion of numbers to the bytes of a dtype and back, in NumPy, so that bf16 needs no framework. For checks and references, not for speed."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.element import ElementKind

NUMPY_NAMES = {
    ElementKind.F32: "float32", ElementKind.F64: "float64", ElementKind.F16: "float16", ElementKind.I8: "int8",
    ElementKind.I16: "int16", ElementKind.I32: "int32", ElementKind.I64: "int64", ElementKind.U8: "uint8",
    ElementKind.BOOL: "bool", ElementKind.C64: "complex64", ElementKind.C128: "complex128",
}  # fmt: skip

CACHE_LINE = 64


def aligned_bytes(size: int) -> Any:
    """Uninitialized bytes aligned to a cache line; NumPy's own large arrays begin 16 bytes into a page."""
    import numpy

    room = numpy.empty(size + CACHE_LINE, numpy.uint8)
    first = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[first : first + size]


def encode(values: Any, element: ElementKind) -> Any:
    """The values, rounded to nearest even, as a flat array of bytes in row-major order."""
    import numpy

    if element is not ElementKind.BF16:
        with numpy.errstate(over="ignore"):
            return numpy.ascontiguousarray(values, dtype=NUMPY_NAMES[element]).reshape(-1).view(numpy.uint8)
    with numpy.errstate(over="ignore"):
        single = numpy.ascontiguousarray(values, dtype=numpy.float32).reshape(-1)
    pattern = single.view(numpy.uint32)
    rounded = (pattern + (0x7FFF + ((pattern >> 16) & 1))) >> 16  # wraps around for some NaN, which are replaced
    words = numpy.where(numpy.isnan(single), (pattern >> 16) | 0x40, rounded)
    return words.astype(numpy.uint16).view(numpy.uint8)


def decode(data: Any, element: ElementKind) -> Any:
    """A flat array of bytes as float64 (integers as int64, complex as complex128)."""
    import numpy

    if element is ElementKind.BF16:
        words = numpy.ascontiguousarray(data).view(numpy.uint16).astype(numpy.uint32)
        return (words << 16).view(numpy.float32).astype(numpy.float64)
    wide = {"f": "float64", "i": "int64", "u": "int64", "b": "int64", "c": "complex128"}[numpy.dtype(NUMPY_NAMES[element]).kind]
    return numpy.ascontiguousarray(data).view(NUMPY_NAMES[element]).astype(wide)


def rounded(values: Any, element: ElementKind) -> Any:
    """The values rounded to the dtype, as wide numbers of the same shape."""
    import numpy

    return decode(encode(values, element), element).reshape(numpy.shape(values))
