"""Ops on neighbours on CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.formula import triton_launch, triton_reduction
from baracuda_kernels.gpu.call import At, Call
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.ops.neighbours.runs import Run, Scan, stored, summed
from baracuda_kernels.ops.neighbours.triton_running import running_calls
from baracuda_kernels.ops.neighbours.views import OverViews, View, room_offsets, views_of
from baracuda_kernels.ops.scan.triton import calls as scan_calls

__all__ = ["in_runs"]


def in_runs(problem: Any, device: Device) -> Bind:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""

    def bind(layouts: Sequence[Any]) -> Launch:
        in_one = running_calls(problem, layouts)
        made, views = in_one or _one_by_one(problem, layouts)
        return OverViews(launcher(device, *made), views, (0,) if in_one else room_offsets(problem))

    return bind


def _one_by_one(problem: Any, layouts: Sequence[Any]) -> tuple[list[Call], list[View]]:
    made: list[Call] = []
    views: list[View] = []
    for run in problem.runs:
        strides, more = views_of(problem, run, layouts)
        operands = [At(len(views) + place, problem.element_of(view.operand)) for place, view in enumerate(more)]
        made += [call.of(operands) for call in _calls(problem, run, strides)]
        views += more
    return made, views


def _calls(problem: Any, run: Run | Scan, strides: list[tuple[int, ...]]) -> list[Call]:
    if isinstance(run, Scan):
        return scan_calls(problem.scan_of(run), strides, run.reverse, (0, 1))
    (shape, axes), element = problem.work_of(run), problem.element_of(run.output)
    if not axes:
        return triton_launch.calls(stored(run.program, element), shape, strides, problem.numbers)
    kept = [step for axis, step in enumerate(strides[-1]) if axis not in axes]
    return triton_reduction.calls(summed(run, element), shape, axes, strides[:-1], [kept], problem.numbers)
