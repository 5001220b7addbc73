"""Ops on neighbours on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.calculus.runs import Run, Scan, stored, summed
from baracuda_kernels.ops.calculus.views import OverViews, buffer_offsets, views_of
from baracuda_kernels.ops.scan.llvm import scan
from baracuda_kernels.targets.cpu.llvm import elementwise_launch, reduction_launch
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.geometry import kept_axes

__all__ = ["in_runs"]


class _Layout(NamedTuple):
    """What kernels of elements and of scans look at of a layout."""

    stride: Sequence[int]
    element: ElementKind | None = None


def in_runs(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem of runs: bind(layouts of all operands) -> launch."""
    made, buffers = [(run, _kernel(problem, run)) for run in problem.runs], buffer_offsets(problem)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        launches = []
        for run, kernel in made:
            strides, views = views_of(problem, run, layouts)
            launches.append(OverViews(kernel(strides), views, buffers))

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            for each in launches:
                each(addresses, workspace, stream)

        return launch

    return bind


def _kernel(problem: Any, run: Run | Scan) -> Callable[[list[tuple[int, ...]]], parallel.Launch]:
    """The kernel for one run: bind(strides of what it reads and writes) -> launch."""
    element = problem.element_of(run.output)
    if isinstance(run, Scan):
        scanned = scan(problem.scan_of(run))
        return lambda strides: scanned([_Layout(stride, element) for stride in strides])
    shape, axes = problem.work_of(run)
    if not axes:
        elementwise = elementwise_launch.kernel(stored(run.program, element), shape, problem.numbers)
        return lambda strides: elementwise(list(map(_Layout, strides)))
    reduce = reduction_launch.kernel(summed(run, element), shape, axes, problem.numbers)
    return lambda strides: reduce(strides[:-1], [kept_axes(strides[-1], axes)])
