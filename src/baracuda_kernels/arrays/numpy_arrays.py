"""NumPy's arrays; bf16 and floats of 8 bits are ml_dtypes'."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from typing import Any

import numpy

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import NUMPY_NAMES, aligned_bytes
from baracuda_kernels.core.framework import Framework, Term
from baracuda_kernels.core.layout import Shape

LARGE = 1 << 16  # bytes from which on kernels are faster where cache lines begin with rows


@functools.cache
def dtype_of(element: ElementKind) -> numpy.dtype[Any]:
    if not element.is_numpys:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, element.framework_name))
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


# --- promotion ---------------------------------------------------------------------------------------------------------------------


def term(kind: Any) -> Any:
    """A dtype, or a number of Python, as `result_type` takes them: NumPy's numbers have dtypes."""
    if isinstance(kind, ElementKind):
        return dtype_of(kind)
    return numpy.dtype(kind) if issubclass(kind, numpy.generic) else kind(1)


def promoted(terms: Sequence[Term]) -> ElementKind:
    """NumPy 2's rules: numbers of Python are weak, and axes do not matter."""
    given = [term(kind) for kind, _ in terms]
    common = numpy.result_type(*(each for each in given if isinstance(each, numpy.dtype)))
    weak = [each for each in given if not isinstance(each, numpy.dtype)]
    return ElementKind.of(numpy.result_type(common, *weak) if common.kind in "?biufc" else common)


def inexact(function: str, element: ElementKind) -> ElementKind:
    """The narrowest float that holds the integers; of quotients f64."""
    if function.startswith("div") or element.size > 2:
        return ElementKind.F64
    return ElementKind.F16 if element.size == 1 else ElementKind.F32


def stores(element: ElementKind, target: ElementKind) -> bool:
    return numpy.can_cast(dtype_of(element), dtype_of(target), "same_kind")


def number(value: Any, among: tuple[Any, ...], like: Any) -> Any:
    """A number as an array of the dtype that those numbers have among themselves."""
    return numpy.asarray(value, numpy.result_type(*among))


def scalar(array: Any, like: Any) -> Any:
    """Of rank 0 NumPy itself gives scalars."""
    return array if array.ndim else array[()]


FRAMEWORK = Framework(
    "NumPy",
    maker,
    address,
    "numpy.ascontiguousarray({})",
    promoted=promoted,
    inexact=inexact,
    stores=stores,
    number=number,
    scalar=scalar,
)
