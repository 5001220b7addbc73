"""What order statistics are compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.peers import ALLOCATING, GIVEN, PeerCall
from baracuda_kernels.ops.order_statistics.descriptor import OrderDescriptor, QuantileDescriptor

__all__ = ["order", "quantile"]


def order(descriptor: OrderDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    if len(descriptor.axes) == 1:  # PyTorch takes no more
        function, input, (axis,) = getattr(torch, descriptor.kind.value), operands["input"], descriptor.axes
        out = operands["values"], operands["indices"]
        yield ALLOCATING, lambda: function(input, axis, descriptor.keepdim)
        yield GIVEN, lambda: function(input, axis, descriptor.keepdim, out=out)


def quantile(descriptor: QuantileDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    has_element = descriptor.element in (
        ElementKind.F32,
        ElementKind.F64,
    )  # PyTorch has no quantiles of 16-bit floats, nor of many elements
    if len(descriptor.axes) == 1 and has_element and operands["input"].numel() <= 1 << 24:
        function, input, (axis,) = getattr(torch, descriptor.kind.value), operands["input"], descriptor.axes
        q = torch.tensor(descriptor.q if descriptor.stacked else descriptor.q[0], dtype=input.dtype, device=input.device)
        yield ALLOCATING, lambda: function(input, q, axis, descriptor.keepdim, interpolation=descriptor.interpolation.value)
