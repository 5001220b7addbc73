"""What runs read and write, as views of operands and buffers: where each begins, and how far apart its elements are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.layout import Shape, row_major
from baracuda_kernels.ops.calculus.runs import Buffer, Run, Scan
from baracuda_kernels.targets.operand_views import OperandView, OverViews

__all__ = ["OperandView", "OverViews", "buffer_offsets", "views_of"]


LINE = 64  # bytes: every buffer begins at a cache line


def views_of(problem: Any, run: Run | Scan, layouts: Sequence[Any]) -> tuple[list[tuple[int, ...]], list[OperandView]]:
    """The strides of what a run reads and writes, and the views that have them."""
    if isinstance(run, Scan):
        operands = [(run.input, 0), (run.output, 0)]
    else:
        operands = [*((read.operand, run.first + read.offset) for read in run.reads), (run.output, run.first)]
    strides, views = [], []
    for operand, first in operands:
        own = layouts[operand].stride if operand >= 0 else row_major(buffer_shape(problem, problem.buffers[~operand]))
        stride = problem.stride_of(operand, own)
        strides.append(stride)
        views.append(OperandView(operand, first * stride[problem.axis] * problem.element_of(operand).size))
    return strides, views


def buffer_shape(problem: Any, buffer: Buffer) -> Shape:
    return tuple(problem.with_extent(buffer.extent)[axis] for axis in buffer.axes)


def buffer_offsets(problem: Any) -> list[int]:
    """The offsets of the buffers in the workspace, and where the last one ends."""
    sizes = (buffer.element.size * math.prod(buffer_shape(problem, buffer)) for buffer in problem.buffers)
    return list(itertools.accumulate((-(-size // LINE) * LINE for size in sizes), initial=0))
