"""Reductions on the CPU, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.layout import row_major
from baracuda_kernels.formula import llvm_launch
from baracuda_kernels.formula.llvm_reduction_launch import kernel
from baracuda_kernels.lang import parallel
from baracuda_kernels.ops.reduction.geometry import broadcast_stride, kept_stride, place_stride, target_stride
from baracuda_kernels.ops.reduction.program import COUNTED, choice_program, gradient_program, helpers_of, reduction_of, sum_of

__all__ = ["reduce", "reduce_backward", "reduce_choice_backward", "reduce_pair", "reduce_pair_backward", "reduce_to"]

Bind = Callable[[Sequence[Any]], parallel.Launch]


class _Addresses(NamedTuple):
    """What a launch looks at of its args."""

    addresses: tuple[int, ...]


class _Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: tuple[int, ...]


def reduce(problem: Any) -> Bind:
    """The kernel for a reduction: bind(layouts of input and results) -> launch."""
    bind = kernel(reduction_of(problem), problem.shape, problem.axes, problem.formula_numbers)
    return lambda layouts: bind([layouts[0].stride], [kept_stride(problem, layout.stride) for layout in layouts[1:]])


reduce_pair = reduce


def reduce_to(problem: Any) -> Bind:
    """The kernel for a sum to a smaller shape: bind(layouts of input, result) -> launch."""
    bind = kernel(sum_of(problem.element), problem.shape, problem.axes)
    return lambda layouts: bind([layouts[0].stride], [target_stride(problem, layouts[1].stride)])


def reduce_backward(problem: Any) -> Bind:
    """The kernel for a gradient: bind(layouts of the results' gradients, input, results, d_input) -> launch.

    First come the reductions that the formula needs, whose results are kept in the workspace; then every element by itself.
    """
    shape, axes = problem.shape, problem.axes
    reductions = helpers_of(problem)
    helpers = [kernel(reduction, shape, axes) for reduction in reductions]
    elementwise = llvm_launch.kernel(gradient_program(problem), shape, (problem.count, *problem.formula_numbers))
    kept_shape = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    size = 8 * math.prod(kept_shape)  # bytes of a helper's results
    given = len(problem.row.results(problem.element))  # the input's place, after the results' gradients

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        kept = row_major(kept_shape)
        first = [helper([layouts[given].stride], [kept]) for helper in helpers]
        strides = [
            layout.stride if at == given else broadcast_stride(problem, layout.stride) for at, layout in enumerate(layouts[:-1])
        ]
        strides += [broadcast_stride(problem, kept, is_kept=True) for _ in helpers]
        last = elementwise([_Strides(stride) for stride in (*strides, layouts[-1].stride)])

        def launch(args: Any, workspace: Any, stream: Any) -> None:
            *read, d_input_at = args.addresses
            places = [workspace + size * number for number in range(len(first))]
            for reduce_helper, place in zip(first, places, strict=True):
                reduce_helper(_Addresses((read[given], place)), workspace + size * len(first), stream)
            last(_Addresses((*read, *places, d_input_at)), 0, stream)

        return launch

    return bind


reduce_pair_backward = reduce_backward


def reduce_choice_backward(problem: Any) -> Bind:
    """The kernel for the gradient of a choice: bind(layouts of d_result, input, second, d_input) -> launch."""
    elementwise = llvm_launch.kernel(choice_program(problem.element), problem.shape, counted=(COUNTED,))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        d_result, _, second, d_input = (layout.stride for layout in layouts)
        strides = (broadcast_stride(problem, d_result), broadcast_stride(problem, second), place_stride(problem), d_input)
        fill = elementwise(list(map(_Strides, strides)))

        def launch(args: Any, workspace: Any, stream: Any) -> None:
            d_result_at, _, second_at, d_input_at = args.addresses
            fill(_Addresses((d_result_at, second_at, 0, d_input_at)), 0, stream)

        return launch

    return bind
