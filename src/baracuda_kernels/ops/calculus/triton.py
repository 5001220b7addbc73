"""Ops on neighbours on CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.ops.calculus.runs import Run, Scan, stored, summed
from baracuda_kernels.ops.calculus.triton_running import running_calls
from baracuda_kernels.ops.calculus.views import OperandView, OverViews, buffer_offsets, views_of
from baracuda_kernels.ops.scan.triton import calls as scan_calls
from baracuda_kernels.targets.cuda.formulas import elementwise, reduction
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, TritonLaunch
from baracuda_kernels.targets.geometry import kept_axes

__all__ = ["in_runs"]


def in_runs(problem: Any, device: Device) -> Bind:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""

    def bind(layouts: Sequence[Any]) -> Launch:
        in_one = running_calls(problem, layouts)
        made, views = in_one or _one_by_one(problem, layouts)
        return OverViews(launcher(device, *made), views, (0,) if in_one else buffer_offsets(problem))

    return bind


def _one_by_one(problem: Any, layouts: Sequence[Any]) -> tuple[list[TritonLaunch], list[OperandView]]:
    made: list[TritonLaunch] = []
    views: list[OperandView] = []
    for run in problem.runs:
        strides, more = views_of(problem, run, layouts)
        operands = [At(len(views) + place, problem.element_of(view.operand)) for place, view in enumerate(more)]
        made += [call.of(operands) for call in _calls(problem, run, strides)]
        views += more
    return made, views


def _calls(problem: Any, run: Run | Scan, strides: list[tuple[int, ...]]) -> list[TritonLaunch]:
    if isinstance(run, Scan):
        return scan_calls(problem.scan_of(run), strides, run.reverse, (0, 1))
    (shape, axes), element = problem.work_of(run), problem.element_of(run.output)
    if not axes:
        return elementwise.calls(stored(run.program, element), shape, strides, problem.numbers)
    kept = kept_axes(strides[-1], axes)
    return reduction.calls(summed(run, element), shape, axes, strides[:-1], [kept], problem.numbers)
