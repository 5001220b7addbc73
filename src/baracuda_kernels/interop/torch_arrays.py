"""PyTorch's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from baracuda_kernels.core.arrays import see
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.interop.torch_views import DTYPES, queued_on


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    return functools.partial(torch.empty, shape, dtype=DTYPES[element], device=str(device))


def needs_gradient(tensor: Any) -> bool:
    return bool(tensor.requires_grad) and torch.is_grad_enabled()


FRAMEWORK = Framework(
    "PyTorch", see, maker, torch.Tensor.data_ptr, "{}.contiguous()", queued_on=queued_on, needs_gradient=needs_gradient
)
