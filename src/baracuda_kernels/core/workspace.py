"""Workspace: memory that the caller lends to one run."""

from __future__ import annotations

import functools
from typing import Any

from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorMut

ALIGNMENT = 16


class Workspace:
    """`Workspace.none()`, or `Workspace.borrowed(buffer)` over any one-dimensional byte array."""

    __slots__ = ("address", "size", "view")

    def __init__(self, view: TensorMut | None) -> None:
        if view is not None and not isinstance(view, TensorMut):
            wanted = "Workspace.borrowed(buffer), of a one-dimensional array of bytes"
            raise rejection("Workspace", [Reason(ReasonCode.WRONG_TYPE, "view", type(view).__name__, wanted)])
        self.view = view
        self.address = 0 if view is None else view.address
        self.size = 0 if view is None else view.layout.count

    @staticmethod
    @functools.cache
    def none() -> Workspace:
        """For plans whose `workspace_size` is 0."""
        return Workspace(None)

    @staticmethod
    def borrowed(buffer: Any) -> Workspace:
        """Lends a one-dimensional, contiguous array of bytes that begins at a multiple of 16 bytes."""
        view = TensorMut.of(buffer)
        if len(view.shape) != 1 or view.element.size != 1 or not view.layout.is_contiguous:
            got = f"{view.element}{list(view.shape)} with stride {list(view.stride)}"
            wanted = "a one-dimensional array of bytes without gaps"
            raise rejection("Workspace.borrowed", [Reason(ReasonCode.WRONG_TYPE, "buffer", got, wanted)])
        return Workspace(view)

    @staticmethod
    def over(address: int, layout: Layout, buffer: Any) -> Workspace:
        """Of a buffer that is known to be fine."""
        return Workspace(TensorMut.over(address, layout, buffer))

    def __repr__(self) -> str:
        return "Workspace.none()" if self.view is None else f"Workspace({self.size} bytes, {self.view.device})"
