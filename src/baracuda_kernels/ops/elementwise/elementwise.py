"""Elementwise ops, from the tables' formulas, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.kernel import Kernel, Limit, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise import reference
from baracuda_kernels.ops.elementwise.cases import ElementwiseCases
from baracuda_kernels.ops.elementwise.descriptor import (
    BinaryBackwardDescriptor,
    BinaryDescriptor,
    ElementwiseDescriptor,
    GatedActivationBackwardDescriptor,
    GatedActivationDescriptor,
    TernaryBackwardDescriptor,
    TernaryDescriptor,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
)
from baracuda_kernels.ops.elementwise.guarantee import computed_by_itself
from baracuda_kernels.ops.elementwise.program import computed_in
from baracuda_kernels.ops.elementwise.rows import ALL, ElementwiseRow
from baracuda_kernels.ops.elementwise.tables import BINARY, GATED, TERNARY, UNARY

__all__ = [
    "BinaryArgs", "BinaryBackwardArgs", "BinaryBackwardPlan", "BinaryPlan", "GatedActivationArgs", "GatedActivationBackwardArgs",
    "GatedActivationBackwardPlan", "GatedActivationPlan", "TernaryArgs", "TernaryBackwardArgs", "TernaryBackwardPlan",
    "TernaryPlan", "UnaryArgs", "UnaryBackwardArgs", "UnaryBackwardPlan", "UnaryPlan", "kernels_for",
]  # fmt: skip


def each_by_itself(descriptor: ElementwiseDescriptor) -> PrecisionGuarantee:
    """Every result depends on its own operands alone, by the same operations at every place."""
    return computed_by_itself(computed_in(descriptor.row, descriptor.element))


def element_makes_sense(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ElementwiseDescriptor)
    elements = descriptor.row.elements
    if descriptor.element not in elements:
        wanted = " or ".join(map(str, elements))
        yield Reason(ReasonCode.LIMIT, "element", descriptor.element, f"{wanted}, for {descriptor.kind.value}")


def is_differentiable(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ElementwiseDescriptor)
    if not descriptor.row.differentiable:
        yield Reason(ReasonCode.LIMIT, "kind", descriptor.kind.name, "an op that has a gradient")


def kernels_for(name: str, table: Mapping[str, ElementwiseRow], backward: bool = False) -> tuple[Kernel, ...]:
    """The kernels of a table, with only those limits that matter for its rows."""
    rows = table.values()
    elements = FLOATS if backward else tuple(each for each in ALL if any(each in row.elements for row in rows))
    limits: list[Limit] = [rank_at_most("shape", 8)]
    limits += [element_makes_sense] if any(set(elements) - set(row.elements) for row in rows) else []
    limits += [is_differentiable] if backward and not all(row.differentiable for row in rows) else []
    entries = ((BackendKind.NUMBA, "llvm:elementwise"), (BackendKind.TRITON, "triton:elementwise"))
    return tuple(
        Kernel(f"{entry.partition(':')[0]}.{name}", backend, entry, each_by_itself, elements, tuple(limits))
        for backend, entry in entries
    )


class UnaryArgs(Args):
    input: TensorRef = read("shape", "the operand", broadcasts=True)
    result: TensorMut = write("shape", "the result", element="result_element", may_be=("input",))


class UnaryPlan(Plan[UnaryDescriptor, UnaryArgs]):
    """An elementwise op of one operand."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.forward)
    cases = ElementwiseCases(UnaryDescriptor)
    kernels = kernels_for("unary", UNARY)


class UnaryBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result", element="result_element", broadcasts=True)
    input: TensorRef = read("shape", "the operand", broadcasts=True)
    d_input: TensorMut = write("shape", "the gradient of the operand", may_be=("d_result", "input"))


class UnaryBackwardPlan(Plan[UnaryBackwardDescriptor, UnaryBackwardArgs]):
    """The gradient of an op of one operand."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.backward)
    cases = ElementwiseCases(UnaryBackwardDescriptor)
    kernels = kernels_for("unary_backward", UNARY, backward=True)


class BinaryArgs(Args):
    input: TensorRef = read("shape", "the first operand", present="has_input", broadcasts=True, scalar="input_value")
    other: TensorRef = read("shape", "the second operand", present="has_other", broadcasts=True, scalar="other_value")
    result: TensorMut = write("shape", "the result", element="result_element", may_be=("input", "other"))


class BinaryPlan(Plan[BinaryDescriptor, BinaryArgs]):
    """An elementwise op of two operands."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.forward)
    cases = ElementwiseCases(BinaryDescriptor)
    kernels = kernels_for("binary", BINARY)


class BinaryBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result", element="result_element", broadcasts=True)
    input: TensorRef = read("shape", "the first operand", present="has_input", broadcasts=True, scalar="input_value")
    other: TensorRef = read("shape", "the second operand", present="has_other", broadcasts=True, scalar="other_value")
    d_input: TensorMut = write(
        "shape", "the gradient of the first operand", present="has_input", may_be=("d_result", "input", "other")
    )
    d_other: TensorMut = write(
        "shape", "the gradient of the second operand", present="has_other", may_be=("d_result", "input", "other")
    )


class BinaryBackwardPlan(Plan[BinaryBackwardDescriptor, BinaryBackwardArgs]):
    """Both gradients of an op of two operands."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.backward)
    cases = ElementwiseCases(BinaryBackwardDescriptor)
    kernels = kernels_for("binary_backward", BINARY, backward=True)


class TernaryArgs(Args):
    input: TensorRef = read("shape", "the first operand", present="has_input", broadcasts=True, scalar="input_value")
    second: TensorRef = read("shape", "the second operand", present="has_second", broadcasts=True, scalar="second_value")
    third: TensorRef = read("shape", "the third operand", present="has_third", broadcasts=True, scalar="third_value")
    result: TensorMut = write("shape", "the result", element="result_element", may_be=("input", "second", "third"))


class TernaryPlan(Plan[TernaryDescriptor, TernaryArgs]):
    """An elementwise op of three operands."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.forward)
    cases = ElementwiseCases(TernaryDescriptor)
    kernels = kernels_for("ternary", TERNARY)


class TernaryBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result", element="result_element", broadcasts=True)
    input: TensorRef = read("shape", "the first operand", present="has_input", broadcasts=True, scalar="input_value")
    second: TensorRef = read("shape", "the second operand", present="has_second", broadcasts=True, scalar="second_value")
    third: TensorRef = read("shape", "the third operand", present="has_third", broadcasts=True, scalar="third_value")
    d_input: TensorMut = write(
        "shape", "the gradient of the first operand", present="has_input", may_be=("d_result", "input", "second", "third")
    )
    d_second: TensorMut = write(
        "shape", "the gradient of the second operand", present="has_second", may_be=("d_result", "input", "second", "third")
    )
    d_third: TensorMut = write(
        "shape", "the gradient of the third operand", present="has_third", may_be=("d_result", "input", "second", "third")
    )


class TernaryBackwardPlan(Plan[TernaryBackwardDescriptor, TernaryBackwardArgs]):
    """All gradients of an op of three operands."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference.backward)
    cases = ElementwiseCases(TernaryBackwardDescriptor)
    kernels = kernels_for("ternary_backward", TERNARY, backward=True)


class GatedActivationArgs(Args):
    first: TensorRef = read("shape", "the first half", broadcasts=True)
    second: TensorRef = read("shape", "the second half", broadcasts=True)
    result: TensorMut = write("shape", "the result", element="result_element", may_be=("first", "second"))


class GatedActivationPlan(Plan[GatedActivationDescriptor, GatedActivationArgs]):
    """A gated activation, elementwise."""

    category, op = OpCategory.GATED_ACTIVATION, "kind"
    reference = staticmethod(reference.forward)
    cases = ElementwiseCases(GatedActivationDescriptor)
    kernels = kernels_for("gated_activation", GATED)


class GatedActivationBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result", element="result_element", broadcasts=True)
    first: TensorRef = read("shape", "the first half", broadcasts=True)
    second: TensorRef = read("shape", "the second half", broadcasts=True)
    d_first: TensorMut = write("shape", "the gradient of the first half", may_be=("d_result", "first", "second"))
    d_second: TensorMut = write("shape", "the gradient of the second half", may_be=("d_result", "first", "second"))


class GatedActivationBackwardPlan(Plan[GatedActivationBackwardDescriptor, GatedActivationBackwardArgs]):
    """Both gradients of a gated activation."""

    category, op = OpCategory.GATED_ACTIVATION, "kind"
    reference = staticmethod(reference.backward)
    cases = ElementwiseCases(GatedActivationBackwardDescriptor)
    kernels = kernels_for("gated_activation_backward", GATED, backward=True)
