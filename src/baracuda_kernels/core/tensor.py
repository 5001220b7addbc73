"""Borrowed views of memory that somebody else owns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Self

from baracuda_kernels.core.arrays import see
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.layout import Layout, Shape, element_span
from baracuda_kernels.core.reason import Reason, ReasonCode


class TensorRef:
    """A view to read: `data` (what owns the memory), `address`, `shape`, `stride` in elements, `element`, `device`.

    It is a snapshot: wrap again after the array was resized or its storage moved.
    """

    __slots__ = ("address", "data", "layout")

    address: int
    layout: Layout
    data: Any

    @classmethod
    def of(cls, array: Any, *, shared_axes: Sequence[int] = ()) -> Self:
        """Wraps an array of any DLPack framework without a copy. For `shared_axes` see `TensorMut`."""
        reasons, view = cls.examine(array, "array", shared_axes)
        if view is None or reasons:
            raise rejection(cls.__name__, reasons)
        return view

    @classmethod
    def strided(
        cls,
        buffer: Any,
        shape: Sequence[int],
        stride: Sequence[int],
        offset: int = 0,
        *,
        element: ElementKind | None = None,
        shared_axes: Sequence[int] = (),
    ) -> Self:
        """Lays a view over a flat buffer; shape, stride and offset count elements. The view must lie within the buffer.

        With `element`, a buffer of bytes is taken to hold such elements: a way to bf16 without a framework that knows it.
        """
        subject = f"{cls.__name__}.strided"
        reasons, flat = cls.examine(buffer, "buffer")
        if flat is None or reasons:
            raise rejection(subject, reasons)
        shape, stride, (offset,) = (
            _whole_numbers("shape", shape),
            _whole_numbers("stride", stride),
            _whole_numbers("offset", [offset]),
        )
        whole = flat.layout if element is None else _as_elements(flat, element, reasons)
        reasons += reasons or _reasons_against_view(whole, shape, stride, offset)
        view = cls.__new__(cls)
        view.data = flat.data
        if not reasons:
            view.address = flat.address + offset * whole.element.size
            view.layout = Layout.of(whole.element, shape, stride, whole.device, view.address % whole.element.size)
            reasons += cls._reasons_against(view.layout, True, "view", shared_axes)
        if reasons:
            raise rejection(subject, reasons)
        return view

    @classmethod
    def over(cls, address: int, layout: Layout, data: Any) -> Self:
        """A view of memory that is already checked."""
        view = cls.__new__(cls)
        view.address, view.layout, view.data = address, layout, data
        return view

    @classmethod
    def examine(cls, array: Any, where: str, shared_axes: Sequence[int] = ()) -> tuple[list[Reason], Self | None]:
        """The view, or every reason why there is none."""
        if isinstance(array, TensorRef):
            if isinstance(array, cls):
                return [], array
            return [Reason(ReasonCode.READ_ONLY, where, "a TensorRef", "memory that may be written: a TensorMut or an array")], None
        view = cls.__new__(cls)
        try:
            view.address, view.layout, writable, view.data = see(array)
        except Exception as cause:  # whatever a framework raises when asked for its memory
            return [
                Reason(ReasonCode.NOT_AN_ARRAY, where, f"{type(array).__name__} ({cause})", "an array of a DLPack framework")
            ], None
        reasons = cls._reasons_against(view.layout, writable, where, shared_axes)
        return reasons, None if reasons else view

    @classmethod
    def _reasons_against(cls, layout: Layout, writable: bool, where: str, shared_axes: Sequence[int]) -> list[Reason]:
        return []

    @property
    def shape(self) -> Shape:
        """The extent of each axis."""
        return self.layout.shape

    @property
    def stride(self) -> Shape:
        """The stride of each axis, in elements."""
        return self.layout.stride

    @property
    def element(self) -> ElementKind:
        """What one number of it is."""
        return self.layout.element

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self.layout.device

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.element}{list(self.shape)}, stride {list(self.stride)}, {self.device})"


class TensorMut(TensorRef):
    """A view to write: refuses read-only memory and a view in which two indices name the same element.

    The exception is an axis in `shared_axes`: with stride 0 there, all its positions share one slot, for ops that sum into it.
    """

    __slots__ = ()

    @classmethod
    def _reasons_against(cls, layout: Layout, writable: bool, where: str, shared_axes: Sequence[int]) -> list[Reason]:
        reasons = []
        if not writable:
            reasons.append(Reason(ReasonCode.READ_ONLY, where, "read-only memory", "memory that may be written"))
        if layout.overlaps_itself and layout.without_shared(shared_axes).overlaps_itself:
            got = f"shape {layout.shape} with stride {layout.stride}"
            reasons.append(Reason(ReasonCode.SELF_OVERLAP, where, got, "strides that give every element its own place"))
        return reasons


def _whole_numbers(name: str, values: Sequence[int]) -> Shape:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise rejection("TensorRef.strided", [Reason(ReasonCode.WRONG_TYPE, name, repr(values), "whole numbers")]) from None


def _as_elements(flat: TensorRef, element: ElementKind, reasons: list[Reason]) -> Layout:
    layout = flat.layout
    if len(layout.shape) != 1 or layout.element.size != 1:
        reasons.append(Reason(ReasonCode.ELEMENT, "buffer", layout, "a one-dimensional array of bytes, when an element is given"))
        return layout
    return Layout.of(element, (layout.shape[0] // element.size,), (1,), layout.device)


def _reasons_against_view(flat: Layout, shape: Shape, stride: Shape, offset: int) -> list[Reason]:
    if len(flat.shape) != 1 or not flat.is_contiguous:
        got = f"shape {flat.shape} with stride {flat.stride}"
        return [Reason(ReasonCode.RANK, "buffer", got, "a one-dimensional buffer without gaps")]
    if len(shape) != len(stride):
        return [Reason(ReasonCode.RANK, "stride", f"{len(stride)} strides", f"{len(shape)}, one for each extent of the shape")]
    if any(extent < 0 for extent in shape):
        return [Reason(ReasonCode.NEGATIVE_EXTENT, "shape", shape, "extents of at least 0")]
    lowest, highest = element_span(shape, stride)
    reasons = []
    if offset + min(lowest, 0) < 0:
        reasons.append(Reason(ReasonCode.BEFORE_BUFFER, "view", f"element {offset + min(lowest, 0)}", "no element before 0"))
    if highest >= lowest and offset + highest >= flat.shape[0]:
        reasons.append(Reason(ReasonCode.BUFFER, "view", flat.shape[0], offset + highest + 1))
    return reasons
