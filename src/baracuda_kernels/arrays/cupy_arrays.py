"""CuPy's arrays. CuPy has no bf16."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import cupy

from baracuda_kernels.arrays.numpy_arrays import dtype_of
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.stream import Stream


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    if element is ElementKind.BF16:
        raise rejection("CuPy", [Reason(ReasonCode.ELEMENT, "CuPy", element, "a dtype that CuPy has")])
    dtype = dtype_of(element)

    def make() -> Any:
        with cupy.cuda.Device(device.index):
            return cupy.empty(shape, dtype)

    return make


def address(array: Any) -> int:
    return int(array.data.ptr)


def current_stream(device: Device) -> Stream:
    with cupy.cuda.Device(device.index):
        return Stream.cuda(device.index, cupy.cuda.get_current_stream().ptr)


def queued_on(stream: Stream) -> AbstractContextManager[Any]:
    handle = stream.queue().cuda_stream if stream.handle is None else stream.handle
    if not hasattr(cupy.cuda.Stream, "from_external"):  # before CuPy 14
        return cupy.cuda.ExternalStream(handle, stream.device.index)
    with cupy.cuda.Device(stream.device.index):
        return cupy.cuda.Stream.from_external(_Queue(handle))


class _Queue:
    """A stream of another library, given by its handle."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


FRAMEWORK = Framework("CuPy", maker, address, "cupy.ascontiguousarray({})", current_stream=current_stream, queued_on=queued_on)
