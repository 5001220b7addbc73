"""What RMSNorm is tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Extreme, Part, places
from baracuda_kernels.core.descriptor import Shape
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.normalization.rms_norm.descriptor import HALVES, RMSNormBackwardDescriptor, RMSNormDescriptor

__all__ = ["RMSNormBackwardCases", "RMSNormCases"]

# Shape and number of normalized axes: empty, one, odd, prime, past a vector and a block, many rows, several axes, rank 8.
CORNERS = (
    ((1,), 1), ((0,), 1), ((5,), 1), ((3, 0), 1), ((0, 3), 1), ((0, 0), 2), ((64, 1), 1), ((9, 2), 1), ((3, 17), 1), ((31, 16), 1),
    ((7, 33), 1), ((3, 1009), 1), ((5, 4097), 1), ((2, 9001), 1), ((1000, 40), 1), ((70, 3, 67), 1), ((4, 6, 35), 2), ((5, 3, 7), 3),
    ((3, 2, 1, 19, 1), 3), ((2, 3, 70, 65), 2), ((2, 1, 3, 1, 2, 1, 5, 2), 4), ((2, 3, 1, 2, 2, 1, 5, 2), 1), ((20000, 3), 1),
)  # fmt: skip

SHOWCASE = ((4096, 4096), (65536, 256), (8, 512, 1024))
CUDA_SHOWCASE = ((16384, 4096), (16384, 8192), (65536, 1024))
LONGEST_TILE = 17  # rows of two to this power, and of every smaller one, have a tile of their own
FILLED_TILES = (3, 6, 96, 1536, 3072, 12288, 98304)  # extents that leave places of a tile, or of the last one, empty


def suffix_mask(rank: int, count: int) -> int:
    """The mask of the last `count` of `rank` axes."""
    return ((1 << count) - 1) << (rank - count)


class RMSNormCases(Cases[Any]):
    extremes = tuple(Extreme)

    def problem(self, shape: Shape, count: int, gamma: bool, element: ElementKind, rms: ElementKind | None) -> Any:
        return RMSNormDescriptor(shape, suffix_mask(len(shape), count), 1e-5, gamma, element, rms)

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for number, (shape, count) in enumerate(CORNERS):
            yield self.problem(shape, count, True, element, None)
            if number % 3 == 1:
                yield self.problem(shape, count, False, element, None)
            if number % 3 == 0 and element in HALVES:
                yield self.problem(shape, count, number % 2 == 0, element, ElementKind.F32)

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        for power in range(LONGEST_TILE + 1):
            yield self.problem((3, 1 << power), 1, True, element, None)
        for extent in FILLED_TILES:
            for gamma in (True, False):
                yield self.problem((3, extent), 1, gamma, element, ElementKind.F32 if element in HALVES else None)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(1, 4)))
        rms = ElementKind.F32 if element in HALVES and random.random() < 0.5 else None
        return self.problem(shape, random.randint(1, len(shape)), random.random() < 0.7, element, rms)

    def showcase(self) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for shape in SHOWCASE:
                yield self.problem(shape, 1, True, element, ElementKind.F32)

    def cuda_showcase(self) -> Iterator[Any]:
        for shape in CUDA_SHOWCASE:
            yield self.problem(shape, 1, True, ElementKind.BF16, ElementKind.F32)
        yield self.problem((8192, 4096), 1, True, ElementKind.F32, ElementKind.F32)
        yield self.problem(CUDA_SHOWCASE[0], 1, True, ElementKind.BF16, ElementKind.BF16)

    def from_options(self, options: dict[str, Any]) -> Any:
        if "input_shape" in options:
            options = {"norm_axes_mask": suffix_mask(len(options["input_shape"]), 1)} | options
        if "element" in options:
            options = {"rms_element": None} | options
        return super().from_options(options)

    def parts(self, descriptor: Any) -> Iterator[Part]:
        """Rows; gamma belongs to all of them, and its gradient is a sum over them."""
        shape, rank = descriptor.row_shape, descriptor.norm_rank

        def take(name: str, values: Any, row: int) -> Any:
            if name in ("gamma", "dgamma"):
                return values if name == "gamma" else None
            return values.reshape(-1, *((1,) * rank if name == "rms" else shape))[row]

        alone = replace(descriptor, input_shape=shape, norm_axes_mask=suffix_mask(rank, rank))
        for row in places(descriptor.row_count if descriptor.norm_total_extent else 0):
            yield Part(alone, partial(take, row=row))

    def flops(self, descriptor: Any) -> int:
        return 4 * math.prod(descriptor.input_shape)

    def summed_extent(self, descriptor: Any) -> int:
        return descriptor.norm_total_extent


class RMSNormBackwardCases(RMSNormCases):
    extremes = Cases.extremes

    def problem(self, shape: Shape, count: int, gamma: bool, element: ElementKind, rms: ElementKind | None) -> Any:
        return RMSNormBackwardDescriptor(shape, suffix_mask(len(shape), count), gamma, element, rms)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        """rms as a forward saves it."""
        import numpy

        x = rng.standard_normal(descriptor.input_shape, numpy.float32)
        axes = tuple(range(len(descriptor.outer_shape), x.ndim))
        mean = (x * x).sum(axis=axes, keepdims=True) / max(descriptor.norm_total_extent, 1)
        return {"x": x, "rms": numpy.sqrt(mean + 1e-5)}

    def flops(self, descriptor: Any) -> int:
        return 9 * math.prod(descriptor.input_shape)

    def summed_extent(self, descriptor: Any) -> int:
        return max(descriptor.norm_total_extent, descriptor.row_count)
