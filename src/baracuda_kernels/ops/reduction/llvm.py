"""Reductions on the CPU, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.layout import row_major
from baracuda_kernels.ops.reduction.geometry import (
    below_stride,
    broadcast_stride,
    diagonal_stride,
    kept_stride,
    place_stride,
    target_stride,
)
from baracuda_kernels.ops.reduction.program import (
    BELOW,
    COUNTED,
    choice_program,
    diagonal_program,
    gradient_program,
    helpers_of,
    reduction_of,
    sum_of,
    trace_of,
)
from baracuda_kernels.targets.cpu.llvm import elementwise_launch
from baracuda_kernels.targets.cpu.llvm.reduction_launch import kernel
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.geometry import kept_axes

__all__ = [
    "reduce", "reduce_backward", "reduce_choice_backward", "reduce_joint", "reduce_joint_backward", "reduce_pair", "reduce_pair_backward",
    "reduce_to", "trace", "trace_backward",
]  # fmt: skip

Bind = Callable[[Sequence[Any]], parallel.Launch]


class _Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: tuple[int, ...]


def reduce(problem: Any) -> Bind:
    """The kernel for a reduction: bind(layouts of inputs and results) -> launch."""
    reduction = reduction_of(problem)
    bind = kernel(reduction, problem.shape, problem.axes, problem.formula_numbers)

    def split(layouts: Sequence[Any]) -> parallel.Launch:
        strides = [layout.stride for layout in layouts]
        return bind(strides[: reduction.operands], [kept_stride(problem, stride) for stride in strides[reduction.operands :]])

    return split


reduce_pair = reduce_joint = reduce


def reduce_to(problem: Any) -> Bind:
    """The kernel for a sum to a smaller shape: bind(layouts of input, result) -> launch."""
    bind = kernel(sum_of(problem.element), problem.shape, problem.axes)
    return lambda layouts: bind([layouts[0].stride], [target_stride(problem, layouts[1].stride)])


def reduce_backward(problem: Any) -> Bind:
    """The kernel for a gradient: bind(layouts of the results' gradients, inputs, results, inputs' gradients) -> launch.

    First come the reductions that the formula needs, whose results are kept in the workspace; then every element by itself.
    """
    shape, axes = problem.shape, problem.axes
    reductions = helpers_of(problem)
    helpers = [kernel(reduction, shape, axes) for reduction in reductions]
    elementwise = elementwise_launch.kernel(gradient_program(problem), shape, (problem.count, *problem.formula_numbers))
    kept_shape = tuple(kept_axes(shape, axes))
    size = 8 * math.prod(kept_shape)  # bytes of a helper's results
    upstream, outputs = len(problem.result_elements), problem.row.operands
    inputs = range(upstream, upstream + outputs)  # after the results' gradients
    given = slice(inputs.start, inputs.stop)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        kept, every = row_major(kept_shape), [layout.stride for layout in layouts]
        first = [helper(every[given], [kept]) for helper in helpers]
        strides = [stride if at in inputs else broadcast_stride(problem, stride) for at, stride in enumerate(every[:-outputs])]
        strides += [broadcast_stride(problem, kept, is_kept=True) for _ in helpers]
        last = elementwise([_Strides(stride) for stride in (*strides, *every[-outputs:])])

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            read, written = addresses[:-outputs], addresses[-outputs:]
            places = [workspace + size * number for number in range(len(first))]
            for reduce_helper, place in zip(first, places, strict=True):
                reduce_helper((*read[given], place), workspace + size * len(first), stream)
            last((*read, *places, *written), 0, stream)

        return launch

    return bind


reduce_pair_backward = reduce_joint_backward = reduce_backward


def reduce_choice_backward(problem: Any) -> Bind:
    """The kernel for the gradient of a choice: bind(layouts of d_result, input, second, d_input) -> launch."""
    elementwise = elementwise_launch.kernel(choice_program(problem.element), problem.shape, counted=(COUNTED,))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        d_result, _, second, d_input = (layout.stride for layout in layouts)
        strides = (broadcast_stride(problem, d_result), broadcast_stride(problem, second), place_stride(problem), d_input)
        fill = elementwise(list(map(_Strides, strides)))

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            d_result_at, _, second_at, d_input_at = addresses
            fill((d_result_at, second_at, 0, d_input_at), 0, stream)

        return launch

    return bind


def trace(problem: Any) -> Bind:
    """The kernel for a trace: bind(layouts of input, result) -> launch."""
    bind = kernel(trace_of(problem), problem.diagonal_shape, (len(problem.shape) - 2,))
    return lambda layouts: bind([diagonal_stride(layouts[0].stride)], [layouts[1].stride])


def trace_backward(problem: Any) -> Bind:
    """The kernel for the gradient of a trace: bind(layouts of d_result, input, d_input) -> launch."""
    elementwise = elementwise_launch.kernel(diagonal_program(problem.element), problem.shape, counted=(BELOW,))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        d_result, _, d_input = (layout.stride for layout in layouts)
        fill = elementwise(list(map(_Strides, ((*d_result, 0, 0), below_stride(problem), d_input))))

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            d_result_at, _, d_input_at = addresses
            fill((d_result_at, 0, d_input_at), 0, stream)

        return launch

    return bind
