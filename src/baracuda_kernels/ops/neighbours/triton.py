"""Ops on neighbours on CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.formula.triton_launch import calls
from baracuda_kernels.gpu.call import At, Call
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.ops.neighbours.views import OverViews, View, views_of

__all__ = ["in_runs"]


def in_runs(problem: Any, device: Device) -> Bind:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""

    def bind(layouts: Sequence[Any]) -> Launch:
        made: list[Call] = []
        views: list[View] = []
        for run in problem.runs:
            strides, more = views_of(problem, run, layouts)
            found = calls(run.program, problem.with_extent(run.extent), strides, problem.numbers)
            operands = [
                At(len(views) + place, element) for place, element in enumerate((*run.program.inputs, *run.program.outputs))
            ]
            made += [call.of(operands) for call in found]
            views += more
        return OverViews(launcher(device, *made), views)

    return bind
