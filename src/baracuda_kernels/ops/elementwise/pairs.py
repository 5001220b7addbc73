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
    "BinaryPairArgs",
    "BinaryPairDescriptor",
    "BinaryPairKind",
    "BinaryPairPlan",
    "UnaryPairArgs",
    "UnaryPairBackwardArgs",
    "UnaryPairBackwardDescriptor",
    "UnaryPairBackwardPlan",
    "UnaryPairDescriptor",
    "UnaryPairKind",
    "UnaryPairPlan",
]  # fmt: skip

UnaryPairKind = Enum("UnaryPairKind", {name.upper(): name for name in UNARY_PAIRS}, module=__name__)  # type: ignore[misc]
BinaryPairKind = Enum("BinaryPairKind", {name.upper(): name for name in BINARY_PAIRS}, module=__name__)  # type: ignore[misc]


@dataclass(frozen=True)
class UnaryPairDescriptor(ElementwiseDescriptor):
    """An op of one operand with two results."""

    TABLE, KINDS, OPERANDS = UNARY_PAIRS, UnaryPairKind, ("input",)
    kind: UnaryPairKind  # type: ignore[valid-type]
    input_element: ElementKind | None = None  # of the operand in memory, if that is not `element`

    @property
    def second_element(self) -> ElementKind:
        return self.row.more_results(self.element)[0]


@dataclass(frozen=True)
class UnaryPairBackwardDescriptor(UnaryPairDescriptor):
    """The gradient of an op of one operand with two results, from those of both."""

    IS_BACKWARD = True


@dataclass(frozen=True)
class BinaryPairDescriptor(TensorsOrNumbers, ElementwiseDescriptor):
    """An op of two operands with two results."""

    TABLE, KINDS, OPERANDS = BINARY_PAIRS, BinaryPairKind, ("input", "other")
    kind: BinaryPairKind  # type: ignore[valid-type]
    input_value: complex | None = None  # the first operand, if that is a number and not a tensor
    other_value: complex | None = None  # the second operand, if that is a number and not a tensor
    input_element: ElementKind | None = None  # of the first operand in memory, if that is not `element`
    other_element: ElementKind | None = None  # of the second operand in memory, if that is not `element`


def _reference(descriptor: Any, input: Any = None, other: Any = None) -> Any:
    """Both results in float64 or int64."""
    import numpy

    from baracuda_kernels.ops.elementwise.reference_special import PAIRS

    first, second = (
        descriptor.values[place] if operand is None and place < len(descriptor.values) else operand
        for place, operand in enumerate((input, other))
    )
    if descriptor.kind.value in PAIRS:
        with numpy.errstate(all="ignore"):
            return PAIRS[descriptor.kind.value](first)
    if descriptor.kind.value == "frexp":
        mantissa, exponent = numpy.frexp(first)
        return mantissa, numpy.asarray(exponent, numpy.int64)
    kind = numpy.float64 if descriptor.element.is_float else numpy.int64
    a, b = numpy.broadcast_arrays(numpy.asarray(first, kind), numpy.asarray(second, kind))
    with numpy.errstate(all="ignore"):
        return numpy.floor_divide(a, b), numpy.mod(a, b)


def _reference_backward(descriptor: Any, d_first: Any, d_second: Any, input: Any) -> Any:
    """The gradient in float64."""
    import numpy

    from baracuda_kernels.ops.elementwise.reference_special import PAIR_SLOPES

    with numpy.errstate(all="ignore"):
        of_first, of_second = PAIR_SLOPES[descriptor.kind.value](input)
        return d_first * of_first + d_second * of_second


class PairCases(ElementwiseCases):
    """Loops are those of ops with one result; f64 is divided in so many steps that it is tried once."""

    def corners(self, element: ElementKind) -> Iterator[ElementwiseDescriptor]:
        every = list(super().corners(element))
        return iter(every if element is ElementKind.F32 else every[:1] if element.is_float else every[:2])


class UnaryPairArgs(Args):
    input: TensorRef = read("shape", "the operand", element="input_element", promotes=True, broadcasts=True)
    first: TensorMut = write("shape", "the first result", element="result_element", may_be=("input",))
    second: TensorMut = write("shape", "the second result", element="second_element", may_be=("input",))


class UnaryPairPlan(Plan[UnaryPairDescriptor, UnaryPairArgs]):
    """An elementwise op of one operand with two results."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference)
    cases = PairCases(UnaryPairDescriptor)
    kernels = kernels_for("unary_pair", UNARY_PAIRS)


class UnaryPairBackwardArgs(Args):
    d_first: TensorRef = read("shape", "the gradient of the first result", element="result_element", broadcasts=True)
    d_second: TensorRef = read("shape", "the gradient of the second result", element="second_element", broadcasts=True)
    input: TensorRef = read("shape", "the operand", element="input_element", promotes=True, broadcasts=True)
    d_input: TensorMut = write(
        "shape", "the gradient of the operand", element="d_input_element", may_be=("d_first", "d_second", "input")
    )


class UnaryPairBackwardPlan(Plan[UnaryPairBackwardDescriptor, UnaryPairBackwardArgs]):
    """The gradient of an elementwise op of one operand with two results."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference_backward)
    cases = PairCases(UnaryPairBackwardDescriptor)
    kernels = kernels_for("unary_pair_backward", UNARY_PAIRS, backward=True)


class BinaryPairArgs(Args):
    input: TensorRef = read(
        "shape",
        "the first operand",
        element="input_element",
        promotes=True,
        present="has_input",
        broadcasts=True,
        scalar="input_value",
    )
    other: TensorRef = read(
        "shape",
        "the second operand",
        element="other_element",
        promotes=True,
        present="has_other",
        broadcasts=True,
        scalar="other_value",
    )
    first: TensorMut = write("shape", "the first result", element="result_element", may_be=("input", "other"))
    second: TensorMut = write("shape", "the second result", may_be=("input", "other"))


class BinaryPairPlan(Plan[BinaryPairDescriptor, BinaryPairArgs]):
    """An elementwise op of two operands with two results."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference)
    cases = PairCases(BinaryPairDescriptor)
    kernels = kernels_for("binary_pair", BINARY_PAIRS)
