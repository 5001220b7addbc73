"""Launches over views of an op's operands: where in its operand each begins, and how far apart its elements are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.kernel import CompilesForViews
from baracuda_kernels.core.layout import Layout, Shape

__all__ = ["OperandView", "OverViews", "Strides", "views_of_parts"]


class OperandView(NamedTuple):
    """So many bytes from where an operand of the op, or a buffer, begins."""

    operand: int
    offset: int


class Strides(NamedTuple):
    """What an elementwise kernel looks at of a layout."""

    stride: Shape


def views_of_parts(layouts: Sequence[Layout | None]) -> tuple[list[Shape], list[OperandView]]:
    """The strides of all operands that are there, and the views that have them: of complex numbers two, the real and the imaginary parts."""
    strides, views = [], []
    for operand, layout in enumerate(layouts):
        if layout is not None:
            part = layout.element.part.size
            for offset in range(0, layout.element.size, part):
                strides.append(tuple(step * layout.element.size // part for step in layout.stride))
                views.append(OperandView(operand, offset))
    return strides, views


class OverViews:
    """A launch that is given views of the op's operands and buffers of its own, and what the buffers leave of the workspace.

    `buffers` are the offsets of buffers in the workspace, and where the last one ends.
    """

    def __init__(self, launch: Any, views: Sequence[OperandView], buffers: Sequence[int] = (0,)) -> None:
        self.launch, (*self.buffers, self.past) = launch, buffers
        self.views = tuple(views)
        self.calls = getattr(launch, "calls", ())

    def __call__(self, addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
        bases = addresses
        if self.buffers:  # the first of them last
            bases = (*addresses, *[workspace + offset for offset in reversed(self.buffers)])
        moved = tuple([bases[operand] + offset for operand, offset in self.views])
        self.launch(moved, workspace + self.past, stream)

    def get_ready(self) -> None:
        if isinstance(self.launch, CompilesForViews):
            self.launch.get_ready_for([view.offset for view in self.views])  # buffers are aligned to vectors, as arrays are
