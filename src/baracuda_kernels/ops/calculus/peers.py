"""What ops on neighbours are compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, PeerCall, compiled
from baracuda_kernels.ops.calculus.diff import DiffDescriptor
from baracuda_kernels.ops.calculus.gradient import GradientDescriptor
from baracuda_kernels.ops.calculus.trapezoid import TrapezoidDescriptor

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid"]


def diff(descriptor: DiffDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    x, n, axis, result = operands["input"], descriptor.n, descriptor.axis, operands["result"]
    more = operands.get("prepend"), operands.get("append")
    yield ALLOCATING, lambda: torch.diff(x, n, axis, *more)
    yield GIVEN, lambda: torch.diff(x, n, axis, *more, out=result)
    if more == (None, None):
        yield COMPILED, compiled(lambda x: torch.diff(x, n, axis), result, x)


def gradient(descriptor: GradientDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    x, at, axis, order = operands["input"], operands.get("spacing"), descriptor.axis, descriptor.edge_order
    spacing: Any = descriptor.spacing_value if at is None else (at,)
    yield ALLOCATING, lambda: torch.gradient(x, spacing=spacing, dim=axis, edge_order=order)[0]
    if at is None:
        yield (
            COMPILED,
            compiled(lambda x: torch.gradient(x, spacing=spacing, dim=axis, edge_order=order)[0], operands["result"], x),
        )


def trapezoid(descriptor: TrapezoidDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    yield from _integral(torch.trapezoid, descriptor, operands)


def cumulative_trapezoid(descriptor: TrapezoidDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    yield from _integral(torch.cumulative_trapezoid, descriptor, operands)


def _integral(function: Any, descriptor: TrapezoidDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    y, x, axis, result = operands["y"], operands.get("x"), descriptor.axis, operands["result"]
    if x is None:
        yield ALLOCATING, lambda: function(y, dx=descriptor.dx, dim=axis)
        yield COMPILED, compiled(lambda y: function(y, dx=descriptor.dx, dim=axis), result, y)
    else:
        yield ALLOCATING, lambda: function(y, x, dim=axis)
        yield COMPILED, compiled(lambda y, x: function(y, x, dim=axis), result, y, x)
