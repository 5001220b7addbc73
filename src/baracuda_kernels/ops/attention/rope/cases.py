"""What the rotary embedding is tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Extreme, Part, entry, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle

# B, H, S, D, R: empty, one, odd, past a vector, past a block of positions, tails to copy, rows too wide for one table.
CORNERS = (
    (1, 1, 1, 2, None), (0, 2, 3, 4, None), (2, 0, 3, 4, 2), (2, 3, 0, 4, None), (1, 2, 7, 32, None), (3, 1, 5, 6, None),
    (2, 3, 5, 34, None), (2, 2, 9, 64, 20), (1, 3, 70, 128, None), (2, 5, 131, 16, 14), (1, 1, 3, 258, 100), (3, 4, 1, 66, 66),
    (1, 2, 2, 9000, None), (2, 1, 2, 8300, 8200), (1, 40, 300, 64, None),
)  # fmt: skip
SHOWCASE = ((1, 32, 2048, 128), (64, 32, 1, 128))
CUDA_SHOWCASE = (
    ((4, 32, 8192, 128), RopeStyle.INTERLEAVED, ElementKind.BF16), ((4, 32, 8192, 128), RopeStyle.HALF, ElementKind.BF16),
    ((8, 16, 4096, 64), RopeStyle.INTERLEAVED, ElementKind.BF16), ((2, 32, 8192, 128), RopeStyle.HALF, ElementKind.F32),
    ((64, 32, 1, 128), RopeStyle.HALF, ElementKind.BF16),
)  # fmt: skip
# Many heads and few, long and short sequences, wide and narrow rows, tails to copy.
TILES = (
    (4, 32, 8192, 128, None), (8, 16, 4096, 64, None), (64, 32, 1, 128, None), (1, 32, 2048, 96, None), (1, 1, 8192, 128, None),
    (1, 8, 512, 256, 64), (16, 32, 4, 80, None), (1, 2, 3, 6, 2), (1, 1, 70000, 2, None), (2, 3, 64, 9000, None), (2, 1, 2, 8300, 8200),
)  # fmt: skip
FAR = (0, 1, -1, 5, -77, 4095, 131071, 1 << 20, -(1 << 20), (1 << 20) - 1, (1 << 40) + 12345)


class RopeCases(Cases[RopeDescriptor]):
    extremes = tuple(Extreme)

    def corners(self, element: ElementKind) -> Iterator[RopeDescriptor]:
        for number, (batch, heads, positions, width, rotary) in enumerate(CORNERS):
            base = 500000.0 if number % 3 else 10000.0
            for style in RopeStyle:
                yield self.descriptor(batch, heads, positions, width, base, element, style, rotary)

    def tiles(self, element: ElementKind) -> Iterator[RopeDescriptor]:
        for batch, heads, positions, width, rotary in TILES:
            for style in RopeStyle:
                yield self.descriptor(batch, heads, positions, width, 10000.0, element, style, rotary)

    def draw(self, random: Random, element: ElementKind) -> RopeDescriptor:
        batch, heads, positions = (random.choice((0, 1, 1, 2, 3, 5, 17)) for _ in range(3))
        width = 2 * random.choice((1, 2, 3, 8, 9, 16, 33))
        rotary = random.choice((None, 2 * random.randint(1, width // 2)))
        base = random.choice((10000.0, 500000.0, 1.0, 0.5, 1e7, 2.7))
        return self.descriptor(batch, heads, positions, width, base, element, random.choice(list(RopeStyle)), rotary)

    def showcase(self) -> Iterator[RopeDescriptor]:
        for extents in SHOWCASE:
            for style in RopeStyle:
                for element in (ElementKind.F32, ElementKind.BF16):
                    yield self.descriptor(*extents, 10000.0, element, style)

    def cuda_showcase(self) -> Iterator[RopeDescriptor]:
        for extents, style, element in CUDA_SHOWCASE:
            yield self.descriptor(*extents, 10000.0, element, style)

    def inputs(self, descriptor: RopeDescriptor, rng: Any) -> dict[str, Any]:
        """Near and far positions, in turn with those that a long context has; of several batches, sometimes each its own."""
        shape = descriptor.shared_positions
        if descriptor.batch_size > 1 and descriptor.seq_len % 2:
            shape = descriptor.batch_positions
        spread = rng.choice(FAR, shape) if math.prod(shape) < 1000 else rng.integers(-(1 << 20), 1 << 20, shape)
        return {"positions": spread}

    def parts(self, descriptor: RopeDescriptor) -> Iterator[Part]:
        """Entries of the batch; positions may be shared by all of them."""

        def take(name: str, values: Any, number: int) -> Any:
            return values if values.ndim == 1 else entry(name, values, number)

        for number in places(descriptor.batch_size):
            yield Part(replace(descriptor, batch_size=1), partial(take, number=number))

    def flops(self, descriptor: RopeDescriptor) -> int:
        rows = descriptor.batch_size * descriptor.num_heads * descriptor.seq_len
        return 3 * rows * descriptor.rotated

    def summed_extent(self, descriptor: RopeDescriptor) -> int:
        return 2
