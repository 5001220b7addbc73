"""PyTorch's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd import forward_ad

from baracuda_kernels.core.arrays import torch_seer
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape, row_major
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.targets.aten import DTYPES

# What compiled PyTorch code makes its buffers with: no dispatch, so it takes less than half the time. It is not a public name.
_empty_on_cpu = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cpu", None)


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    if device.kind is DeviceKind.CPU and _empty_on_cpu is not None:
        return functools.partial(_empty_on_cpu, shape, row_major(shape), DTYPES[element])
    where = torch.device(str(device))
    return functools.partial(torch.empty_strided, shape, row_major(shape), dtype=DTYPES[element], device=where)


def derivative(tensor: Any) -> str | None:
    if tensor.requires_grad and torch.is_grad_enabled():
        return "requires_grad=True"
    return "a tangent" if in_forward_mode() and forward_ad.unpack_dual(tensor).tangent is not None else None


def in_forward_mode() -> bool:
    """Whether forward-mode differentiation is active, so that tensors may have tangents."""
    return forward_ad._current_level >= 0


def written(tensors: Iterable[Any]) -> None:
    """Increments the tensor's version, so that a backward that saved the old values raises."""
    torch.autograd.graph.increment_version([tensor for tensor in tensors if not tensor.is_inference()])


def used_on(tensors: Iterable[Any], stream: Stream) -> None:
    """Tells the allocator that the stream uses the tensor, so that its memory is not reused before the stream is done."""
    queue = stream.queue()
    for tensor in tensors:
        tensor.record_stream(queue)


FRAMEWORK = Framework(
    "PyTorch",
    maker,
    torch.Tensor.data_ptr,
    "{}.contiguous()",
    queued_on=Stream.current,
    used_on=used_on,
    written=written,
    derivative=derivative,
    see_constants=torch_seer(forward_ad),
)
