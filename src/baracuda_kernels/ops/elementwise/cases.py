"""What the elementwise ops are tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.cases import Cases, Part, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.expression import Program, in_order, read_by
from baracuda_kernels.ops.elementwise.descriptor import ElementwiseDescriptor
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["ElementByElement", "ElementwiseCases"]

# One number, none, odd, past a vector, past a block, rank 8. All kinds run through the same loops, so a few stand for the others here;
# every one of them is among what is drawn.
CORNERS = ((31, 33), (), (5, 0, 3), (3, 1009), (70_001,), (2, 1, 3, 1, 2, 1, 5, 2))
TELLING = ("gelu", "neg", "logical_not", "atan2", "add", "logical_xor", "lerp", "clamp", "swiglu")
SHOWN = ("exp", "gelu", "tanh", "relu", "add", "div", "atan2", "addcmul", "lerp", "swiglu", "frexp", "divmod")
SHOWCASE, CUDA_SHOWCASE = (4096, 4096), (16384, 8192)


class ElementByElement(Cases[Any]):
    """What cases of elementwise ops share, whatever the op: descriptors have a shape and a program."""

    def drawn_shape(self, random: Random) -> Shape:
        return tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(0, 4)))

    def parts(self, descriptor: Any) -> Iterator[Part]:
        """What lies at one place of the first axis."""
        if not descriptor.shape:
            return

        def take(name: str, values: Any, place: int) -> Any:
            return values[place]

        alone = replace(descriptor, shape=descriptor.shape[1:])
        for place in places(descriptor.shape[0]):
            yield Part(alone, partial(take, place=place))

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        return read_by(descriptor.program, super().bytes_read(descriptor, operands))

    def flops(self, descriptor: Any) -> int:
        return math.prod(descriptor.shape) * len(in_order(descriptor.program.results))

    def summed_extent(self, descriptor: Any) -> int:
        return 1


class ElementwiseCases(ElementByElement):
    def kinds(self, element: ElementKind) -> list[Any]:
        """Those that make sense for the element."""
        return [kind for kind in self.descriptor.KINDS if self._serves(self.descriptor.TABLE[kind.value], element)]

    def _serves(self, row: ElementwiseRow, element: ElementKind) -> bool:
        return element in row.elements and (row.differentiable or not self.descriptor.IS_BACKWARD)

    def corners(self, element: ElementKind) -> Iterator[ElementwiseDescriptor]:
        kinds = self.kinds(element)
        telling = sorted((kind for kind in kinds if kind.value in TELLING), key=lambda kind: TELLING.index(kind.value)) or kinds
        for kind in telling[: 2 if element is ElementKind.F32 else 1]:
            for shape in CORNERS if element.is_float else CORNERS[:3]:
                yield self.descriptor(kind, shape, element)
        if element in (ElementKind.F32, ElementKind.I32) and self._numbers(element):
            yield self.descriptor(telling[0], CORNERS[0], element, **self._numbers(element))

    def _numbers(self, element: ElementKind) -> dict[str, float]:
        """A number for each operand but the first, where there can be some."""
        names = [f"{name}_value" for name in self.descriptor.OPERANDS[1:]]
        return {name: 0.5 if element.is_float else 1.0 for name in names if hasattr(self.descriptor, name)}

    def draw(self, random: Random, element: ElementKind) -> ElementwiseDescriptor:
        kind, shape = random.choice(self.kinds(element)), self.drawn_shape(random)
        return self.descriptor(kind, shape, element, **(self._numbers(element) if random.random() < 0.25 else {}))

    def showcase(self) -> Iterator[ElementwiseDescriptor]:
        yield from self._shown(SHOWCASE)

    def cuda_showcase(self) -> Iterator[ElementwiseDescriptor]:
        yield from self._shown(CUDA_SHOWCASE)

    def _shown(self, shape: tuple[int, ...]) -> Iterator[ElementwiseDescriptor]:
        """Those that read every operand: beside a copy of all, the gradient of a sum, which needs none of them, would shine."""
        for element in (ElementKind.F32, ElementKind.BF16):
            for kind in self.kinds(element):
                shown = self.descriptor(kind, shape, element)
                if kind.value in SHOWN and _reads_everything(shown.program):
                    yield shown

    def inputs(self, descriptor: ElementwiseDescriptor, rng: Any) -> dict[str, Any]:
        """Operands from the row's domain; the gradient of the result is left to chance."""
        domain, drawn = descriptor.row.domain, {}
        for place, name in enumerate(descriptor.OPERANDS):
            low, high = domain[min(place, len(domain) - 1)]
            values = rng.uniform(low, high, descriptor.shape)
            if descriptor.element is ElementKind.U8:
                values = abs(values)
            drawn[name] = values if descriptor.element.is_float else values.round()
        return drawn


def _reads_everything(program: Program) -> bool:
    return sum(each.operation == "input" for each in in_order(program.results)) == len(program.inputs)
