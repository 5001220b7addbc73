"""What attention is tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Extreme, Part, entry, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor

# Batch, heads, queries, keys, d_k, d_v, heads of k and v: empty, one, odd, prime, past a strip, a chunk, a block, grouped.
CORNERS = (
    (1, 2, 5, 7, 3, 4, None), (1, 1, 1, 1, 1, 1, None), (2, 3, 7, 5, 4, 6, None), (2, 4, 9, 17, 16, 8, 2), (1, 6, 6, 6, 5, 5, 1),
    (0, 2, 3, 4, 5, 6, None), (2, 0, 3, 4, 5, 6, None), (2, 0, 3, 4, 5, 6, 3), (1, 2, 0, 5, 3, 4, None), (1, 2, 5, 0, 3, 4, None),
    (1, 2, 3, 4, 0, 5, None), (1, 2, 3, 4, 5, 0, None), (1, 1, 13, 131, 65, 67, None), (1, 2, 203, 199, 20, 33, 1),
    (1, 1, 19, 31, 131, 300, None), (1, 3, 97, 64, 64, 64, 3), (1, 1, 3, 4099, 3, 2, None), (1, 1, 2, 8200, 2, 260, None),
)  # fmt: skip

SHOWCASE = ((2, 8, 512, 512, 64, 64, None), (1, 16, 1024, 1024, 128, 128, None))
CUDA_SHOWCASE = ((4, 32, 2048, 2048, 128, 128, None), (8, 32, 1024, 1024, 64, 64, None), (4, 32, 2048, 2048, 128, 128, 8))

# Whole blocks of queries and keys, blocks that reach past the end, and all keys in one block, for features that fill one product,
# a part of one, or several; causal, masked.
TILED = (
    *(((1, 2, 256, 256, d, d, None), causal, False) for d in (16, 64, 128) for causal in (False, True)),
    *(((1, 2, 200, 168, *d, None), False, masked) for d in ((64, 64), (128, 128), (304, 264)) for masked in (False, True)),
    *(((1, 2, 200, 24, *d, None), True, False) for d in ((40, 64), (72, 128))),
)


def batch_entries(descriptor: Any) -> Iterator[Part]:
    """Every operand has the batch first."""
    for number in places(descriptor.batch_size):
        yield Part(replace(descriptor, batch_size=1), partial(entry, number=number))


class SdpaCases(Cases[SdpaDescriptor]):
    on_matrix_units = True
    extremes = (Extreme.ZEROS, Extreme.SMALLEST)  # the weight of a key that causality hides is 0, in a row of NaN too

    def __init__(self) -> None:
        super().__init__(SdpaDescriptor)

    def _problem(self, sizes: tuple[Any, ...], element: ElementKind, causal: bool = False, masked: bool = False) -> SdpaDescriptor:
        batch, heads, queries, keys, d_k, d_v, kv_heads = sizes
        scale = 1.0 / math.sqrt(max(d_k, 1))
        return SdpaDescriptor(batch, heads, queries, keys, d_k, d_v, scale, causal, masked, element, kv_heads)

    def corners(self, element: ElementKind) -> Iterator[SdpaDescriptor]:
        for number, sizes in enumerate(CORNERS):
            yield self._problem(sizes, element, causal=number % 3 == 1, masked=number % 2 == 0)
        yield self._problem((2, 2, 40, 70, 8, 8, None), element)
        yield self._problem((1, 2, 70, 40, 8, 8, 1), element, causal=True, masked=True)
        yield self._problem((1, 1, 300, 300, 16, 16, None), element, causal=True)

    def tiles(self, element: ElementKind) -> Iterator[SdpaDescriptor]:
        for sizes, causal, masked in TILED:
            yield self._problem(sizes, element, causal, masked)

    def draw(self, random: Random, element: ElementKind) -> SdpaDescriptor:
        kv_heads = random.choice((1, 1, 2, 3))
        heads = kv_heads * random.choice((0, 1, 1, 2))
        batch = random.choice((0, 1, 1, 2))
        extents = [random.choice((0, 1, 2, 3, 5, 8, 16, 17, 33)) for _ in range(4)]
        flags = random.random() < 0.4, random.random() < 0.4
        given = None if kv_heads == heads and random.random() < 0.5 else kv_heads
        return self._problem((batch, heads, *extents, given), element, *flags)

    def showcase(self) -> Iterator[SdpaDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for causal in (False, True):
                for sizes in SHOWCASE:
                    yield self._problem(sizes, element, causal)

    def cuda_showcase(self) -> Iterator[SdpaDescriptor]:
        for causal in (False, True):
            for sizes in CUDA_SHOWCASE:
                yield self._problem(sizes, ElementKind.BF16, causal)
        yield self._problem((2, 16, 1024, 1024, 64, 64, None), ElementKind.F32)

    def inputs(self, descriptor: SdpaDescriptor, rng: Any) -> dict[str, Any]:
        """A mask that hides a third of the keys, and a whole row."""
        import numpy

        if not descriptor.has_mask:
            return {}
        shape = descriptor.attn_shape
        mask = numpy.where(rng.random(shape) < 0.3, -numpy.inf, rng.standard_normal(shape))
        mask[:, :, 1:2] = -numpy.inf
        return {"mask": mask}

    def parts(self, descriptor: SdpaDescriptor) -> Iterator[Part]:
        yield from batch_entries(descriptor)

    def flops(self, descriptor: SdpaDescriptor) -> int:
        return math.prod(descriptor.attn_shape) * (2 * (descriptor.d_k + descriptor.d_v) + 5)

    def summed_extent(self, descriptor: SdpaDescriptor) -> int:
        return max(descriptor.key_len, descriptor.d_k)


class SdpaBackwardCases(Cases[SdpaBackwardDescriptor]):
    """The forward's problems, less what the weights already tell."""

    on_matrix_units = True
    extremes = (*Cases.extremes, Extreme.INFINITIES)

    def __init__(self) -> None:
        super().__init__(SdpaBackwardDescriptor)
        self.forward = SdpaCases()

    def _of(self, problem: SdpaDescriptor) -> SdpaBackwardDescriptor:
        return SdpaBackwardDescriptor(**{field.name: getattr(problem, field.name) for field in fields(SdpaBackwardDescriptor)})

    def corners(self, element: ElementKind) -> Iterator[SdpaBackwardDescriptor]:
        yield from map(self._of, self.forward.corners(element))

    def draw(self, random: Random, element: ElementKind) -> SdpaBackwardDescriptor:
        return self._of(self.forward.draw(random, element))

    def tiles(self, element: ElementKind) -> Iterator[SdpaBackwardDescriptor]:
        yield from dict.fromkeys(map(self._of, self.forward.tiles(element)))

    def showcase(self) -> Iterator[SdpaBackwardDescriptor]:
        yield from dict.fromkeys(map(self._of, self.forward.showcase()))

    def cuda_showcase(self) -> Iterator[SdpaBackwardDescriptor]:
        yield from dict.fromkeys(map(self._of, self.forward.cuda_showcase()))

    def inputs(self, descriptor: SdpaBackwardDescriptor, rng: Any) -> dict[str, Any]:
        """Weights as a causal forward would have saved them."""
        import numpy

        scores = rng.standard_normal(descriptor.attn_shape)
        scores[..., numpy.arange(descriptor.key_len) > numpy.arange(descriptor.query_len)[:, None]] = -numpy.inf
        weights = numpy.exp(scores)
        return {"attn": weights / weights.sum(axis=-1, keepdims=True)}

    def parts(self, descriptor: SdpaBackwardDescriptor) -> Iterator[Part]:
        yield from batch_entries(descriptor)

    def flops(self, descriptor: SdpaBackwardDescriptor) -> int:
        return math.prod(descriptor.attn_shape) * (4 * (descriptor.d_k + descriptor.d_v) + 4)

    def summed_extent(self, descriptor: SdpaBackwardDescriptor) -> int:
        heads = descriptor.num_heads // max(descriptor.kv_heads, 1)
        return max(descriptor.key_len, descriptor.query_len * heads, descriptor.d_v)

    def is_long_chain(self) -> bool:
        return True
