"""The layout of a view: everything about an operand but its address.

Layouts are interned, so one that was seen before is the same object: plans key what they have already checked by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind

Shape = tuple[int, ...]

_MOST_INTERNED = 1 << 14
_interned: dict[tuple[ElementKind, Shape, Shape, Device, int], Layout] = {}


class Layout:
    """Dtype, shape, stride in elements, device, and the bytes an address may be off its alignment."""

    __slots__ = ("device", "element", "high", "low", "mask", "misalignment", "self_overlap", "shape", "stride")

    element: ElementKind
    shape: Shape
    stride: Shape
    device: Device
    misalignment: int
    low: int  # the bytes addressed lie in [address + low, address + high)
    high: int
    mask: int  # bits of an aligned address that are zero
    self_overlap: bool | None  # None where it has to be worked out: ask `overlaps_itself`

    @staticmethod
    def of(element: ElementKind, shape: Sequence[int], stride: Sequence[int], device: Device, misalignment: int = 0) -> Layout:
        key = (element, tuple(shape), tuple(stride), device, misalignment)
        layout = _interned.get(key)
        if layout is None:
            if len(_interned) >= _MOST_INTERNED:
                _interned.clear()
            layout = Layout.__new__(Layout)
            layout.element, layout.shape, layout.stride, layout.device, layout.misalignment = key
            lowest, highest = element_span(layout.shape, layout.stride)
            layout.low, layout.high = lowest * element.size, (highest + 1) * element.size
            layout.mask = element.size - 1
            layout.self_overlap = False if layout.is_contiguous else None
            layout = _interned.setdefault(key, layout)  # whole only now: other threads see it from here on
        return layout

    def __reduce__(self) -> tuple[object, ...]:
        return Layout.of, (self.element, self.shape, self.stride, self.device, self.misalignment)

    def __repr__(self) -> str:
        return f"Layout({self.element}{list(self.shape)}, stride {list(self.stride)}, {self.device})"

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps. Strides of axes of extent 1, and of arrays without elements, mean nothing."""
        if 0 in self.shape:
            return True
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if extent > 1:
                if stride != expected:
                    return False
                expected *= extent
        return True

    def without_shared(self, axes: Sequence[int]) -> Layout:
        """The layout with those of `axes` that have stride 0 reduced to one position."""
        shape = tuple(
            1 if axis in axes and stride == 0 and extent else extent
            for axis, (extent, stride) in enumerate(zip(self.shape, self.stride, strict=True))
        )
        return Layout.of(self.element, shape, self.stride, self.device, self.misalignment)

    def broadcast_to(self, shape: Shape) -> Layout:
        """The layout broadcast to a larger shape, with stride 0 along new axes; unchanged if it does not broadcast."""
        if not broadcasts_to(self.shape, shape):
            return self
        missing = len(shape) - len(self.shape)
        steps = (
            stride if extent == wanted else 0
            for extent, stride, wanted in zip(self.shape, self.stride, shape[missing:], strict=True)
        )
        return Layout.of(self.element, shape, (*(0,) * missing, *steps), self.device, self.misalignment)

    @property
    def overlaps_itself(self) -> bool:
        """Whether two indices of the view name the same element."""
        if self.self_overlap is None:
            self.self_overlap = _has_self_overlap(self.shape, self.stride)
        return self.self_overlap


def broadcasts_to(shape: Shape, larger: Shape) -> bool:
    """Whether an array of that shape can be seen in the larger one."""
    missing = len(larger) - len(shape)
    return missing >= 0 and all(extent in (1, wanted) for extent, wanted in zip(shape, larger[missing:], strict=True))


def element_span(shape: Shape, stride: Shape) -> tuple[int, int]:
    """The lowest and highest element offset a view addresses; (0, -1) where it addresses none."""
    if 0 in shape:
        return 0, -1
    reach = [(extent - 1) * step for extent, step in zip(shape, stride, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


def row_major(shape: Sequence[int]) -> Shape:
    """The strides of a contiguous array."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


_MOST_ENUMERATED = 1 << 22


def _has_self_overlap(shape: Shape, stride: Shape) -> bool:
    if 0 in shape:
        return False
    axes = sorted((abs(step), extent) for extent, step in zip(shape, stride, strict=True) if extent > 1)
    if axes and axes[0][0] == 0:
        return True
    # An axis whose step clears everything below it cannot take part in an overlap; only those that interleave are enumerated.
    reach = 0
    entangled = 0
    for position, (step, extent) in enumerate(axes):
        if step <= reach:
            entangled = position + 1
        reach += step * (extent - 1)
    axes = axes[:entangled]
    if not axes:
        return False
    if math.prod(extent for _, extent in axes) > _MOST_ENUMERATED:
        return True  # an interleaving of millions that cannot be ruled out is refused
    import numpy

    offsets = numpy.zeros(1, dtype=numpy.int64)
    for step, extent in axes:
        offsets = (offsets[:, None] + numpy.arange(extent, dtype=numpy.int64) * step).ravel()
    return bool(numpy.unique(offsets).size < offsets.size)


def may_share_memory(address: int, layout: Layout, other_address: int, other: Layout) -> bool:
    """Whether two views share memory. Exact, except for interleavings too hard to decide, which count as shared."""
    if address + layout.low >= other_address + other.high or other_address + other.low >= address + layout.high:
        return False
    if layout.count == 0 or other.count == 0:
        return False
    import numpy

    views = [_StridedBytes(a, view) for a, view in ((address, layout), (other_address, other))]
    try:
        first, second = (numpy.asarray(view) for view in views)
        return bool(numpy.shares_memory(first, second, max_work=100_000))  # type: ignore[arg-type] # its stub knows only -1 and 0
    except numpy.exceptions.TooHardError:
        return True


class _StridedBytes:
    """Shows NumPy a view's geometry. Only the address is looked at, never the memory, so any device's will do."""

    def __init__(self, address: int, layout: Layout) -> None:
        size = layout.element.size
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{size}",
            "data": (address, False),
            "shape": layout.shape,
            "strides": tuple(step * size for step in layout.stride),
        }
