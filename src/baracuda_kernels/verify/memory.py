"""Operands in guarded memory: everything around and between their elements is known, so a stray write shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import decode, encode
from baracuda_kernels.core.layout import Shape, element_span, row_major
from baracuda_kernels.core.tensor import TensorMut, TensorRef

GUARD = 0xA5
NAN = 0xFF  # all ones is a NaN in every float format
GUARD_BYTES = 256


def _contiguous(shape: Shape) -> tuple[Shape, int]:
    return row_major(shape), 0


def _offset(shape: Shape) -> tuple[Shape, int]:
    return row_major(shape), 1  # no row starts where a vector would like it


def _transposed(shape: Shape) -> tuple[Shape, int]:
    return tuple(reversed(row_major(tuple(reversed(shape))))), 0


def _rotated(shape: Shape) -> tuple[Shape, int]:
    """The last axis lies outermost in memory."""
    order = row_major((*shape[-1:], *shape[:-1]))
    return (*order[1:], *order[:1]), 0


def _gaps(shape: Shape) -> tuple[Shape, int]:
    return row_major((*shape[:-1], shape[-1] + 3)) if shape else (), 2


def _every_second(shape: Shape) -> tuple[Shape, int]:
    return tuple(2 * step for step in row_major(shape)), 1


def _backwards(shape: Shape) -> tuple[Shape, int]:
    stride = tuple(-step for step in row_major(shape))
    return stride, -element_span(shape, stride)[0]


def _broadcast(shape: Shape) -> tuple[Shape, int]:
    """Every row the same memory; for inputs only."""
    return (0, *row_major(shape[1:])) if shape else (), 0


def _broadcast_last(shape: Shape) -> tuple[Shape, int]:
    return (*row_major(shape[:-1]), 0) if shape else (), 0


LAYOUTS: dict[str, Callable[[Shape], tuple[Shape, int]]] = {
    "contiguous": _contiguous,
    "offset": _offset,
    "transposed": _transposed,
    "rotated": _rotated,
    "gaps": _gaps,
    "every_second": _every_second,
    "backwards": _backwards,
    "broadcast": _broadcast,
    "broadcast_last": _broadcast_last,
}


class Placed:
    """One operand in memory of its own, laid out in one of `LAYOUTS`.

    On a CUDA device a copy of that memory is what a kernel sees, from the first `view` on; `fetch` brings it back.
    """

    def __init__(self, shape: Shape, element: ElementKind, layout: str, values: Any = None, device: Device | None = None) -> None:
        self.shape, self.element = shape, element
        self.device = Device.cpu() if device is None else device
        self.on_device: Any = None
        self.stride, offset = LAYOUTS[layout](shape)
        lowest, highest = element_span(shape, self.stride)
        self.first = GUARD_BYTES // element.size + offset
        size = (self.first + highest + 1) * element.size + GUARD_BYTES
        self.bytes = numpy.full(size - size % element.size, GUARD, numpy.uint8)
        assert self.first + lowest >= 0
        if values is None:
            self._elements(self.bytes)[...] = numpy.frombuffer(bytes([NAN] * element.size), f"V{element.size}")[0]
        else:
            self._elements(self.bytes)[...] = encode(values, element).view(f"V{element.size}").reshape(shape)
        self.before = self.bytes.copy()

    def _elements(self, data: Any) -> Any:
        size = self.element.size
        words = data.view(f"V{size}")[self.first :]
        return numpy.lib.stride_tricks.as_strided(words, self.shape, tuple(step * size for step in self.stride))

    @property
    def values(self) -> Any:
        """What the operand holds now, as float64."""
        return decode(self.raw, self.element).reshape(self.shape)

    @property
    def given(self) -> Any:
        """What it held before a kernel ran."""
        return decode(numpy.ascontiguousarray(self._elements(self.before)).reshape(-1).view(numpy.uint8), self.element).reshape(
            self.shape
        )

    @property
    def words(self) -> Any:
        """The bits of its elements, each a word, in its shape."""
        return numpy.ascontiguousarray(self._elements(self.bytes))

    @property
    def raw(self) -> Any:
        """The bits of its elements, flat, in row-major order."""
        return self.words.reshape(-1).view(numpy.uint8)

    def view(self, kind: type[TensorRef] = TensorMut) -> TensorRef:
        return kind.strided(self._memory(), self.shape, self.stride, self.first, element=self.element)

    def _memory(self) -> Any:
        if self.device.kind is DeviceKind.CPU:
            return self.bytes
        if self.on_device is None:
            import torch

            self.on_device = torch.from_numpy(self.bytes).to(str(self.device))
        return self.on_device

    def fetch(self) -> None:
        """Takes over what the device's copy holds now."""
        if self.on_device is not None:
            self.bytes[...] = self.on_device.cpu().numpy()

    def is_untouched(self) -> bool:
        return bool(numpy.array_equal(self.bytes, self.before))

    def is_untouched_outside(self) -> bool:
        """Nothing but the elements was written."""
        now, before = self.bytes.copy(), self.before.copy()
        for data in (now, before):
            self._elements(data)[...] = numpy.zeros((), f"V{self.element.size}")
        return bool(numpy.array_equal(now, before))
