"""Runs as launches over views of the operands: where in its operand each begins, and how far apart its elements are."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from baracuda_kernels.core.kernel import CompilesWhenBound
from baracuda_kernels.ops.neighbours.runs import Run

__all__ = ["OverViews", "View", "views_of"]


class View(NamedTuple):
    """So many bytes from where an operand of the op begins."""

    operand: int
    offset: int


def views_of(problem: Any, run: Run, layouts: Sequence[Any]) -> tuple[list[tuple[int, ...]], list[View]]:
    """The strides of what a run reads and writes, and the views that have them."""
    operands = [*((read.operand, run.first + read.offset) for read in run.reads), (run.output, run.first)]
    strides, views = [], []
    for operand, first in operands:
        stride = problem.stride_of(operand, layouts[operand].stride)
        strides.append(stride)
        views.append(View(operand, first * stride[problem.axis] * layouts[operand].element.size))
    return strides, views


class OverViews:
    """A launch that is given views of the op's operands for its own."""

    def __init__(self, launch: Any, views: Sequence[View]) -> None:
        self.launch, self.views = launch, tuple(views)
        self.calls = getattr(launch, "calls", ())

    def __call__(self, args: Any, workspace: Any, stream: Any) -> None:
        addresses = args.addresses
        moved = tuple([addresses[operand] + offset for operand, offset in self.views])
        self.launch(SimpleNamespace(addresses=moved), workspace, stream)

    def get_ready(self) -> None:
        if isinstance(self.launch, CompilesWhenBound):
            self.launch.get_ready()
