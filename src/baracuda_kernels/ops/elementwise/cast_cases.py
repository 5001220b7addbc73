"""What conversions are tested and timed on."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.ops.elementwise.cases import ElementByElement
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor, CastKind
from baracuda_kernels.ops.elementwise.rows import ALL

__all__ = ["CastCases"]

SHOWN = (("f32", "bf16"), ("bf16", "f32"), ("f32", "i32"), ("f64", "f16"), ("u8", "f32"))


class CastCases(ElementByElement):
    """All pairs of elements run through the same loops: here each meets the one after it, others are drawn."""

    def corners(self, element: ElementKind) -> Iterator[CastDescriptor]:
        following = ALL[(ALL.index(element) + 1) % len(ALL)]
        yield self.descriptor((31, 33), element, following)
        yield self.descriptor((), element, following)
        yield self.descriptor((5, 0, 3), element, following)
        if element is ElementKind.F32:
            yield self.descriptor((70_001,), element, ElementKind.BF16)
            yield self.descriptor((3, 1009), element, ElementKind.I32, CastKind.BITCAST)

    def draw(self, random: Random, element: ElementKind) -> CastDescriptor:
        return self.descriptor(self.drawn_shape(random), element, random.choice(ALL))

    def showcase(self) -> Iterator[CastDescriptor]:
        yield from self._shown((4096, 4096))

    def cuda_showcase(self) -> Iterator[CastDescriptor]:
        yield from self._shown((16384, 8192))

    def _shown(self, shape: Shape) -> Iterator[CastDescriptor]:
        for source, target in SHOWN:
            yield self.descriptor(shape, ElementKind(source), ElementKind(target))

    def from_options(self, options: dict[str, Any]) -> CastDescriptor:
        if options.get("kind") is CastKind.BITCAST:  # which elements of one size take
            options = {"element": ElementKind.F32, "result_element": ElementKind.I32} | options
        return super().from_options(options)

    def inputs(self, descriptor: CastDescriptor, rng: Any) -> dict[str, Any]:
        """Some of them beyond what short integers hold."""
        values = rng.uniform(-300.0, 300.0, descriptor.shape)
        return {"input": values if descriptor.element.is_float else values.round()}
