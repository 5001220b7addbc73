"""Runs as launches over views of the operands: where in its operand each begins, and how far apart its elements are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from baracuda_kernels.core.kernel import CompilesWhenBound
from baracuda_kernels.core.layout import Shape, row_major
from baracuda_kernels.ops.neighbours.runs import Room, Run

__all__ = ["OverViews", "View", "room_offsets", "views_of"]


LINE = 64  # bytes: every room begins with a cache line


class View(NamedTuple):
    """So many bytes from where an operand of the op, or a room, begins."""

    operand: int
    offset: int


def views_of(problem: Any, run: Run, layouts: Sequence[Any]) -> tuple[list[tuple[int, ...]], list[View]]:
    """The strides of what a run reads and writes, and the views that have them."""
    operands = [*((read.operand, run.first + read.offset) for read in run.reads), (run.output, run.first)]
    strides, views = [], []
    for operand, first in operands:
        own = layouts[operand].stride if operand >= 0 else row_major(room_shape(problem, problem.rooms[~operand]))
        stride = problem.stride_of(operand, own)
        strides.append(stride)
        views.append(View(operand, first * stride[problem.axis] * problem.element_of(operand).size))
    return strides, views


def room_shape(problem: Any, room: Room) -> Shape:
    return tuple(problem.with_extent(room.extent)[axis] for axis in room.axes)


def room_offsets(problem: Any) -> list[int]:
    """Where the rooms begin in the workspace, and where the last one ends."""
    sizes = (room.element.size * math.prod(room_shape(problem, room)) for room in problem.rooms)
    return list(itertools.accumulate((-(-size // LINE) * LINE for size in sizes), initial=0))


class OverViews:
    """A launch that is given views of the op's operands and rooms for its own, and what the rooms leave of the workspace."""

    def __init__(self, launch: Any, views: Sequence[View], rooms: Sequence[int]) -> None:
        self.launch, (*self.rooms, self.past) = launch, rooms
        self.views = tuple(views)
        self.calls = getattr(launch, "calls", ())

    def __call__(self, args: Any, workspace: Any, stream: Any) -> None:
        bases = args.addresses
        if self.rooms:  # the first of them last
            bases = (*bases, *[workspace + offset for offset in reversed(self.rooms)])
        moved = tuple([bases[operand] + offset for operand, offset in self.views])
        self.launch(SimpleNamespace(addresses=moved), workspace + self.past, stream)

    def get_ready(self) -> None:
        if isinstance(self.launch, CompilesWhenBound):
            self.launch.get_ready()
