"""A borrowed view as a PyTorch tensor over the same memory, for kernels that are PyTorch's own."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.element import ElementKind
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
    if isinstance(data, torch.Tensor) and data.data_ptr() == view.address and tuple(data.shape) == layout.shape:
        if data.stride() == layout.stride and data.dtype is DTYPES[layout.element]:
            return data
    if layout.device.kind is not DeviceKind.CPU:
        raise NotImplementedError(f"a view on {layout.device} that is not a PyTorch tensor")
    if layout.count == 0:
        return torch.empty_strided(layout.shape, layout.stride, dtype=DTYPES[layout.element])
    if layout.low < 0:
        raise NotImplementedError("PyTorch has no negative strides")
    room = (ctypes.c_char * layout.high).from_address(view.address)
    flat = torch.frombuffer(room, dtype=DTYPES[layout.element])
    return flat.as_strided(layout.shape, layout.stride)
