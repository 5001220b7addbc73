"""What the ops on elements are timed beside: PyTorch's function of the same name, with the same defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, GIVEN, Call, compiled
from baracuda_kernels.ops.elementwise.complex import ComplexDescriptor
from baracuda_kernels.ops.elementwise.descriptor import ElementwiseDescriptor

__all__ = ["binary", "complex", "ternary", "unary"]


def _forward(descriptor: ElementwiseDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    name = descriptor.row.name
    of_tensors = getattr(torch, name, None) or getattr(torch.special, name, None)
    function = of_tensors or getattr(torch.nn.functional, name, None)
    if function is None or descriptor.parameters:
        return
    given, result = [operands[each] for each in descriptor.OPERANDS], operands["result"]
    yield ALLOCATING, lambda: function(*given)
    if of_tensors is not None and _writes(name):
        yield GIVEN, lambda: function(*given, out=result)
    yield COMPILED, compiled(function, result, *given)


def _writes(name: str) -> bool:
    """Whether it takes memory for its result."""
    import torch

    probe = torch.zeros(1)
    function = getattr(torch, name, None) or getattr(torch.special, name)
    for count in (1, 2, 3):
        try:
            function(*[probe] * count, out=torch.empty_like(function(*[probe] * count)))
        except (TypeError, RuntimeError):
            continue
        return True
    return False


unary = binary = ternary = _forward


def complex(descriptor: ComplexDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    function, (first, second, result) = getattr(torch, descriptor.kind.value), operands.values()
    yield ALLOCATING, lambda: function(first, second)
    yield GIVEN, lambda: function(first, second, out=result)
    yield COMPILED, compiled(function, result, first, second)
