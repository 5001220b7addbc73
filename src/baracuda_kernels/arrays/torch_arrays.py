"""PyTorch's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import torch
from torch.autograd import forward_ad

from baracuda_kernels.core.arrays import torch_seer
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.framework import Framework, Term
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


def number(value: Any, among: tuple[Any, ...], like: Any) -> Any:
    """A number as a tensor of the dtype that those numbers have among themselves."""
    plain = [each.item() if hasattr(each, "item") else each for each in among]
    return torch.full((), value, dtype=functools.reduce(torch.result_type, plain), device=like.device)


def written(tensors: Iterable[Any]) -> None:
    """Increments the tensor's version, so that a backward that saved the old values raises."""
    torch.autograd.graph.increment_version([tensor for tensor in tensors if not tensor.is_inference()])


def used_on(tensors: Iterable[Any], stream: Stream) -> None:
    """Tells the allocator that the stream uses the tensor, so that its memory is not reused before the stream is done."""
    queue = stream.queue()
    for tensor in tensors:
        tensor.record_stream(queue)


# --- promotion ---------------------------------------------------------------------------------------------------------------------


def promoted(terms: Sequence[Term]) -> ElementKind:
    """As `torch.result_type` has it."""
    with_axes = [DTYPES[kind] for kind, has_axes in terms if isinstance(kind, ElementKind) and has_axes]
    without = [DTYPES[kind] for kind, has_axes in terms if isinstance(kind, ElementKind) and not has_axes]
    return ElementKind.of(result_type(with_axes, without, [_of_number(kind) for kind, _ in terms if isinstance(kind, type)]))


def result_type(*groups: Sequence[torch.dtype]) -> torch.dtype:
    """The dtype that PyTorch promotes to: a group counts beside one before only where it is of a higher category."""
    return functools.reduce(_beside, [functools.reduce(torch.promote_types, group) for group in groups if group][::-1])


def _beside(other: torch.dtype, dtype: torch.dtype) -> torch.dtype:
    """What a dtype becomes beside another that only its category counts of."""
    if category(dtype) >= category(other):
        return dtype
    return dtype.to_complex() if dtype.is_floating_point else torch.promote_types(dtype, other)


def category(dtype: torch.dtype) -> int:
    """The category of a dtype: boolean, integer, float or complex."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else int(dtype is not torch.bool)


def _of_number(kind: type) -> torch.dtype:
    if kind is bool:
        return torch.bool
    if issubclass(kind, Integral):
        return torch.int64
    return torch.get_default_dtype() if issubclass(kind, Real) else torch.get_default_dtype().to_complex()


def inexact(function: str, element: ElementKind) -> ElementKind:
    return ElementKind.of(torch.get_default_dtype())


def stores(element: ElementKind, target: ElementKind) -> bool:
    return torch.can_cast(DTYPES[element], DTYPES[target])


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
    promoted=promoted,
    inexact=inexact,
    stores=stores,
    all_without_axes=True,
    number=number,
)
