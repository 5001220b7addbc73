"""What reductions are compared with in the bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, PeerCall, compiled, differentiated
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    ReduceJointDescriptor,
    ReducePairDescriptor,
    ReduceToDescriptor,
)

__all__ = ["reduce", "reduce_backward", "reduce_joint", "reduce_pair", "reduce_to"]

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
    if name == "count_nonzero":
        return None if keepdim else lambda x: torch.count_nonzero(x, axes)
    if name in ("argmax", "argmin", "prod", "any", "all") and len(axes) == 1:
        return lambda x, **out: getattr(torch, name)(x, axes[0], keepdim=keepdim, **out)
    return None


def reduce(descriptor: ReduceDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    function, input, result = _function(descriptor), operands["input"], operands["result"]
    if function is not None:
        yield ALLOCATING, lambda: function(input)
        if descriptor.kind.value != "count_nonzero":
            yield GIVEN, lambda: function(input, out=result)
        yield COMPILED, compiled(function, result, input)


def reduce_backward(descriptor: ReduceBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    function = _function(descriptor)
    if function is not None and descriptor.kind.value not in ("argmax", "argmin", "any", "all", "count_nonzero"):
        yield ALLOCATING, differentiated(function, operands["d_result"], operands["input"])


def reduce_pair(descriptor: ReducePairDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    name, axes, keepdim, x = descriptor.kind.value, list(descriptor.axes), descriptor.keepdim, operands["input"]
    given = (operands["result"], operands["second"])
    if name in ("var_mean", "std_mean"):
        (correction,) = descriptor.numbers
        yield ALLOCATING, lambda: getattr(torch, name)(x, axes, correction=correction, keepdim=keepdim)
    elif len(axes) == 1 and name == "aminmax":
        yield ALLOCATING, lambda: torch.aminmax(x, dim=axes[0], keepdim=keepdim)
        yield GIVEN, lambda: torch.aminmax(x, dim=axes[0], keepdim=keepdim, out=given)
    elif len(axes) == 1:
        function = torch.max if name == "max_with_indices" else torch.min
        yield ALLOCATING, lambda: function(x, axes[0], keepdim)
        yield GIVEN, lambda: function(x, axes[0], keepdim, out=given)


def reduce_joint(descriptor: ReduceJointDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    x, y, axes = operands["input"], operands["other"], list(descriptor.axes)
    name = descriptor.kind.value
    if name == "cosine_similarity" and len(axes) == 1:
        yield ALLOCATING, lambda: torch.nn.functional.cosine_similarity(x, y, axes[0])
    elif name == "pairwise_distance" and axes == [x.ndim - 1]:
        yield ALLOCATING, lambda: torch.nn.functional.pairwise_distance(x, y)
    elif name == "dist" and len(axes) == x.ndim:
        yield ALLOCATING, lambda: torch.dist(x, y)
    elif name == "allclose" and len(axes) == x.ndim:
        yield ALLOCATING, lambda: torch.isclose(x, y).all()


def reduce_to(descriptor: ReduceToDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    input, result, size = operands["input"], operands["result"], descriptor.target_shape
    if size:
        yield ALLOCATING, lambda: input.sum_to_size(size)
        yield COMPILED, compiled(lambda x: x.sum_to_size(size), result, input)
