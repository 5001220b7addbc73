"""Elementwise ops that have two results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.cases import ElementwiseCases
from baracuda_kernels.ops.elementwise.descriptor import ElementwiseDescriptor, TensorsOrNumbers
from baracuda_kernels.ops.elementwise.elementwise import kernels_for
from baracuda_kernels.ops.elementwise.pair_rows import BINARY_PAIRS, UNARY_PAIRS

__all__ = [
    "BinaryPairArgs", "BinaryPairDescriptor", "BinaryPairKind", "BinaryPairPlan", "UnaryPairArgs", "UnaryPairDescriptor",
    "UnaryPairKind", "UnaryPairPlan",
]  # fmt: skip

UnaryPairKind = Enum("UnaryPairKind", {name.upper(): name for name in UNARY_PAIRS}, module=__name__)  # type: ignore[misc]
BinaryPairKind = Enum("BinaryPairKind", {name.upper(): name for name in BINARY_PAIRS}, module=__name__)  # type: ignore[misc]


@dataclass(frozen=True)
class UnaryPairDescriptor(ElementwiseDescriptor):
    """An op of one operand with two results."""

    TABLE, KINDS, OPERANDS = UNARY_PAIRS, UnaryPairKind, ("input",)
    kind: UnaryPairKind  # type: ignore[valid-type]

    @property
    def second_element(self) -> ElementKind:
        return self.row.more_results(self.element)[0]


@dataclass(frozen=True)
class BinaryPairDescriptor(TensorsOrNumbers, ElementwiseDescriptor):
    """An op of two operands with two results."""

    TABLE, KINDS, OPERANDS = BINARY_PAIRS, BinaryPairKind, ("input", "other")
    kind: BinaryPairKind  # type: ignore[valid-type]
    input_value: float | None = None  # the first operand, if that is a number and not a tensor
    other_value: float | None = None  # the second operand, if that is a number and not a tensor


def _reference(descriptor: Any, input: Any = None, other: Any = None) -> Any:
    """Both results in float64 or int64."""
    import numpy

    first, second = (
        descriptor.values[place] if operand is None and place < len(descriptor.values) else operand
        for place, operand in enumerate((input, other))
    )
    if descriptor.kind.value == "modf":
        return numpy.modf(first)
    if descriptor.kind.value == "frexp":
        mantissa, exponent = numpy.frexp(first)
        return mantissa, numpy.asarray(exponent, numpy.int64)
    kind = numpy.float64 if descriptor.element.is_float else numpy.int64
    a, b = numpy.broadcast_arrays(numpy.asarray(first, kind), numpy.asarray(second, kind))
    with numpy.errstate(all="ignore"):
        return numpy.floor_divide(a, b), numpy.mod(a, b)


class PairCases(ElementwiseCases):
    """Loops are those of ops with one result; f64 is divided in so many steps that it is tried once."""

    def corners(self, element: ElementKind) -> Iterator[ElementwiseDescriptor]:
        every = list(super().corners(element))
        return iter(every if element is ElementKind.F32 else every[:1] if element.is_float else every[:2])


class UnaryPairArgs(Args):
    input: TensorRef = read("shape", "the operand", broadcasts=True)
    first: TensorMut = write("shape", "the first result", may_be=("input",))
    second: TensorMut = write("shape", "the second result", element="second_element", may_be=("input",))


class UnaryPairPlan(Plan[UnaryPairDescriptor, UnaryPairArgs]):
    """An elementwise op of one operand with two results."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference)
    cases = PairCases(UnaryPairDescriptor)
    kernels = kernels_for("unary_pair", UNARY_PAIRS)


class BinaryPairArgs(Args):
    input: TensorRef = read("shape", "the first operand", present="has_input", broadcasts=True, scalar="input_value")
    other: TensorRef = read("shape", "the second operand", present="has_other", broadcasts=True, scalar="other_value")
    first: TensorMut = write("shape", "the first result", may_be=("input", "other"))
    second: TensorMut = write("shape", "the second result", may_be=("input", "other"))


class BinaryPairPlan(Plan[BinaryPairDescriptor, BinaryPairArgs]):
    """An elementwise op of two operands with two results."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference)
    cases = PairCases(BinaryPairDescriptor)
    kernels = kernels_for("binary_pair", BINARY_PAIRS)
