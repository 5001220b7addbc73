"""Conversion of numbers to the bytes of a dtype and back, in NumPy, so that bf16 and floats of 8 bits need no framework. For checks and references, not for speed."""

from __future__ import annotations

import functools
from typing import Any

from baracuda_kernels.core.element import FLOATS8, ElementKind

NUMPY_NAMES = {
    ElementKind.F32: "float32", ElementKind.F64: "float64", ElementKind.F16: "float16", ElementKind.I8: "int8",
    ElementKind.I16: "int16", ElementKind.I32: "int32", ElementKind.I64: "int64", ElementKind.U8: "uint8",
    ElementKind.BOOL: "bool", ElementKind.C64: "complex64", ElementKind.C128: "complex128",
    ElementKind.U16: "uint16", ElementKind.U32: "uint32", ElementKind.U64: "uint64",
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

    if element in FLOATS8:
        return _encode8(numpy.ravel(values), element)
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
    """A flat array of bytes as float64 (integers as int64, u64 as uint64, complex as complex128)."""
    import numpy

    if element in FLOATS8:
        return _values8(element)[numpy.ascontiguousarray(data).view(numpy.uint8)]
    if element is ElementKind.U64:
        return numpy.ascontiguousarray(data).view(numpy.uint64)
    if element is ElementKind.BF16:
        words = numpy.ascontiguousarray(data).view(numpy.uint16).astype(numpy.uint32)
        return (words << 16).view(numpy.float32).astype(numpy.float64)
    wide = {"f": "float64", "i": "int64", "u": "int64", "b": "int64", "c": "complex128"}[numpy.dtype(NUMPY_NAMES[element]).kind]
    return numpy.ascontiguousarray(data).view(NUMPY_NAMES[element]).astype(wide)


def rounded(values: Any, element: ElementKind) -> Any:
    """The values rounded to the dtype, as wide numbers of the same shape."""
    import numpy

    return decode(encode(values, element), element).reshape(numpy.shape(values))


@functools.cache
def _values8(element: ElementKind) -> Any:
    """The number that each byte is, as float64."""
    import numpy

    digits, bias, most = _LAYOUTS8[element]
    size = numpy.arange(128)
    exponent, fraction = numpy.maximum(size >> digits, 1), (size & ((1 << digits) - 1)) + ((size >> digits > 0) << digits)
    values = numpy.ldexp(fraction.astype(numpy.float64), exponent - bias - digits)
    values[most + 1 :] = numpy.nan
    if element is ElementKind.F8E5M2:
        values[most + 1] = numpy.inf
    found = numpy.concatenate([values, -values])
    if element not in (ElementKind.F8E4M3FN, ElementKind.F8E5M2):
        found[128] = numpy.nan
    return found


_LAYOUTS8 = {  # digits of the fraction, bias of the exponent, and the byte of the largest number
    ElementKind.F8E4M3FN: (3, 7, 0x7E), ElementKind.F8E5M2: (2, 15, 0x7B), ElementKind.F8E4M3FNUZ: (3, 8, 0x7F), ElementKind.F8E5M2FNUZ: (2, 16, 0x7F),
}  # fmt: skip


def _encode8(values: Any, element: ElementKind) -> Any:
    """By where a number lies among all that there are; in the middle of two the one whose last bit is 0. What is beyond the last one
    and the middle to one more is infinite or NaN."""
    import numpy

    most, numbers = _LAYOUTS8[element][2], _values8(element)
    values = numpy.asarray(values, numpy.float64)
    size, known = numpy.abs(values), numbers[: most + 1]
    middles = numpy.append((known[1:] + known[:-1]) / 2, known[-1] + (known[-1] - known[-2]) / 2)
    below = numpy.searchsorted(middles, size, "left")
    at = numpy.minimum(below, most)
    is_odd_middle = (below <= most) & (size == middles[at]) & (at % 2 == 1)
    code = numpy.where(is_odd_middle, at + 1, below)
    is_signed, sign = numpy.isnan(numbers[128]), numpy.where(numpy.signbit(values), 128, 0)
    if is_signed:  # its only NaN has the place of minus zero
        code = numpy.where(numpy.isnan(values) | (code > most), 128, code + numpy.where(code > 0, sign, 0))
    else:
        code = numpy.where(numpy.isnan(values), 127, code) + sign
    return code.astype(numpy.uint8)
