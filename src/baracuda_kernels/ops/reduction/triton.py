"""Reductions on CUDA, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
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
from baracuda_kernels.targets.cuda.formulas import elementwise, rows
from baracuda_kernels.targets.cuda.formulas.reduction import calls
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import Argument, At, Lent, Step, TritonLaunch
from baracuda_kernels.targets.geometry import kept_axes

__all__ = [
    "reduce", "reduce_backward", "reduce_choice_backward", "reduce_joint", "reduce_joint_backward", "reduce_pair", "reduce_pair_backward",
    "reduce_to", "trace", "trace_backward",
]  # fmt: skip


def _bind(device: Device, made: Callable[[Sequence[Sequence[int]]], list[TritonLaunch]]) -> Bind:
    def bind(layouts: Any) -> Launch:
        return launcher(device, *made([layout.stride for layout in layouts]))

    return bind


def reduce(problem: Any, device: Device) -> Bind:
    """The kernel for a reduction: bind(layouts of inputs and results) -> launch."""
    reduction, numbers = reduction_of(problem), problem.formula_numbers

    def made(strides: Sequence[Sequence[int]]) -> list[TritonLaunch]:
        results = [kept_stride(problem, stride) for stride in strides[reduction.operands :]]
        return calls(reduction, problem.shape, problem.axes, strides[: reduction.operands], results, numbers)

    return _bind(device, made)


reduce_pair = reduce_joint = reduce


def reduce_to(problem: Any, device: Device) -> Bind:
    """The kernel for a sum to a smaller shape: bind(layouts of input, result) -> launch."""
    reduction = sum_of(problem.element)
    return _bind(
        device,
        lambda strides: calls(reduction, problem.shape, problem.axes, strides[:1], [target_stride(problem, strides[1])]),
    )


def reduce_backward(problem: Any, device: Device) -> Bind:
    """The kernel for a gradient: bind(layouts of the results' gradients, inputs, results, inputs' gradients) -> launch."""
    return _bind(device, lambda strides: _backward_calls(problem, strides))


reduce_pair_backward = reduce_joint_backward = reduce_backward


def reduce_choice_backward(problem: Any, device: Device) -> Bind:
    """The kernel for the gradient of a choice: bind(layouts of d_result, input, second, d_input) -> launch."""
    element = problem.element
    operands: list[Argument] = [At(0, element), At(2, ElementKind.I64), Step(0), At(3, element)]

    def made(strides: Sequence[Sequence[int]]) -> list[TritonLaunch]:
        d_result, _, second, d_input = strides
        every = [broadcast_stride(problem, d_result), broadcast_stride(problem, second), place_stride(problem), d_input]
        found = elementwise.calls(choice_program(element), problem.shape, every, counted=(COUNTED,))
        return [call.of(operands) for call in found]

    return _bind(device, made)


def trace(problem: Any, device: Device) -> Bind:
    """The kernel for a trace: bind(layouts of input, result) -> launch."""
    reduction, along = trace_of(problem), (len(problem.shape) - 2,)
    return _bind(
        device,
        lambda strides: calls(reduction, problem.diagonal_shape, along, [diagonal_stride(strides[0])], [strides[1]]),
    )


def trace_backward(problem: Any, device: Device) -> Bind:
    """The kernel for the gradient of a trace: bind(layouts of d_result, input, d_input) -> launch."""
    operands: list[Argument] = [At(0, problem.element), Step(0), At(2, problem.element)]

    def made(strides: Sequence[Sequence[int]]) -> list[TritonLaunch]:
        d_result, _, d_input = strides
        every = [(*d_result, 0, 0), below_stride(problem), d_input]
        found = elementwise.calls(diagonal_program(problem.element), problem.shape, every, counted=(BELOW,))
        return [call.of(operands) for call in found]

    return _bind(device, made)


def _backward_calls(problem: Any, strides: Sequence[Sequence[int]]) -> list[TritonLaunch]:
    """First the reductions that the formula needs, whose results are kept in the workspace; then every element by itself. Or all at once
    where programs can hold what is reduced."""
    if 0 in problem.shape:
        return []
    upstream, outputs, element = len(problem.result_elements), problem.row.operands, problem.element
    inputs = range(upstream, upstream + outputs)  # after the results' gradients
    read, numbers, program = strides[:-outputs], (problem.count, *problem.formula_numbers), gradient_program(problem)
    every = [stride if at in inputs else broadcast_stride(problem, stride) for at, stride in enumerate(read)]
    if helpers := helpers_of(problem):
        at_once = rows.call(helpers, program, problem.shape, problem.axes, [*every, *strides[-outputs:]], inputs, numbers)
        if at_once is not None:
            return [at_once]
    kept_shape = tuple(kept_axes(problem.shape, problem.axes))
    kept, size = row_major(kept_shape), 8 * math.prod(kept_shape)
    places = [Lent(size * number, ElementKind.F64) for number in range(len(helpers))]
    given, sources = [strides[at] for at in inputs], [At(at, element) for at in inputs]
    first = [
        call
        for helper, place in zip(helpers, places, strict=True)
        for call in calls(helper, problem.shape, problem.axes, given, [kept], (), (*sources, place), size * len(helpers))
    ]
    every += [broadcast_stride(problem, kept, is_kept=True)] * len(helpers)
    operands: list[Argument] = [At(place, program.inputs[place]) for place in range(len(read))]
    operands += [*places, *(At(len(read) + output, element) for output in range(outputs))]
    last = elementwise.calls(program, problem.shape, [*every, *strides[-outputs:]], numbers)
    return [*first, *(call.of(operands) for call in last)]
