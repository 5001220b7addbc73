"""Ops on neighbours as functions, with PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.neighbours.diff import DiffBackwardDescriptor, DiffBackwardPlan, DiffDescriptor, DiffPlan

__all__ = ["diff", "diff_backward"]


def _extent(axis: int, rank: int, given: View | None) -> int | None:
    return None if given is None else given.of_rank(rank)[axis]


def _differences(kind: Any, input: View, n: int, dim: int, prepend: View | None, append: View | None) -> Any:
    axis, rank = input.axis(dim, "dim"), len(input.shape)
    return kind(input.shape, axis, input.element, n, _extent(axis, rank, prepend), _extent(axis, rank, append))


@function(DiffPlan, gradient="diff_backward")
def diff(input: View, n: int = 1, dim: int = -1, prepend: View | None = None, append: View | None = None) -> DiffDescriptor:
    """The differences of neighbours along an axis, n times; with prepend before the input and append behind it."""
    return _differences(DiffDescriptor, input, n, dim, prepend, append)  # type: ignore[no-any-return]


@function(DiffBackwardPlan)
def diff_backward(
    d_result: View, input: View, n: int = 1, dim: int = -1, prepend: View | None = None, append: View | None = None
) -> DiffBackwardDescriptor:
    """The gradients of input, prepend and append, from that of their differences."""
    return _differences(DiffBackwardDescriptor, input, n, dim, prepend, append)  # type: ignore[no-any-return]
