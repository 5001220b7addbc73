"""What scans are tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.cases import Cases, Extreme, Part, places
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.ops.scan import reference
from baracuda_kernels.ops.scan.descriptor import EXTREMA, PRODUCTS, ScanBackwardDescriptor, ScanDescriptor, ScanKind

__all__ = ["ScanBackwardCases", "ScanCases"]

# Shape and axis: one, empty, past a vector, past a segment, split among threads, columns, rank 8.
CORNERS = (
    ((1,), 0), ((5, 0, 3), 1), ((3, 17), 1), ((64, 1), 0), ((31, 33), 1), ((2, 16400), 1), ((70001,), 0), ((6, 67, 65), 1),
    ((300, 7), 0), ((16390, 9), 0), ((2, 1, 3, 1, 2, 1, 5, 2), 4),
)  # fmt: skip
FEW_CORNERS = (((3, 1009), 1), ((67, 145), 0), ((2, 35, 5), 1))
# On CUDA: rows and columns, in whole vectors and not; walks of many tiles; segments by rows and by columns.
TILES = (
    ((6, 4096), 1), ((4096, 64), 0), ((31, 33), 1), ((6, 67, 65), 1), ((3, 20480), 1), ((16390, 9), 0), ((1, 65536), 1), ((33000, 8), 0),
)  # fmt: skip
BY_SIZE = (ElementKind.F64, ElementKind.BF16, ElementKind.U8)
SHOWCASE = (((4096, 4096), 1), ((4096, 4096), 0), ((16, 1 << 20), 1))
CUDA_SHOWCASE = (((16384, 8192), 1), ((16384, 8192), 0), ((16, 1 << 23), 1))


class ScanCases(Cases[ScanDescriptor]):
    extremes: ClassVar[tuple[Extreme, ...]] = (Extreme.NAN, Extreme.INFINITIES, Extreme.ZEROS, Extreme.SMALLEST)

    def kinds(self, element: ElementKind) -> list[ScanKind]:
        """Those that make sense for the element."""
        return [kind for kind in ScanKind if element in FLOATS or kind is not ScanKind.LOGCUMSUMEXP]

    def corners(self, element: ElementKind) -> Iterator[ScanDescriptor]:
        """One kind in every shape, all others in a few; each other one in reverse. Elements other than f32 in fewer."""
        first = ScanKind.CUMSUM if element.is_float else ScanKind.CUMMAX
        every = 1 if element is ElementKind.F32 else 3 if element.is_float else 5
        for number, (shape, axis) in enumerate(CORNERS[::every]):
            yield self.descriptor(first, shape, axis, element, reverse=number % 2 == 1)
        for order, kind in enumerate(self.kinds(element)):
            for number, (shape, axis) in enumerate(FEW_CORNERS[::every] if kind is not first else ()):
                # Every second kind without indices in its last shape.
                yield self.descriptor(kind, shape, axis, element, (order + number) % 2 == 1, number < 2)

    def tiles(self, element: ElementKind) -> Iterator[ScanDescriptor]:
        """Sums of f32 reach all of them. Others share their bodies, and are compiled for rows, of elements of each size also for columns."""
        is_f32 = element is ElementKind.F32
        for kind in self.kinds(element):
            few = (TILES[0], TILES[3]) if is_f32 else (TILES[2], *FEW_CORNERS[1:2]) if element in BY_SIZE else TILES[2:3]
            every = TILES if is_f32 and kind is ScanKind.CUMSUM else few
            for number, (shape, axis) in enumerate(every):
                yield self.descriptor(kind, shape, axis, element, reverse=number % 2 == 1)

    def draw(self, random: Random, element: ElementKind) -> ScanDescriptor:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(1, 4)))
        kind, axis = random.choice(self.kinds(element)), random.randrange(len(shape))
        return self.descriptor(kind, shape, axis, element, random.random() < 0.5)

    def showcase(self) -> Iterator[ScanDescriptor]:
        yield from self._shown(SHOWCASE)

    def cuda_showcase(self) -> Iterator[ScanDescriptor]:
        yield from self._shown(CUDA_SHOWCASE)

    def _shown(self, shapes: tuple[tuple[tuple[int, ...], int], ...]) -> Iterator[ScanDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for shape, axis in shapes:
                yield self.descriptor(ScanKind.CUMSUM, shape, axis, element)
        for kind in (ScanKind.CUMPROD, ScanKind.CUMMAX, ScanKind.LOGCUMSUMEXP):
            yield self.descriptor(kind, *shapes[0], ElementKind.F32)

    def from_options(self, options: dict[str, Any]) -> ScanDescriptor:
        if "shape" in options:
            options = {"axis": len(options["shape"]) - 1} | options
        return super().from_options(options)

    def inputs(self, descriptor: ScanDescriptor, rng: Any) -> dict[str, Any]:
        if not descriptor.element.is_float:
            return {"input": rng.integers(-100, 100, descriptor.shape)}
        return {"input": _factors(descriptor, rng)} if descriptor.kind in PRODUCTS else {}

    def parts(self, descriptor: ScanDescriptor) -> Iterator[Part]:
        """Every line along the axis is a scan of its own, at any position."""
        axis, extent = descriptor.axis, descriptor.extent

        def take(name: str, values: Any, line: int) -> Any:
            return values.swapaxes(axis, -1).reshape(-1, extent)[line]

        alone = replace(descriptor, shape=(extent,), axis=0)
        for line in places(descriptor.lines if extent else 0):
            yield Part(alone, partial(take, line=line))

    def flops(self, descriptor: ScanDescriptor) -> int:
        return math.prod(descriptor.shape)

    def summed_extent(self, descriptor: ScanDescriptor) -> int:
        return descriptor.extent


class ScanBackwardCases(ScanCases):
    extremes = (Extreme.NAN, Extreme.ZEROS, Extreme.SMALLEST)
    MANY_LINES = (1024, 700)  # of products: enough for a program to walk along each

    def tiles(self, element: ElementKind) -> Iterator[ScanDescriptor]:
        yield from super().tiles(element)
        for kind in PRODUCTS:
            yield self.descriptor(kind, self.MANY_LINES, 1, element)

    def __init__(self) -> None:
        super().__init__(ScanBackwardDescriptor)

    def inputs(self, descriptor: ScanDescriptor, rng: Any) -> dict[str, Any]:
        """What the forward was given and gave; a product has a few zeros."""
        values = _factors(descriptor, rng) if descriptor.kind in PRODUCTS else rng.standard_normal(descriptor.shape)
        if descriptor.kind in PRODUCTS:
            # In some lines one, in few of them two: after the second there would be nothing but zeros to compare.
            values[rng.random(descriptor.shape) < min(0.01, 0.5 / max(descriptor.extent, 1))] = 0.0
            return {"input": values}
        forward = ScanDescriptor(descriptor.kind, descriptor.shape, descriptor.axis, descriptor.element, descriptor.reverse)
        found = reference.scan(forward, values)
        if descriptor.kind in EXTREMA:
            return {"indices": found[1]}
        return {"input": values, "result": found} if descriptor.kind is ScanKind.LOGCUMSUMEXP else {}

    def is_long_chain(self) -> bool:
        return True

    def flops(self, descriptor: ScanDescriptor) -> int:
        return 2 * math.prod(descriptor.shape)


def _factors(descriptor: ScanDescriptor, rng: Any) -> Any:
    """Numbers of both signs whose product stays near 1."""
    import numpy

    sizes = numpy.exp(rng.standard_normal(descriptor.shape) / max(descriptor.extent, 1) ** 0.5)
    return numpy.copysign(sizes, rng.standard_normal(descriptor.shape))
