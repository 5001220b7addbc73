"""What the softmax family is tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Extreme, Part, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.softmax.descriptor import SoftmaxBackwardDescriptor, SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.reference import softmax

KINDS = (SoftmaxKind.SOFTMAX, SoftmaxKind.LOG_SOFTMAX)

# Shape and axis: empty, one, odd, prime, past a vector, past a block, rows that outgrow scratch, columns, rank 8.
CORNERS = (
    ((1,), 0), ((0,), 0), ((7,), 0), ((5, 0, 3), 0), ((5, 0, 3), 1), ((64, 1), 1), ((1, 64), 0), ((3, 17), 0), ((3, 17), 1),
    ((2, 1, 13), 2), ((31, 33), 1), ((3, 1009), 1), ((5, 4097), 1), ((2, 70001), 1), ((6, 67, 65), 1), ((3, 300, 130), 1),
    ((300, 7), 0), ((2, 5003, 3), 1), ((1100, 70), 0), ((2, 1, 3, 1, 2, 1, 5, 2), 4), ((2, 3, 1, 2, 2, 1, 5, 2), 7),
    ((1, 300000), 1), ((20000, 40), 0),
)  # fmt: skip

SHOWCASE = (((4096, 4096), 1), ((65536, 256), 1), ((64, 1024, 512), 1))
CUDA_SHOWCASE = (((32768, 4096), 1), ((4096, 65536), 1), ((131072, 256), 1), ((64, 4096, 512), 1))
LONGEST_TILE = 17  # rows of two to this power, and of every smaller one, have a tile of their own


class SoftmaxCases(Cases[SoftmaxDescriptor]):
    extremes = tuple(Extreme)

    def corners(self, element: ElementKind) -> Iterator[SoftmaxDescriptor]:
        for kind in KINDS:
            for shape, axis in CORNERS:
                yield self.descriptor(kind, shape, axis, element)

    def tiles(self, element: ElementKind) -> Iterator[SoftmaxDescriptor]:
        for kind in KINDS:
            for power in range(LONGEST_TILE + 1):
                yield self.descriptor(kind, (3, 1 << power), 1, element)
            for power in range(3, 10):
                yield self.descriptor(kind, (2, 5, 1 << power), 1, element)
                yield self.descriptor(kind, (2, 5000, 1 << power), 1, element)

    def draw(self, random: Random, element: ElementKind) -> SoftmaxDescriptor:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(1, 4)))
        return self.descriptor(random.choice(KINDS), shape, random.randrange(len(shape)), element)

    def showcase(self) -> Iterator[SoftmaxDescriptor]:
        for kind in KINDS:
            for element in (ElementKind.F32, ElementKind.BF16):
                for shape, axis in SHOWCASE:
                    yield self.descriptor(kind, shape, axis, element)

    def cuda_showcase(self) -> Iterator[SoftmaxDescriptor]:
        for shape, axis in CUDA_SHOWCASE:
            yield self.descriptor(SoftmaxKind.SOFTMAX, shape, axis, ElementKind.BF16)
        yield self.descriptor(SoftmaxKind.SOFTMAX, (16384, 4096), 1, ElementKind.F32)
        yield self.descriptor(SoftmaxKind.LOG_SOFTMAX, *CUDA_SHOWCASE[0], ElementKind.BF16)

    def from_options(self, options: dict[str, Any]) -> SoftmaxDescriptor:
        if "input_shape" in options:
            options = {"softmax_axis": len(options["input_shape"]) - 1} | options
        return super().from_options(options)

    def parts(self, descriptor: SoftmaxDescriptor) -> Iterator[Part]:
        """Every line along the axis is a row of its own, at any position."""
        axis, extent = descriptor.softmax_axis, descriptor.extent

        def take(name: str, values: Any, line: int) -> Any:
            return values.swapaxes(axis, -1).reshape(-1, extent)[line]

        alone = replace(descriptor, input_shape=(extent,), softmax_axis=0)
        for line in places(math.prod(descriptor.input_shape) // extent if extent else 0):
            yield Part(alone, partial(take, line=line))

    def flops(self, descriptor: SoftmaxDescriptor) -> int:
        return 5 * math.prod(descriptor.input_shape)

    def summed_extent(self, descriptor: SoftmaxDescriptor) -> int:
        return descriptor.extent


class SoftmaxBackwardCases(SoftmaxCases):
    extremes = tuple(kind for kind in Extreme if kind is not Extreme.LARGEST)

    def __init__(self) -> None:
        super().__init__(SoftmaxBackwardDescriptor)

    def inputs(self, descriptor: SoftmaxDescriptor, rng: Any) -> dict[str, Any]:
        return {"y": softmax(descriptor, rng.standard_normal(descriptor.input_shape))}

    def flops(self, descriptor: SoftmaxDescriptor) -> int:
        return 4 * math.prod(descriptor.input_shape)
