"""What order statistics are tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.cases import Cases, Extreme, Part, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.order_statistics.descriptor import (
    Interpolation,
    OrderBackwardDescriptor,
    OrderKind,
    QuantileBackwardDescriptor,
    QuantileKind,
)
from baracuda_kernels.ops.order_statistics.tiles import MOST_SORTED

__all__ = ["OrderBackwardCases", "OrderCases", "QuantileBackwardCases", "QuantileCases"]

# Shape and mask of axes: one number, no axis, nothing, rows, columns, several axes, past what is sorted by insertion, rank 8.
SHAPES = (
    ((), 0), ((4, 3), 0), ((5, 0, 3), 0b101), ((7, 33), 0b10), ((45, 6), 0b01), ((2, 5, 3, 4), 0b1010), ((2, 500), 0b10), ((3, 100), 0b11),
    ((2, 1, 3, 1, 2, 1, 3, 2), 0b10100101),
)  # fmt: skip
FEW = (((9, 40), 0b10), ((35, 10), 0b01), ((2, 9, 3), 0b101))
# On CUDA: several lines at once, by rows and by columns; the longest that are sorted, and that are held; and longer ones.
TILES = (
    ((64, 33), 0b10), ((300, 45), 0b01), ((8, 4096), 0b10), ((4096, 16), 0b01), ((4, 16384), 0b10), ((16384, 3), 0b01), ((2, 40_000), 0b10),
    ((40_000, 3), 0b01),
)  # fmt: skip
FEW_TILES = (((8, 4096), 0b10), ((4, 8192), 0b10), ((2, 40_000), 0b10))
SHOWCASE = (((4096, 4096), 0b10), ((4096, 4096), 0b01), ((1 << 22,), 0b1))
CUDA_SHOWCASE = (((16384, 8192), 0b10), ((16384, 8192), 0b01), ((1 << 26,), 0b1))


class OrderCases(Cases[Any]):
    extremes: ClassVar[tuple[Extreme, ...]] = (
        Extreme.NAN, Extreme.INFINITIES, Extreme.ZEROS, Extreme.LARGEST, Extreme.SMALLEST,
    )  # fmt: skip
    kinds: ClassVar[tuple[Any, ...]] = tuple(OrderKind)

    def more(self, number: int) -> dict[str, Any]:
        """What else such a problem says."""
        return {}

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for number, (shape, mask) in enumerate(SHAPES if element is ElementKind.F32 else FEW):
            kind = self.kinds[number % len(self.kinds)]
            yield self.descriptor(kind, shape, mask, element, keepdim=number % 4 == 1, **self.more(number))

    def tiles(self, element: ElementKind) -> Iterator[Any]:
        for number, (shape, mask) in enumerate(TILES if element is ElementKind.F32 else FEW_TILES):
            for kind in self.kinds:
                problem = self.descriptor(kind, shape, mask, element, **self.more(number))
                if kind is not OrderKind.MODE or problem.count <= MOST_SORTED:
                    yield problem

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape = tuple(random.choice((1, 2, 3, 5, 8, 17)) for _ in range(random.randint(0, 3)))
        mask, kind = random.randrange(1 << len(shape)), random.choice(self.kinds)
        return self.descriptor(kind, shape, mask, element, keepdim=random.random() < 0.5, **self.more(random.randrange(100)))

    def showcase(self) -> Iterator[Any]:
        yield from self._shown(SHOWCASE)

    def cuda_showcase(self) -> Iterator[Any]:
        yield from self._shown(CUDA_SHOWCASE)

    def _shown(self, problems: Any) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for shape, mask in problems:
                yield self.descriptor(self.kinds[0], shape, mask, element)

    def from_options(self, options: dict[str, Any]) -> Any:
        if "shape" in options:
            options = {"axes_mask": (1 << len(options["shape"])) - 1} | options
        return super().from_options(options)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        """Some numbers more than once, both zeros, and in every third line a NaN."""
        import numpy

        values = rng.standard_normal(descriptor.shape)
        values = numpy.where(rng.random(descriptor.shape) < 0.3, values.round(), values)
        if not descriptor.element.is_float:
            return {"input": (10.0 * abs(values)).round()}
        return {"input": numpy.where(rng.random(descriptor.shape) < 0.3 / max(descriptor.count, 1), math.nan, values)}

    def parts(self, descriptor: Any) -> Iterator[Part]:
        """The elements of one result, as a problem of their own."""
        axes, shape = descriptor.axes, descriptor.shape
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        alone = replace(descriptor, shape=(descriptor.count,), axes_mask=1, keepdim=False)

        def take(name: str, values: Any, place: int) -> Any:
            if name in ("input", "d_input"):
                return values.transpose(*kept, *axes).reshape(-1, descriptor.count)[place]
            return values.reshape(*alone.result_shape, -1)[..., place]

        for place in places(descriptor.lines):
            yield Part(alone, partial(take, place=place))

    def flops(self, descriptor: Any) -> int:
        return math.prod(descriptor.shape)

    def summed_extent(self, descriptor: Any) -> int:
        return 1


class OrderBackwardCases(OrderCases):
    extremes = (Extreme.NAN, Extreme.INFINITIES, Extreme.ZEROS, Extreme.LARGEST, Extreme.SMALLEST)

    def __init__(self) -> None:
        super().__init__(OrderBackwardDescriptor)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        return {"indices": rng.integers(0, descriptor.count, descriptor.result_shape).astype(float)}


class QuantileCases(OrderCases):
    extremes = (Extreme.NAN, Extreme.ZEROS, Extreme.SMALLEST)
    kinds = tuple(QuantileKind)

    def more(self, number: int) -> dict[str, Any]:
        """Every interpolation, one quantile and several, more than are selected one by one."""
        interpolation = list(Interpolation)[number % len(Interpolation)]
        q = ((0.5,), (0.25, 0.75), (0.1, 1.0, 0.1))[number % 3]
        return {"interpolation": interpolation, "q": q, "stacked": number % 3 > 0}

    def _shown(self, problems: Any) -> Iterator[Any]:
        yield from super()._shown(problems)
        yield self.descriptor(self.kinds[0], *problems[0], ElementKind.F32, (0.25, 0.5, 0.75), stacked=True)


class QuantileBackwardCases(QuantileCases):
    def __init__(self) -> None:
        super().__init__(QuantileBackwardDescriptor)
