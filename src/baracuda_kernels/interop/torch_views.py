"""Borrowed views as PyTorch tensors over the same memory, for PyTorch's own kernels."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import torch

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorRef

DTYPES = {
    ElementKind.F32: torch.float32, ElementKind.F64: torch.float64, ElementKind.F16: torch.float16, ElementKind.BF16: torch.bfloat16,
    ElementKind.I8: torch.int8, ElementKind.I16: torch.int16, ElementKind.I32: torch.int32, ElementKind.I64: torch.int64,
    ElementKind.U8: torch.uint8, ElementKind.BOOL: torch.bool, ElementKind.C64: torch.complex64, ElementKind.C128: torch.complex128,
}  # fmt: skip


def as_torch(view: TensorRef | None) -> Any:
    """The tensor itself where the view is of one, otherwise a new tensor over the view's memory. Nothing is copied."""
    if view is None:
        return None
    layout, data = view.layout, view.data
    dtype = DTYPES[layout.element]
    if isinstance(data, torch.Tensor) and (data.data_ptr(), tuple(data.shape), data.stride(), data.dtype) == (
        view.address,
        layout.shape,
        layout.stride,
        dtype,
    ):
        return data
    # The stride of an axis of extent 1 means nothing, but PyTorch refuses a negative one all the same.
    stride = tuple(step if extent > 1 else 1 for step, extent in zip(layout.stride, layout.shape, strict=True))
    if layout.count == 0:
        return torch.empty_strided(layout.shape, row_major(layout.shape), dtype=dtype, device=str(layout.device))
    if layout.low < 0:
        raise NotImplementedError("PyTorch has no negative strides")
    return bytes_at(view.address, layout.high, layout.device).view(dtype).as_strided(layout.shape, stride)


def bytes_at(address: int, size: int, device: Device) -> Any:
    """So many bytes of a device's memory, at least one, as a tensor."""
    if device.kind is DeviceKind.CUDA:
        return torch.as_tensor(_CudaBytes(address, size), device=str(device))
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=torch.uint8)


class _CudaBytes:
    """Shows PyTorch a stretch of a CUDA device's memory."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"version": 3, "typestr": "|u1", "data": (address, False), "shape": (size,)}


@contextlib.contextmanager
def exactly_on(stream: Stream) -> Iterator[None]:
    """A context for PyTorch's kernels: on that stream, without recording gradients, with f32 products in full precision."""
    with contextlib.ExitStack() as stack:
        if stream.device.kind is DeviceKind.CUDA:
            from baracuda_kernels.gpu.driver import driver

            # Threads of autograd may have no context yet, which cuBLAS would warn of.
            stack.enter_context(driver().within(stream.device.index))
        stack.enter_context(torch.no_grad())
        stack.enter_context(stream.current())
        stack.enter_context(_full_precision(stream.device.kind))
        yield


@contextlib.contextmanager
def _full_precision(kind: DeviceKind) -> Iterator[None]:
    """Switches off TF32 and other reduced-precision products within."""
    backends: Any = torch.backends
    matmul = backends.cuda.matmul if kind is DeviceKind.CUDA else backends.mkldnn.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before
