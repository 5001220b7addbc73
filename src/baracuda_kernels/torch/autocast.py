"""Under `torch.autocast`: which element an operator computes in. The rules are those of PyTorch's own operators.

Ops on matrix units run in autocast's element. On CUDA softmax and norms run in f32. Everything else keeps the element of its first
input, and the other inputs follow it. f64 is left alone, as are integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import _C

from baracuda_kernels.core.function import Function
from baracuda_kernels.core.sku import OpCategory

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["cast", "kernel"]

_WIDE_ON_CUDA = (OpCategory.SOFTMAX, OpCategory.NORMALIZATION)
_CAST = (torch.float32, torch.float16, torch.bfloat16)


def kernel(operator: Operator, device: str, *arguments: Any) -> Any:
    """What the operator does while autocast is on."""
    with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device}"))):
        return operator.overload(*cast(operator.function, arguments))


def cast(function: Function, arguments: Any) -> list[Any]:
    """The arguments of a function with its inputs in the element that autocast wants."""
    cast = list(arguments)
    if cast[0].dtype not in _CAST:
        return cast
    target = _target(function, cast[0])
    for place, operand in enumerate(function.inputs.values()):
        tensor = cast[place]
        if tensor is not None and tensor.dtype in _CAST:
            # What has an element of its own, such as a state, is f32 beside any half.
            cast[place] = tensor.to(target if operand.element_rule == "element" else torch.float32)
    return cast


def _target(function: Function, first: torch.Tensor) -> torch.dtype:
    if function.plan.cases.on_matrix_units:
        return torch.get_autocast_dtype(first.device.type)
    if function.plan.category in _WIDE_ON_CUDA and first.is_cuda:
        return torch.float32
    return first.dtype
