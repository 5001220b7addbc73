"""What reductions are timed beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, GIVEN, Call, compiled
from baracuda_kernels.ops.reduction.descriptor import ReduceDescriptor, ReduceToDescriptor

__all__ = ["reduce", "reduce_to"]

AS_SUMS = ("sum", "mean", "amax", "amin", "logsumexp", "nansum", "nanmean")  # what takes any axes and memory for the result
NORMS = {"l1_norm": 1.0, "l2_norm": 2.0, "linf_norm": float("inf")}


def _function(descriptor: ReduceDescriptor) -> Callable[..., Any] | None:
    """PyTorch's, of the input and perhaps memory for the result; None where it has none that takes both."""
    import torch

    name, axes, keepdim = descriptor.kind.value, list(descriptor.axes), descriptor.keepdim
    if name in AS_SUMS:
        return lambda x, **out: getattr(torch, name)(x, axes, keepdim, **out)
    if name in ("var", "std"):
        (correction,) = descriptor.numbers
        return lambda x, **out: getattr(torch, name)(x, axes, correction=correction, keepdim=keepdim, **out)
    if name in NORMS or name == "vector_norm":
        order = NORMS[name] if name in NORMS else descriptor.numbers[0]
        return lambda x, **out: torch.linalg.vector_norm(x, order, axes, keepdim, **out)
    if name in ("argmax", "argmin", "prod", "any", "all") and len(axes) == 1:
        return lambda x, **out: getattr(torch, name)(x, axes[0], keepdim=keepdim, **out)
    return None


def reduce(descriptor: ReduceDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    function, input, result = _function(descriptor), operands["input"], operands["result"]
    if function is not None:
        yield ALLOCATING, lambda: function(input)
        yield GIVEN, lambda: function(input, out=result)
        yield COMPILED, compiled(function, result, input)


def reduce_to(descriptor: ReduceToDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    input, result, size = operands["input"], operands["result"], descriptor.target_shape
    if size:
        yield ALLOCATING, lambda: input.sum_to_size(size)
        yield COMPILED, compiled(lambda x: x.sum_to_size(size), result, input)
