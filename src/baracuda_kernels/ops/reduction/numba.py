"""Reductions on the CPU, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.layout import row_major
from baracuda_kernels.formula import llvm_launch
from baracuda_kernels.formula.llvm_reduction_launch import kernel
from baracuda_kernels.lang import parallel
from baracuda_kernels.ops.reduction.geometry import broadcast_stride, kept_stride, target_stride
from baracuda_kernels.ops.reduction.program import gradient_program, helpers_of, reduction_of, sum_of

__all__ = ["reduce", "reduce_backward", "reduce_to"]

Bind = Callable[[Sequence[Any]], parallel.Launch]


class _Addresses(NamedTuple):
    """What a launch looks at of its args."""

    addresses: tuple[int, ...]


class _Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: tuple[int, ...]


def reduce(problem: Any) -> Bind:
    """The kernel for a reduction: bind(layouts of input, result) -> launch."""
    bind = kernel(reduction_of(problem), problem.shape, problem.axes, problem.formula_numbers)
    return lambda layouts: bind([layouts[0].stride], [kept_stride(problem, layout.stride) for layout in layouts[1:]])


def reduce_to(problem: Any) -> Bind:
    """The kernel for a sum to a smaller shape: bind(layouts of input, result) -> launch."""
    bind = kernel(sum_of(problem.element), problem.shape, problem.axes)
    return lambda layouts: bind([layouts[0].stride], [target_stride(problem, layouts[1].stride)])


def reduce_backward(problem: Any) -> Bind:
    """The kernel for a gradient: bind(layouts of d_result, input, result, d_input) -> launch.

    First come the reductions that the formula needs, whose results are kept in the workspace; then every element by itself.
    """
    shape, axes = problem.shape, problem.axes
    reductions = helpers_of(problem)
    helpers = [kernel(reduction, shape, axes) for reduction in reductions]
    elementwise = llvm_launch.kernel(gradient_program(problem), shape, (problem.count, *problem.formula_numbers))
    kept_shape = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    size = 8 * math.prod(kept_shape)  # bytes of a helper's results

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        d_result, given, result, d_input = (layout.stride for layout in layouts)
        kept = row_major(kept_shape)
        first = [helper([given], [kept]) for helper in helpers]
        strides = [broadcast_stride(problem, d_result), given, broadcast_stride(problem, result)]
        strides += [broadcast_stride(problem, kept, is_kept=True) for _ in helpers]
        last = elementwise([_Strides(stride) for stride in (*strides, d_input)])

        def launch(args: Any, workspace: Any, stream: Any) -> None:
            d_result_at, input_at, result_at, d_input_at = args.addresses
            places = [workspace + size * number for number in range(len(first))]
            for reduce_helper, place in zip(first, places, strict=True):
                reduce_helper(_Addresses((input_at, place)), workspace + size * len(first), stream)
            last(_Addresses((d_result_at, input_at, result_at, *places, d_input_at)), 0, stream)

        return launch

    return bind
