"""What is to be computed: one elementwise op of the tables, or its gradients."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Self

from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.launch_numbers import IMAG
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.formula.expression import Program
from baracuda_kernels.ops.elementwise.program import program_of
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow
from baracuda_kernels.ops.elementwise.tables import BINARY, GATED, TERNARY, UNARY

__all__ = [
    "ANY_NUMBER",
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
    "named_parts",
    "numbers_fit",
    "parameters_of",
    "scalars_fit",
]

UnaryKind = Enum("UnaryKind", {name.upper(): name for name in UNARY}, module=__name__)  # type: ignore[misc]
BinaryKind = Enum("BinaryKind", {name.upper(): name for name in BINARY}, module=__name__)  # type: ignore[misc]
TernaryKind = Enum("TernaryKind", {name.upper(): name for name in TERNARY}, module=__name__)  # type: ignore[misc]

GatedActivationKind = Enum("GatedActivationKind", {name.upper(): name for name in GATED}, module=__name__)  # type: ignore[misc]


def parameters_of(table: Mapping[str, ElementwiseRow]) -> tuple[str, ...]:
    """The names of all parameters of a table's rows."""
    return tuple(dict.fromkeys(parameter.name for row in table.values() for parameter in row.parameters))


ANY_NUMBER = 1.0  # of every element: what stands for a number that comes with the launch


def scalars_fit(element: ElementKind, values: Mapping[str, complex | None], open: Collection[float] = ()) -> Iterator[Reason]:
    """One of the operands is a tensor, and those that are numbers are numbers of the element, or of what is `open` to all."""
    if None not in values.values():
        name, value = next(iter(values.items()))
        yield Reason(ReasonCode.INCONSISTENT, f"{name}_value", value, "None, for one operand at least")
    yield from numbers_fit(element, {f"{name}_value": value for name, value in values.items() if value is not None}, open)


def numbers_fit(element: ElementKind, numbers: Mapping[str, complex], open: Collection[float] = ()) -> Iterator[Reason]:
    """They are numbers of the element, or of what is `open` to all."""
    low, high = LIMITS.get(element, (0, 1))
    is_integer = not (element.is_float or element.is_complex)
    for name, number in numbers.items():
        if isinstance(number, complex):
            if not element.is_complex:
                yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, number, f"a real number, for {element}")
        elif is_integer and number not in open and not (low <= number <= high and number.is_integer()):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, number, f"an integer from {low} to {high}, for {element}")


def named_parts(element: ElementKind, values: Mapping[str, complex | None]) -> dict[str, float]:
    """Those of the operands that are numbers, as they are given with a launch: beside complex operands both parts of each."""
    given = {name: number for name, number in values.items() if number is not None}
    if not element.is_complex:
        return {name: number.real for name, number in given.items()}
    return {f"{name}{part}": number for name, whole in given.items() for part, number in (("", whole.real), (IMAG, whole.imag))}


@dataclass(frozen=True)
class ElementwiseDescriptor(OnElements):
    """Operands that all have `shape`; a broadcast one has strides of 0. Without `parameters` the op has its own.

    `element` is what operands are converted to as they are read, and that of the result where the op has no other."""

    TABLE: ClassVar[Mapping[str, ElementwiseRow]]
    KINDS: ClassVar[Any]  # the enum of the table's names
    OPERANDS: ClassVar[tuple[str, ...]]
    IS_BACKWARD: ClassVar[bool] = False

    kind: Enum  # the operation on each element; of a backward descriptor, the one whose gradient is computed
    shape: Shape
    element: ElementKind
    parameters: Numbers = ()
    stored_element: ElementKind | None = field(default=None, kw_only=True)  # of the result in memory, if that is not the op's own

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
    def values(self) -> tuple[complex | None, ...]:
        """For every operand its value if it is a number, or None if it is a tensor."""
        return tuple(getattr(self, f"{name}_value", None) for name in self.OPERANDS)

    @property
    def row(self) -> ElementwiseRow:
        return self.TABLE[self.kind.value]

    @property
    def program(self) -> Program:
        descriptor: Any = type(self)
        present = tuple(number is None for number in self.values)
        return program_of(descriptor, self.kind, self.element, present, self.elements, self.stored_element)

    @property
    def elements(self) -> tuple[ElementKind, ...]:
        """The dtype of each operand as it is in memory."""
        return tuple(getattr(self, f"{name}_element") or self.element for name in self.OPERANDS)

    @property
    def launch_numbers(self) -> Mapping[str, float]:
        """The parameters, those of the op where none were given, and the operands that are numbers."""
        own = {parameter.name: number for parameter, number in zip(self.row.parameters, self.row_numbers, strict=True)}
        return own | named_parts(self.element, dict(zip(self.OPERANDS, self.values, strict=True)))

    def for_any_numbers(self) -> Self:
        given = [name for name, number in zip(self.OPERANDS, self.values, strict=True) if number is not None]
        values: dict[str, Any] = {f"{name}_value": ANY_NUMBER for name in given}
        return replace(self, parameters=(), **values) if self.parameters or values else self

    def reasons_against_numbers(self, numbers: Mapping[str, complex]) -> Iterator[Reason]:
        operands = {name: numbers[name] for name in self.OPERANDS if name in numbers}
        yield from numbers_fit(self.element, operands, self.row.left_out.values())
        own = {parameter.name: number for parameter, number in zip(self.row.parameters, self.row_numbers, strict=True)}
        yield from self.row.reasons_against([numbers.get(name, number).real for name, number in own.items()])

    @property
    def limits_numbers(self) -> bool:
        return any(parameter.least != -math.inf for parameter in self.row.parameters)

    @property
    def numbers(self) -> Numbers:
        """Those of a launch, in the order in which kernels take them."""
        return tuple(self.launch_numbers.values())

    @property
    def row_numbers(self) -> Numbers:
        return self.parameters or tuple(parameter.default for parameter in self.row.parameters)

    @property
    def result_element(self) -> ElementKind:
        return self.stored_element or self.row.result_for(self.element)

    def stored_as(self, element: ElementKind) -> Self:
        return replace(self, stored_element=element)


def _of_gradient(operand: str) -> property:
    """The dtype of an operand's gradient: its own, unless that has none."""

    def element(self: ElementwiseDescriptor) -> ElementKind:
        own: ElementKind = getattr(self, f"{operand}_element") or self.element
        return own if own.is_float or own.is_complex else self.element

    return property(element)


for _operand in ("input", "other", "first", "second", "third"):
    setattr(ElementwiseDescriptor, f"d_{_operand}_element", _of_gradient(_operand))


@dataclass(frozen=True)
class UnaryDescriptor(ElementwiseDescriptor):
    """An op of one operand."""

    TABLE, KINDS, OPERANDS = UNARY, UnaryKind, ("input",)
    kind: UnaryKind  # type: ignore[valid-type]
    input_element: ElementKind | None = None  # of the operand in memory, if that is not `element`


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
    input_value: complex | None = None  # the first operand, if that is a number and not a tensor
    other_value: complex | None = None  # the second operand, if that is a number and not a tensor
    input_element: ElementKind | None = None  # of the first operand in memory, if that is not `element`
    other_element: ElementKind | None = None  # of the second operand in memory, if that is not `element`


@dataclass(frozen=True)
class BinaryBackwardDescriptor(BinaryDescriptor):
    """Both gradients of an op of two operands, from that of its result."""

    IS_BACKWARD = True


@dataclass(frozen=True)
class TernaryDescriptor(ElementwiseDescriptor):
    """An op of three operands."""

    TABLE, KINDS, OPERANDS = TERNARY, TernaryKind, ("input", "second", "third")
    kind: TernaryKind  # type: ignore[valid-type]
    input_value: complex | None = None  # the first operand, if that is a number and not a tensor
    second_value: complex | None = None  # the second operand, if that is a number and not a tensor
    third_value: complex | None = None  # the third operand, if that is a number and not a tensor
    input_element: ElementKind | None = None  # of the first operand in memory, if that is not `element`
    second_element: ElementKind | None = None  # of the second operand in memory, if that is not `element`
    third_element: ElementKind | None = None  # of the third operand in memory, if that is not `element`

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
    first_element: ElementKind | None = None  # of the first half in memory, if that is not `element`
    second_element: ElementKind | None = None  # of the second half in memory, if that is not `element`


@dataclass(frozen=True)
class GatedActivationBackwardDescriptor(GatedActivationDescriptor):
    """Both gradients of a gated activation, from that of its result."""

    IS_BACKWARD = True
