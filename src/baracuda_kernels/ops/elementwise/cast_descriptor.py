"""What is to be computed: a tensor in another element, its numbers (cast) or its bits (bitcast)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.formula.expression import Program, input_of
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import ALL

__all__ = ["CastDescriptor", "CastKind"]

BITS = {1: ElementKind.U8, 2: ElementKind.I16, 4: ElementKind.I32, 8: ElementKind.I64}  # as which bits are moved, by their bytes


class CastKind(Enum):
    CAST = "cast"
    BITCAST = "bitcast"


@dataclass(frozen=True)
class CastDescriptor(OnElements):
    """A tensor in another dtype."""

    shape: Shape
    element: ElementKind  # what is read
    result_element: ElementKind  # what is written
    kind: CastKind = CastKind.CAST  # the same numbers, or the same bits

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        if self.result_element not in ALL:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "result_element", self.result_element, " or ".join(map(str, ALL)))
        elif self.kind is CastKind.BITCAST and self.element is not self.result_element:
            if self.element.size != self.result_element.size:
                wanted = f"an element of {self.element.size} bytes, as {self.element} has"
                yield Reason(ReasonCode.INCONSISTENT, "result_element", self.result_element, wanted)
            if self.result_element is ElementKind.BOOL:
                yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "result_element", "bool", "a dtype in which every bit pattern is valid")

    @property
    def program(self) -> Program:
        return _program(self.element, self.result_element, self.kind)

    @property
    def numbers(self) -> Numbers:
        return ()


@functools.cache
def _program(source: ElementKind, target: ElementKind, kind: CastKind) -> Program:
    if kind is CastKind.BITCAST:
        source = target = BITS[source.size]
    return Program((source,), (target,), (converted(input_of(0, source), target),))
