"""Order statistics on the CPU: how lines are shared out among threads. A single line, however long, is one thread's work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from enum import Enum
from typing import Any

from baracuda_kernels.ops.order_statistics.bodies import chosen_body, quantile_backward_body, quantile_body
from baracuda_kernels.ops.order_statistics.descriptor import QuantileDescriptor
from baracuda_kernels.ops.order_statistics.geometry import (
    BESIDE,
    MOST_THREADS,
    Lines,
    buffer_bytes,
    line_words,
    own_bytes,
    patterns,
    strip_of,
    unstacked,
    workspace_bytes,
)
from baracuda_kernels.ops.reduction import llvm as reduction
from baracuda_kernels.ops.reduction.geometry import kept_stride
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import build
from baracuda_kernels.targets.geometry import as_words, dim_words, kept_axes, merged

__all__ = ["order", "order_backward", "quantile", "quantile_backward"]

Bind = Callable[[Sequence[Any]], parallel.Launch]
Stride = Sequence[int]
WORTH = 8  # times the work of an element that is only read

order_backward = reduction.reduce_choice_backward


def order(problem: Any) -> Bind:
    """The kernel for an element chosen by its order: bind(layouts of input, values, indices) -> launch."""
    launch = _launches(problem, chosen_body, (0, 1, 2))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        input, *results = (layout.stride for layout in layouts)
        return launch(input, [kept_stride(problem, stride) for stride in results])

    return bind


def quantile(problem: QuantileDescriptor) -> Bind:
    """The kernel for quantiles: bind(layouts of input, result) -> launch."""
    launch = _launches(problem, quantile_body, (0, 1, 1))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        input, result = (layout.stride for layout in layouts)
        step, result = unstacked(problem, result)
        return launch(input, [result, result], q_step=step)

    return bind


def quantile_backward(problem: QuantileDescriptor) -> Bind:
    """The kernel for the gradient of quantiles: bind(layouts of d_result, input, d_input) -> launch."""
    launch = _launches(problem, quantile_backward_body, (1, 0, 2))

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        d_result, input, d_input = (layout.stride for layout in layouts)
        step, d_result = unstacked(problem, d_result)
        return launch(input, [d_result, kept_axes(d_input, problem.axes)], q_step=step, slopes=d_input)

    return bind


def _launches(problem: Any, body: Any, operands: tuple[int, int, int]) -> Callable[..., parallel.Launch]:
    """What makes a launch of strides; `operands` are the places among the args of those that the body takes."""
    function = build(body, len(operands) + 2, problem.element.value)
    q, interpolation = (problem.q, _number(problem.interpolation)) if isinstance(problem, QuantileDescriptor) else ((), 0)

    def launches(input: Stride, others: Sequence[Stride], q_step: int = 0, slopes: Stride | None = None) -> parallel.Launch:
        if not problem.lines:
            return parallel.idle
        along = merged(problem.shape, [input], problem.axes)
        lines = Lines.of(problem, [kept_axes(input, problem.axes), *others])
        width = strip_of(problem) if lines.beside.steps[0] == 1 != along[-1].steps[0] else 1
        strips = -(-lines.beside.extent // width)
        items = strips * math.prod(dim.extent for dim in lines.others)
        item_bytes = WORTH * width * problem.count * problem.element.size
        per_task = parallel.per_task(items, item_bytes)
        tasks = -(-items // per_task)
        blocks = [
            line_words(along),
            line_words(along if slopes is None else merged(problem.shape, [slopes], problem.axes)),
            patterns(q),
            dim_words(lines.others),
        ]
        starts = [BESIDE + 4 + sum(map(len, blocks[:number])) for number in range(len(blocks))]
        size = problem.element.size
        buffer, own = buffer_bytes(problem) // size, own_bytes(problem, width) // size
        threads = min(MOST_THREADS, workspace_bytes(problem) // own_bytes(problem, width))
        numbers = [tasks, per_task, items, threads, own, buffer, problem.count, width, strips, *starts[:3]]
        numbers += [
            len(blocks[2]),
            q_step,
            _number(problem.kind),
            interpolation,
            starts[3],
            lines.beside.extent,
            *lines.beside.steps,
        ]
        words = as_words([*numbers, *(word for block in blocks for word in block)])
        shares = tasks > 1 and items * item_bytes > parallel.SERIAL_BYTES

        def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
            slots = c_int64(0)
            pointers = (*(addresses[place] for place in operands), workspace, addressof(slots))
            if shares:
                parallel.launch(function, addressof(words), tasks, pointers)
            else:
                function(addressof(words), None, *pointers)

        return launch

    return launches


def _number(member: Enum) -> int:
    """The place of a member among those of its enum."""
    return list(type(member)).index(member)
