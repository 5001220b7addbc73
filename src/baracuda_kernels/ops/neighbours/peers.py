"""What ops on neighbours are timed beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, GIVEN, Call, compiled
from baracuda_kernels.ops.neighbours.diff import DiffDescriptor

__all__ = ["diff"]


def diff(descriptor: DiffDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    import torch

    x, n, axis, result = operands["input"], descriptor.n, descriptor.axis, operands["result"]
    more = operands.get("prepend"), operands.get("append")
    yield ALLOCATING, lambda: torch.diff(x, n, axis, *more)
    yield GIVEN, lambda: torch.diff(x, n, axis, *more, out=result)
    if more == (None, None):
        yield COMPILED, compiled(lambda x: torch.diff(x, n, axis), result, x)
