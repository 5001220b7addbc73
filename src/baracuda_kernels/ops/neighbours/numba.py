"""Ops on neighbours on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.formula.llvm_launch import kernel
from baracuda_kernels.lang import parallel
from baracuda_kernels.ops.neighbours.views import OverViews, views_of

__all__ = ["in_runs"]

Bind = Callable[[Sequence[Any]], parallel.Launch]


class _Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: tuple[int, ...]


def in_runs(problem: Any) -> Bind:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""
    made = [(run, kernel(run.program, problem.with_extent(run.extent), problem.numbers)) for run in problem.runs]

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        launches = []
        for run, elementwise in made:
            strides, views = views_of(problem, run, layouts)
            launches.append(OverViews(elementwise(list(map(_Strides, strides))), views))

        def launch(args: Any, workspace: Any, stream: Any) -> None:
            for each in launches:
                each(args, workspace, stream)

        return launch

    return bind
