"""How the axes of a result belong to those of the input."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.reduction import Reduction
from baracuda_kernels.ops.reduction.program import helpers_of, reduction_of, sum_of
from baracuda_kernels.targets.geometry import kept_axes

__all__ = [
    "backward_bytes", "below_stride", "broadcast_stride", "diagonal_stride", "kept_stride", "no_bytes", "place_stride", "reduce_bytes",
    "reduce_to_bytes", "target_stride",
]  # fmt: skip


def kept_stride(problem: Any, stride: Sequence[int]) -> list[int]:
    """The strides of a result along the axes that are kept."""
    if not problem.keepdim:
        return list(stride)
    return kept_axes(stride, problem.axes)


def broadcast_stride(problem: Any, stride: Sequence[int], is_kept: bool = False) -> tuple[int, ...]:
    """A result's strides along the axes of the input: 0 where it is the same for all elements."""
    steps = iter(stride if is_kept else kept_stride(problem, stride))
    return tuple(0 if axis in problem.axes else next(steps) for axis in range(len(problem.shape)))


def diagonal_stride(stride: Sequence[int]) -> tuple[int, ...]:
    """The strides of the diagonals of matrices along the last two axes."""
    return (*stride[:-2], stride[-2] + stride[-1])


def below_stride(problem: Any) -> tuple[int, ...]:
    """The strides along which the distance from the diagonal grows."""
    return (*[0] * (len(problem.shape) - 2), 1, -1)


def place_stride(problem: Any) -> tuple[int, ...]:
    """The strides along which an element's number among those that become one grows."""
    steps, step = [0] * len(problem.shape), 1
    for axis in reversed(problem.axes):
        steps[axis], step = step, step * problem.shape[axis]
    return tuple(steps)


def target_stride(problem: Any, stride: Sequence[int]) -> list[int]:
    """The strides of a sum to a smaller shape along the axes that are kept."""
    missing = len(problem.shape) - len(problem.target_shape)
    return [stride[axis - missing] for axis in range(len(problem.shape)) if axis not in problem.axes]


# --- workspaces, by what a backend's reductions need -------------------------------------------------------------------------------

Bytes = Callable[[Reduction, Shape, Collection[int]], int]


def reduce_bytes(bytes_of: Bytes) -> Callable[[Any], int]:
    return lambda problem: bytes_of(reduction_of(problem), problem.shape, problem.axes)


def no_bytes(bytes_of: Bytes) -> Callable[[Any], int]:
    return lambda problem: 0


def reduce_to_bytes(bytes_of: Bytes) -> Callable[[Any], int]:
    return lambda problem: bytes_of(sum_of(problem.element), problem.shape, problem.axes)


def backward_bytes(bytes_of: Bytes) -> Callable[[Any], int]:
    """The workspace of a gradient: the results of its helpers, and their own workspace."""

    def needed(problem: Any) -> int:
        helpers = helpers_of(problem)
        results = math.prod(kept_axes(problem.shape, problem.axes))
        most = max((bytes_of(helper, problem.shape, problem.axes) for helper in helpers), default=0)
        return 8 * results * len(helpers) + most

    return needed
