"""What the elementwise ops are compared with in the bench: PyTorch's function of the same name, with the same defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, PeerCall, compiled, differentiated
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor
from baracuda_kernels.ops.elementwise.complex import ComplexDescriptor
from baracuda_kernels.ops.elementwise.descriptor import (
    ElementwiseDescriptor,
    GatedActivationBackwardDescriptor,
    GatedActivationDescriptor,
)
from baracuda_kernels.ops.elementwise.pairs import UnaryPairDescriptor
from baracuda_kernels.ops.elementwise.where import WhereDescriptor

__all__ = [
    "binary", "binary_backward", "cast", "complex", "gated_activation", "gated_activation_backward", "ternary", "ternary_backward",
    "unary", "unary_backward", "unary_pair", "where",
]  # fmt: skip

Peers = Iterator[tuple[str, PeerCall]]
HANDED_BACK = ("positive", "conj", "real")  # of real numbers PyTorch's result is the operand itself, and nothing is written


def _function(descriptor: ElementwiseDescriptor) -> tuple[Callable[..., Any] | None, bool]:
    """PyTorch's, and whether it may take memory for its result."""
    import torch

    name = descriptor.row.name
    of_tensors = getattr(torch, name, None) or getattr(torch.special, name, None)
    function = of_tensors or getattr(torch.nn.functional, name, None)
    return (None, False) if descriptor.parameters else (function, of_tensors is not None)


def _forward(descriptor: ElementwiseDescriptor, operands: dict[str, Any]) -> Peers:
    function, may_write = _function(descriptor)
    if function is None or descriptor.row.name in HANDED_BACK:
        return
    given, result = [operands[each] for each in descriptor.OPERANDS], operands["result"]
    yield ALLOCATING, lambda: function(*given)
    if may_write and _writes(descriptor.row.name):
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


def _backward(descriptor: ElementwiseDescriptor, operands: dict[str, Any]) -> Peers:
    function, _ = _function(descriptor)
    if function is not None:
        yield ALLOCATING, differentiated(function, operands["d_result"], *(operands[each] for each in descriptor.OPERANDS))


unary = binary = ternary = _forward
unary_backward = binary_backward = ternary_backward = _backward


def unary_pair(descriptor: UnaryPairDescriptor, operands: dict[str, Any]) -> Peers:
    import torch

    if descriptor.kind.value == "frexp":
        x, first, second = operands["input"], operands["first"], operands["second"]
        yield ALLOCATING, lambda: torch.frexp(x)
        if second.dtype is torch.int32:
            yield GIVEN, lambda: torch.frexp(x, out=(first, second))


def cast(descriptor: CastDescriptor, operands: dict[str, Any]) -> Peers:
    x, result = operands["input"], operands["result"]
    if descriptor.kind.value == "cast":
        yield ALLOCATING, lambda: x.to(result.dtype)
        yield GIVEN, lambda: result.copy_(x)


def where(descriptor: WhereDescriptor, operands: dict[str, Any]) -> Peers:
    import torch

    condition, result, x, y = operands["condition"], operands["result"], operands.get("input"), operands.get("other")
    if x is not None and y is not None:
        yield ALLOCATING, lambda: torch.where(condition, x, y)
        yield GIVEN, lambda: torch.where(condition, x, y, out=result)


def _gated(kind: str) -> Callable[[Any, Any], Any]:
    """The formula in PyTorch, of two of its functions."""
    import torch

    activation = {"glu": torch.sigmoid, "reglu": torch.relu, "geglu": torch.nn.functional.gelu, "swiglu": torch.nn.functional.silu}[
        kind
    ]
    return (lambda input, gate: input * activation(gate)) if kind == "glu" else (lambda gate, up: activation(gate) * up)


def gated_activation(descriptor: GatedActivationDescriptor, operands: dict[str, Any]) -> Peers:
    function, (first, second, result) = _gated(descriptor.kind.value), (operands[name] for name in ("first", "second", "result"))
    yield ALLOCATING, lambda: function(first, second)
    yield COMPILED, compiled(function, result, first, second)


def gated_activation_backward(descriptor: GatedActivationBackwardDescriptor, operands: dict[str, Any]) -> Peers:
    yield ALLOCATING, differentiated(_gated(descriptor.kind.value), *(operands[name] for name in ("d_result", "first", "second")))


def complex(descriptor: ComplexDescriptor, operands: dict[str, Any]) -> Peers:
    import torch

    function, (first, second, result) = getattr(torch, descriptor.kind.value), operands.values()
    yield ALLOCATING, lambda: function(first, second)
    yield GIVEN, lambda: function(first, second, out=result)
    yield COMPILED, compiled(function, result, first, second)
