"""What ops on neighbours are timed beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, GIVEN, Call, compiled
from baracuda_kernels.ops.neighbours.diff import DiffDescriptor
from baracuda_kernels.ops.neighbours.gradient import GradientDescriptor
from baracuda_kernels.ops.neighbours.trapezoid import TrapezoidDescriptor

__all__ = ["diff", "gradient", "trapezoid"]


def diff(descriptor: DiffDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    x, n, axis, result = operands["input"], descriptor.n, descriptor.axis, operands["result"]
    more = operands.get("prepend"), operands.get("append")
    yield ALLOCATING, lambda: torch.diff(x, n, axis, *more)
    yield GIVEN, lambda: torch.diff(x, n, axis, *more, out=result)
    if more == (None, None):
        yield COMPILED, compiled(lambda x: torch.diff(x, n, axis), result, x)


def gradient(descriptor: GradientDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    x, at, axis, order = operands["input"], operands.get("spacing"), descriptor.axis, descriptor.edge_order
    spacing: Any = descriptor.spacing_value if at is None else (at,)
    yield ALLOCATING, lambda: torch.gradient(x, spacing=spacing, dim=axis, edge_order=order)[0]
    if at is None:
        yield (
            COMPILED,
            compiled(lambda x: torch.gradient(x, spacing=spacing, dim=axis, edge_order=order)[0], operands["result"], x),
        )


def trapezoid(descriptor: TrapezoidDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    y, x, axis, result = operands["y"], operands.get("x"), descriptor.axis, operands["result"]
    if x is None:
        yield ALLOCATING, lambda: torch.trapezoid(y, dx=descriptor.dx, dim=axis)
        yield COMPILED, compiled(lambda y: torch.trapezoid(y, dx=descriptor.dx, dim=axis), result, y)
    else:
        yield ALLOCATING, lambda: torch.trapezoid(y, x, dim=axis)
        yield COMPILED, compiled(lambda y, x: torch.trapezoid(y, x, dim=axis), result, y, x)
