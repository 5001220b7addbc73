"""Reductions on CUDA, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.formula import triton_launch
from baracuda_kernels.formula.triton_reduction import calls
from baracuda_kernels.gpu.call import Argument, At, Call, Lent
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.ops.reduction.geometry import broadcast_stride, kept_stride, target_stride
from baracuda_kernels.ops.reduction.program import gradient_program, helpers_of, reduction_of, sum_of

__all__ = ["reduce", "reduce_backward", "reduce_to"]


def _bind(device: Device, made: Callable[[Sequence[Sequence[int]]], list[Call]]) -> Bind:
    def bind(layouts: Any) -> Launch:
        return launcher(device, *made([layout.stride for layout in layouts]))

    return bind


def reduce(problem: Any, device: Device) -> Bind:
    """The kernel for a reduction: bind(layouts of input, result) -> launch."""
    reduction, numbers = reduction_of(problem), problem.formula_numbers

    def made(strides: Sequence[Sequence[int]]) -> list[Call]:
        results = [kept_stride(problem, stride) for stride in strides[1:]]
        return calls(reduction, problem.shape, problem.axes, strides[:1], results, numbers)

    return _bind(device, made)


def reduce_to(problem: Any, device: Device) -> Bind:
    """The kernel for a sum to a smaller shape: bind(layouts of input, result) -> launch."""
    reduction = sum_of(problem.element)
    return _bind(
        device,
        lambda strides: calls(reduction, problem.shape, problem.axes, strides[:1], [target_stride(problem, strides[1])]),
    )


def reduce_backward(problem: Any, device: Device) -> Bind:
    """The kernel for a gradient: bind(layouts of d_result, input, result, d_input) -> launch."""
    return _bind(device, lambda strides: _backward_calls(problem, strides))


def _backward_calls(problem: Any, strides: Sequence[Sequence[int]]) -> list[Call]:
    """First the reductions that the formula needs, whose results are kept in the workspace; then every element by itself."""
    d_result, given, result, d_input = strides
    kept_shape = tuple(extent for axis, extent in enumerate(problem.shape) if axis not in problem.axes)
    kept, size = row_major(kept_shape), 8 * math.prod(kept_shape)
    helpers = helpers_of(problem)
    places = [Lent(size * number, ElementKind.F64) for number in range(len(helpers))]
    first = [
        call
        for helper, place in zip(helpers, places, strict=True)
        for call in calls(
            helper, problem.shape, problem.axes, [given], [kept], (), (At(1, problem.element), place), size * len(helpers)
        )
    ]
    every = [broadcast_stride(problem, d_result), given, broadcast_stride(problem, result)]
    every += [broadcast_stride(problem, kept, is_kept=True)] * len(helpers)
    numbers = (problem.count, *problem.formula_numbers)
    operands: list[Argument] = [*(At(place, problem.element) for place in range(3)), *places, At(3, problem.element)]
    last = triton_launch.calls(gradient_program(problem), problem.shape, [*every, d_input], numbers)
    return [*first, *(_with_operands(call, operands) for call in last)]


def _with_operands(call: Call, operands: Sequence[Argument]) -> Call:
    """The call with other operands than those in their order."""

    def changed(argument: Argument) -> Argument:
        if isinstance(argument, tuple):
            return tuple(map(changed, argument))
        return operands[argument.operand] if isinstance(argument, At) else argument

    otherwise = None if call.otherwise is None else _with_operands(call.otherwise, operands)
    return replace(call, arguments=tuple(map(changed, call.arguments)), otherwise=otherwise)
