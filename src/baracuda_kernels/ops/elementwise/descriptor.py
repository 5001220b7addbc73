"""What is to be computed: one elementwise op of the tables, or its gradients."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.formula.expression import Program
from baracuda_kernels.ops.elementwise.program import program_of
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow
from baracuda_kernels.ops.elementwise.tables import BINARY, GATED, TERNARY, UNARY

__all__ = [
    "BinaryBackwardDescriptor",
    "BinaryDescriptor",
    "BinaryKind",
    "ElementwiseDescriptor",
    "GatedActivationBackwardDescriptor",
    "GatedActivationDescriptor",
    "GatedActivationKind",
    "TernaryBackwardDescriptor",
    "TernaryDescriptor",
    "TernaryKind",
    "UnaryBackwardDescriptor",
    "UnaryDescriptor",
    "UnaryKind",
    "scalars_fit",
]

UnaryKind = Enum("UnaryKind", {name.upper(): name for name in UNARY}, module=__name__)  # type: ignore[misc]
BinaryKind = Enum("BinaryKind", {name.upper(): name for name in BINARY}, module=__name__)  # type: ignore[misc]
TernaryKind = Enum("TernaryKind", {name.upper(): name for name in TERNARY}, module=__name__)  # type: ignore[misc]

GatedActivationKind = Enum("GatedActivationKind", {name.upper(): name for name in GATED}, module=__name__)  # type: ignore[misc]


def scalars_fit(element: ElementKind, values: Mapping[str, float | None], open: Collection[float] = ()) -> Iterator[Reason]:
    """One of the operands is a tensor, and those that are numbers are numbers of the element, or of what is `open` to all."""
    if None not in values.values():
        name, value = next(iter(values.items()))
        yield Reason(ReasonCode.INCONSISTENT, f"{name}_value", value, "None, for one operand at least")
    if element.is_float:
        return
    low, high = LIMITS.get(element, (0, 1))
    for name, value in values.items():
        if value is not None and not (low <= value <= high and value.is_integer()) and value not in open:
            wanted = f"an integer from {low} to {high}, for {element}"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, f"{name}_value", value, wanted)


@dataclass(frozen=True)
class ElementwiseDescriptor(OnElements):
    """Operands that all have `shape`; a broadcast one has strides of 0. Without `parameters` the op has its own."""

    TABLE: ClassVar[Mapping[str, ElementwiseRow]]
    KINDS: ClassVar[Any]  # the enum of the table's names
    OPERANDS: ClassVar[tuple[str, ...]]
    IS_BACKWARD: ClassVar[bool] = False

    kind: Enum  # the operation on each element; of a backward descriptor, the one whose gradient is computed
    shape: Shape
    element: ElementKind
    parameters: Numbers = ()

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        names = [parameter.name for parameter in self.row.parameters]
        if self.parameters and len(self.parameters) != len(names):
            wanted = f"{len(names)}: {', '.join(names)}" if names else "none"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "parameters", f"{len(self.parameters)} numbers", wanted)
        else:
            yield from self.row.reasons_against(self.row_numbers)
        yield from scalars_fit(self.element, dict(zip(self.OPERANDS, self.values, strict=True)), self.row.left_out.values())

    @property
    def values(self) -> tuple[float | None, ...]:
        """For every operand its value if it is a number, or None if it is a tensor."""
        return tuple(getattr(self, f"{name}_value", None) for name in self.OPERANDS)

    @property
    def row(self) -> ElementwiseRow:
        return self.TABLE[self.kind.value]

    @property
    def program(self) -> Program:
        descriptor: Any = type(self)
        return program_of(descriptor, self.kind, self.element, tuple(number is None for number in self.values))

    @property
    def numbers(self) -> Numbers:
        """The parameters, those of the op where none were given, and the operands that are numbers."""
        return (*self.row_numbers, *(number for number in self.values if number is not None))

    @property
    def row_numbers(self) -> Numbers:
        return self.parameters or tuple(parameter.default for parameter in self.row.parameters)

    @property
    def result_element(self) -> ElementKind:
        return self.element if self.row.result is None else self.row.result


@dataclass(frozen=True)
class UnaryDescriptor(ElementwiseDescriptor):
    """An op of one operand."""

    TABLE, KINDS, OPERANDS = UNARY, UnaryKind, ("input",)
    kind: UnaryKind  # type: ignore[valid-type]


@dataclass(frozen=True)
class UnaryBackwardDescriptor(UnaryDescriptor):
    """The gradient of an op of one operand, from that of its result."""

    IS_BACKWARD = True


class TensorsOrNumbers:
    """Two operands, of which one may be a number that is given with the launch."""

    @property
    def has_input(self: Any) -> bool:
        return self.input_value is None

    @property
    def has_other(self: Any) -> bool:
        return self.other_value is None


@dataclass(frozen=True)
class BinaryDescriptor(TensorsOrNumbers, ElementwiseDescriptor):
    """An op of two operands."""

    TABLE, KINDS, OPERANDS = BINARY, BinaryKind, ("input", "other")
    kind: BinaryKind  # type: ignore[valid-type]
    input_value: float | None = None  # the first operand, if that is a number and not a tensor
    other_value: float | None = None  # the second operand, if that is a number and not a tensor


@dataclass(frozen=True)
class BinaryBackwardDescriptor(BinaryDescriptor):
    """Both gradients of an op of two operands, from that of its result."""

    IS_BACKWARD = True


@dataclass(frozen=True)
class TernaryDescriptor(ElementwiseDescriptor):
    """An op of three operands."""

    TABLE, KINDS, OPERANDS = TERNARY, TernaryKind, ("input", "second", "third")
    kind: TernaryKind  # type: ignore[valid-type]
    input_value: float | None = None  # the first operand, if that is a number and not a tensor
    second_value: float | None = None  # the second operand, if that is a number and not a tensor
    third_value: float | None = None  # the third operand, if that is a number and not a tensor

    @property
    def has_input(self) -> bool:
        return self.input_value is None

    @property
    def has_second(self) -> bool:
        return self.second_value is None

    @property
    def has_third(self) -> bool:
        return self.third_value is None


@dataclass(frozen=True)
class TernaryBackwardDescriptor(TernaryDescriptor):
    """All gradients of an op of three operands, from that of its result."""

    IS_BACKWARD = True


@dataclass(frozen=True)
class GatedActivationDescriptor(ElementwiseDescriptor):
    """Two tensors, or two halves of one, of which the kind says which is the gate."""

    TABLE, KINDS, OPERANDS = GATED, GatedActivationKind, ("first", "second")
    kind: GatedActivationKind  # type: ignore[valid-type]


@dataclass(frozen=True)
class GatedActivationBackwardDescriptor(GatedActivationDescriptor):
    """Both gradients of a gated activation, from that of its result."""

    IS_BACKWARD = True
