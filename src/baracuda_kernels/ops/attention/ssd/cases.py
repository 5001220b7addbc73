"""What the scan is tested and timed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Part, entry, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanBackwardDescriptor, SsdChunkScanDescriptor

# Batch, length, heads, head_dim, state_dim, chunk, groups: one, empty in every extent, odd, prime, just past a chunk, a tile and a
# vector, several chunks to a span, the widest, one group for all heads, heads that share groups.
CORNERS = (
    (1, 1, 1, 1, 1, 1, None), (2, 67, 4, 17, 19, 64, 2), (1, 0, 2, 5, 3, 16, None), (0, 9, 2, 5, 3, 16, None), (2, 9, 0, 5, 3, 16, None),
    (2, 9, 2, 0, 3, 16, None), (2, 9, 2, 5, 0, 16, 1), (2, 5, 1, 3, 2, 1, None), (1, 130, 2, 16, 16, 1000, None), (1, 64, 2, 64, 64, 64, 1),
    (1, 65, 1, 65, 67, 32, None), (1, 200, 3, 8, 33, 7, 1), (1, 257, 2, 36, 20, 100, 2), (1, 61, 2, 1, 130, 61, None), (1, 4, 6, 48, 7, 3, 3),
    (1, 150, 1, 256, 256, 128, None),
)  # fmt: skip


LEAST_CHUNK = 32  # steps to a chunk below which tensor cores are not kept busy: what is counted as necessary


# Reached by the forward: every width of a state, whole and not, with states that enter and leave where it is not; heads that share;
# too little memory to prepare decays.
FORWARD_TILES = (
    *((1, 512, 4, 64, state_dim, 64, None) for state_dim in (16, 64, 128, 256)),
    *((1, 512, 4, 56, state_dim - 8, 64, None) for state_dim in (64, 128, 256)),
    (1, 512, 8, 64, 128, 64, 1), (1, 512, 8, 56, 120, 64, 1), (1, 512, 4, 16, 16, 64, None),
)  # fmt: skip
# Batch, length, heads, head_dim, state_dim, chunk, groups: many heads, with b and c of their own and shared; few long sequences; few heads.
CUDA_SHOWCASE = (
    (4, 4096, 64, 64, 128, 256, None), (4, 4096, 64, 64, 128, 256, 1), (1, 32768, 64, 64, 128, 256, None), (1, 4096, 8, 64, 128, 256, None),
)  # fmt: skip


class SsdChunkScanCases(Cases[SsdChunkScanDescriptor]):
    on_matrix_units = True

    def corners(self, element: ElementKind) -> Iterator[SsdChunkScanDescriptor]:
        for number, (batch, length, heads, head_dim, state_dim, chunk, groups) in enumerate(CORNERS):
            dt_element = ElementKind.F32 if number % 3 == 1 and element.size == 2 else None
            states = number % 4 in (1, 2), number % 2 == 1
            yield self.descriptor(batch, length, heads, head_dim, state_dim, chunk, element, dt_element, groups, *states)
        # A state that only enters or only leaves, where there are no steps at all.
        for states in ((True, True), (False, True), (True, False)):
            yield self.descriptor(2, 0, 2, 5, 3, 16, element, None, None, *states)

    def draw(self, random: Random, element: ElementKind) -> SsdChunkScanDescriptor:
        def extent(*more: int) -> int:
            return random.choice((0, 1, 2, 3, 5, 8, 16, 17, *more))

        heads = random.choice((0, 1, 2, 3, 4, 6))
        groups = random.choice([None, *(count for count in range(1, heads + 1) if heads % count == 0)])
        dt_element = random.choice((None, element, ElementKind.F32)) if element.size == 2 else None
        return self.descriptor(
            random.choice((0, 1, 1, 2, 3)), extent(33, 64, 65, 130), heads, extent(31, 40), extent(31, 40),
            random.choice((1, 2, 7, 16, 64, 100, 128, 1000)), element, dt_element, groups, random.random() < 0.5, random.random() < 0.5,
        )  # fmt: skip

    def showcase(self) -> Iterator[SsdChunkScanDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            dt_element = ElementKind.F32 if element is ElementKind.BF16 else None
            for groups in (None, 1):
                yield self.descriptor(1, 4096, 8, 64, 64, 64, element, dt_element, groups)
            yield self.descriptor(1, 4096, 8, 64, 64, 256, element, dt_element, 1)

    def tiles(self, element: ElementKind) -> Iterator[SsdChunkScanDescriptor]:
        dt_element = ElementKind.F32 if element.size == 2 else None
        for *extents, groups in FORWARD_TILES:
            states = (extents[3] % 64 != 0,) * 2
            yield self._of(extents, element, dt_element, groups, *states)

    def cuda_showcase(self) -> Iterator[SsdChunkScanDescriptor]:
        for *extents, groups in CUDA_SHOWCASE:
            yield self._of(extents, ElementKind.BF16, ElementKind.F32, groups)
        *extents, groups = CUDA_SHOWCASE[0]
        yield self._of(extents, ElementKind.F32, None, groups)

    def inputs(self, descriptor: SsdChunkScanDescriptor, rng: Any) -> dict[str, Any]:
        """Steps and rates as models have them, except that some steps forget everything and every third head nothing."""
        import numpy

        a = -rng.uniform(0.5, 16.0, descriptor.a_shape)
        dt = numpy.exp(rng.uniform(numpy.log(1e-3), numpy.log(0.3), descriptor.dt_shape))
        dt = numpy.where(rng.random(descriptor.dt_shape) < 0.03, -50.0 / a, dt)
        a[2::3], dt[..., 2::3] = 0.0, numpy.minimum(dt[..., 2::3], 0.3)
        return {"a": a, "dt": dt}

    def parts(self, descriptor: SsdChunkScanDescriptor) -> Iterator[Part]:
        """Entries of the batch; the rates belong to all of them, and their gradient is a sum over them."""

        def take(name: str, values: Any, number: int) -> Any:
            if name in ("a", "d_a"):
                return values if name == "a" else None
            return entry(name, values, number)

        for number in places(descriptor.batch_size):
            yield Part(replace(descriptor, batch_size=1), partial(take, number=number))

    def flops(self, descriptor: SsdChunkScanDescriptor) -> int:
        """Four matrix products, two of which are triangles over a chunk."""
        columns, state = descriptor.head_dim + descriptor.state_dim, descriptor.head_dim * descriptor.state_dim
        return self._steps(descriptor) * (min(descriptor.chunk_size, LEAST_CHUNK) * columns + 4 * state)

    def summed_extent(self, descriptor: SsdChunkScanDescriptor) -> int:
        return max(descriptor.seq_len, descriptor.head_dim * descriptor.state_dim)

    def _of(self, extents: Sequence[Any], *others: Any) -> SsdChunkScanDescriptor:
        """Of extents as the lists here have them."""
        batch, length, heads, head_dim, state_dim, chunk = extents
        return self.descriptor(batch, length, heads, head_dim, state_dim, chunk, *others)

    def _steps(self, descriptor: SsdChunkScanDescriptor) -> int:
        return descriptor.batch_size * descriptor.seq_len * descriptor.num_heads


# Reached by the backward: everything of a chunk in one program, alone and in groups; segments; spans of several chunks; wide states in
# blocks; the smallest; a share of d_a for several chunks.
BACKWARD_TILES = (
    (4, 4096, 64, 64, 128, 64, None), (4, 4096, 64, 64, 128, 64, 1), (1, 8192, 8, 64, 128, 64, 2), (1, 4096, 1, 64, 128, 4096, None),
    (1, 4096, 8, 256, 256, 64, None), (1, 65, 1, 16, 16, 16, None), (1, 1000, 1, 1, 1, 1000, None),
)  # fmt: skip


class SsdChunkScanBackwardCases(SsdChunkScanCases):
    def __init__(self) -> None:
        super().__init__(SsdChunkScanBackwardDescriptor)

    def tiles(self, element: ElementKind) -> Iterator[SsdChunkScanDescriptor]:
        dt_element = ElementKind.F32 if element.size == 2 else None
        for *extents, groups in BACKWARD_TILES:
            yield self._of(extents, element, dt_element, groups, True, True)

    def flops(self, descriptor: SsdChunkScanDescriptor) -> int:
        columns, state = 2 * descriptor.head_dim + 3 * descriptor.state_dim, descriptor.head_dim * descriptor.state_dim
        return self._steps(descriptor) * (min(descriptor.chunk_size, LEAST_CHUNK) * columns + 10 * state)

    def is_long_chain(self) -> bool:
        return True
