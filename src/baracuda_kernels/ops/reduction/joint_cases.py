"""What reductions of two operands are tested and timed on."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.ops.reduction import joint_reference
from baracuda_kernels.ops.reduction.cases import FEW, ReduceCases
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceJointBackwardDescriptor,
    ReduceJointDescriptor,
    ReduceJointKind,
)

__all__ = ["ReduceJointBackwardCases", "ReduceJointCases"]

LONG = ((2, 20_001), 0b11)
SHORT = ((40, 3), 0b10)
FLAT_ALONE = ("cosine_similarity", "average")  # of one element alone the gradient is 0, and an error has nothing to be relative to
POWERS = (0.0, 1.0, 2.0, 3.0)


class ReduceJointCases(ReduceCases):
    def __init__(self, descriptor: Any = ReduceJointDescriptor) -> None:
        super().__init__(descriptor, ReduceJointKind)

    def corners(self, element: ElementKind) -> Iterator[Any]:
        """The bodies are those of reductions of one operand: few shapes will do."""
        kinds = self.kinds(element)
        for number, kind in enumerate(kinds):
            shape, mask = FEW[number % len(FEW)]
            if element is ElementKind.F32 or number == 0:
                yield self.descriptor(kind, shape, mask, element, number % 2 == 1)
        if element is ElementKind.F32:
            yield self.descriptor(kinds[-1], *LONG, element)
            yield self.descriptor(kinds[0], *SHORT, element)
            yield self.descriptor(kinds[0], (3, 0), 0b10, element)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape = tuple(random.choice((0, 1, 2, 3, 5, 8, 17)) for _ in range(random.randint(0, 4)))
        kind = random.choice(self.kinds(element))
        parameters = (random.choice(POWERS),) if kind.value == "dist" else ()
        mask = random.randrange(1 << len(shape))
        if kind.value in FLAT_ALONE:
            shape, mask = (*shape[:3], 5), mask & 0b111 | 1 << len(shape[:3])
        return self.descriptor(kind, shape, mask, element, random.random() < 0.5, parameters)

    def _shown(self, problems: Any) -> Iterator[Any]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for shape, mask in problems:
                yield self.descriptor(ReduceJointKind("cosine_similarity"), shape, mask, element)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        """The other is not far, and sometimes the same: what is to be equal would never be."""
        values = super().inputs(descriptor, rng)["input"]
        near = values + (rng.standard_normal(descriptor.shape) if descriptor.element.is_float else 1.0)
        if descriptor.kind.value == "average":
            near = rng.uniform(0.5, 2.0, descriptor.shape)
        if descriptor.kind.value in ("allclose", "equal"):
            near = values if descriptor.element is ElementKind.BOOL or rng.random() < 0.5 else near
        return {"input": values, "other": near}

    def flops(self, descriptor: Any) -> int:
        return 3 * super().flops(descriptor)


class ReduceJointBackwardCases(ReduceJointCases):
    HOLDS_ROWS = True

    def __init__(self) -> None:
        super().__init__(ReduceJointBackwardDescriptor)

    def _serves(self, kind: Any) -> bool:
        return self._row(kind).gradient is not None

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        given = {name: rounded(values, descriptor.element) for name, values in super().inputs(descriptor, rng).items()}
        return given | {"result": joint_reference.reduce_joint(descriptor, **given)}
