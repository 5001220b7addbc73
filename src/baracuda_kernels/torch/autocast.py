"""Under `torch.autocast`: which element an operator computes in. The rules are those of PyTorch's own operators.

Ops on matrix units run in autocast's element. On CUDA softmax and norms run in f32. Everything else keeps the element of its first
input, and the other inputs follow it. f64 is left alone, as are integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import _C

from baracuda_kernels.core.function import Function
from baracuda_kernels.core.sku import OpCategory

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["dtypes", "kernel"]

_WIDE_ON_CUDA = (OpCategory.SOFTMAX, OpCategory.NORMALIZATION)
_CAST = (torch.float32, torch.float16, torch.bfloat16)


def kernel(operator: Operator, device: str, *given: Any) -> Any:
    """What the operator does while autocast is on."""
    arguments = cast(operator.function, given)
    with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device}"))):
        return operator.overload(*arguments)


def cast(function: Function, arguments: Any) -> list[Any]:
    """The arguments of an operator, with the inputs in the elements that autocast wants."""
    given = {name: value for name, value in zip(function.inputs, arguments, strict=False) if value is not None}
    wanted = dtypes(function, given)
    inputs = [given[name].to(wanted[name]) if name in given else None for name in function.inputs]
    return [*inputs, *arguments[len(inputs) :]]


def dtypes(function: Function, given: Mapping[str, torch.Tensor]) -> dict[str, torch.dtype]:
    """What each input is computed in: its own element while autocast is off."""
    own = {name: tensor.dtype for name, tensor in given.items()}
    first = next(iter(given.values()))
    if first.dtype not in _CAST or not torch.is_autocast_enabled(first.device.type):
        return own
    target = _target(function, first)
    # What has an element of its own, such as a state, is f32 beside any half.
    wanted = {name: target if function.inputs[name].element_rule == "element" else torch.float32 for name in given}
    return {name: wanted[name] if dtype in _CAST else dtype for name, dtype in own.items()}


def _target(function: Function, first: torch.Tensor) -> torch.dtype:
    if function.plan.cases.on_matrix_units:
        return torch.get_autocast_dtype(first.device.type)
    if function.plan.category in _WIDE_ON_CUDA and first.is_cuda:
        return torch.float32
    return first.dtype
