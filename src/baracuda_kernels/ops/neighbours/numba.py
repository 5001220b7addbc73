"""Ops on neighbours on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.formula import llvm_launch, llvm_reduction_launch
from baracuda_kernels.lang import parallel
from baracuda_kernels.ops.neighbours.runs import Run, stored, summed
from baracuda_kernels.ops.neighbours.views import OverViews, room_offsets, views_of

__all__ = ["in_runs"]


class _Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: Sequence[int]


def in_runs(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""
    made, rooms = [(run, _kernel(problem, run)) for run in problem.runs], room_offsets(problem)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        launches = []
        for run, kernel in made:
            strides, views = views_of(problem, run, layouts)
            launches.append(OverViews(kernel(strides), views, rooms))

        def launch(args: Any, workspace: Any, stream: Any) -> None:
            for each in launches:
                each(args, workspace, stream)

        return launch

    return bind


def _kernel(problem: Any, run: Run) -> Callable[[list[tuple[int, ...]]], parallel.Launch]:
    """The kernel for one run: bind(strides of what it reads and writes) -> launch."""
    (shape, axes), element = problem.work_of(run), problem.element_of(run.output)
    if not axes:
        elementwise = llvm_launch.kernel(stored(run.program, element), shape, problem.numbers)
        return lambda strides: elementwise(list(map(_Strides, strides)))
    reduce = llvm_reduction_launch.kernel(summed(run.program, element), shape, axes, problem.numbers)
    return lambda strides: reduce(strides[:-1], [[step for axis, step in enumerate(strides[-1]) if axis not in axes]])
