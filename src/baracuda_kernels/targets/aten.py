"""Memory at given addresses as PyTorch's tensors, for kernels that are PyTorch's own."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.stream import Stream

DTYPES: dict[ElementKind, torch.dtype] = {element: getattr(torch, element.framework_name) for element in ElementKind}


def as_torch(addresses: Sequence[int], layouts: Sequence[Layout | None]) -> list[Any]:
    """A tensor over each operand's memory, None for those that are not there. Nothing is copied."""
    return [None if layout is None else _tensor_at(address, layout) for address, layout in zip(addresses, layouts, strict=True)]


@functools.lru_cache(maxsize=256)  # memory is often given again; a tensor is a view that owns nothing
def _tensor_at(address: int, layout: Layout) -> Any:
    # An ordinary tensor whoever calls: neither one of inference mode nor one that a mode makes in its place.
    with torch.inference_mode(False), torch._C._DisableTorchDispatch():
        if layout.count == 0:
            return torch.empty_strided(
                layout.shape, row_major(layout.shape), dtype=DTYPES[layout.element], device=str(layout.device)
            )
        if layout.low < 0:
            raise NotImplementedError("PyTorch has no negative strides")
        # The stride of an axis of extent 1 means nothing, but PyTorch refuses a negative one all the same.
        stride = tuple(step if extent > 1 else 1 for step, extent in zip(layout.stride, layout.shape, strict=True))
        return bytes_at(address, layout.high, layout.device).view(DTYPES[layout.element]).as_strided(layout.shape, stride)


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
            from baracuda_kernels.core.cuda_driver import driver

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
