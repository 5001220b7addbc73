"""A choice between two tensors, or a tensor and a number, by a tensor of booleans; and its gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any, ClassVar, Self

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import COMPLEXES, FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.complex import joined
from baracuda_kernels.formula.derive import expanded
from baracuda_kernels.formula.expression import Expr, Program, input_of, parameter_of, register
from baracuda_kernels.formula.float8 import stored
from baracuda_kernels.formula.operations import convert, where
from baracuda_kernels.ops.elementwise.cases import ElementByElement
from baracuda_kernels.ops.elementwise.descriptor import ANY_NUMBER, TensorsOrNumbers, named_parts, numbers_fit, scalars_fit
from baracuda_kernels.ops.elementwise.guarantee import in_its_register
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import STORED

__all__ = [
    "WhereArgs", "WhereBackwardArgs", "WhereBackwardDescriptor", "WhereBackwardPlan", "WhereDescriptor", "WhereKind", "WherePlan",
]  # fmt: skip

BOOL = ElementKind.BOOL


class WhereKind(Enum):
    WHERE = "where"


@dataclass(frozen=True)
class WhereDescriptor(TensorsOrNumbers, OnElements):
    """A condition and two choices, all of one shape; broadcast ones have strides of 0."""

    IS_BACKWARD: ClassVar[bool] = False

    shape: Shape
    element: ElementKind  # of input, other and result
    input_value: complex | None = None  # the value where the condition holds, if that is a number and not a tensor
    other_value: complex | None = None  # the value elsewhere, if that is a number and not a tensor
    input_element: ElementKind | None = None  # of input in memory, if that is not `element`
    other_element: ElementKind | None = None  # of other in memory, if that is not `element`

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        yield from scalars_fit(self.element, {"input": self.input_value, "other": self.other_value})

    @property
    def program(self) -> Program:
        make = _backward if self.IS_BACKWARD else _forward
        own = tuple(self.element if each is None else each for each in (self.input_element, self.other_element))
        return make(self.element, self.has_input, self.has_other, *own)

    @property
    def d_input_element(self) -> ElementKind:
        return self._of_gradient(self.input_element)

    @property
    def d_other_element(self) -> ElementKind:
        return self._of_gradient(self.other_element)

    def _of_gradient(self, own: ElementKind | None) -> ElementKind:
        return own if own is not None and (own.is_float or own.is_complex) else self.element

    @property
    def numbers(self) -> Numbers:
        return tuple(self.launch_numbers.values())

    @property
    def launch_numbers(self) -> Mapping[str, float]:
        """The choices that are numbers; gradients depend on none."""
        return {} if self.IS_BACKWARD else named_parts(self.element, {"input": self.input_value, "other": self.other_value})

    def for_any_numbers(self) -> Self:
        values: dict[str, Any] = {
            name: None if getattr(self, name) is None else ANY_NUMBER for name in ("input_value", "other_value")
        }
        return replace(self, **values)

    def reasons_against_numbers(self, numbers: Mapping[str, complex]) -> Iterator[Reason]:
        yield from numbers_fit(self.element, numbers)


@dataclass(frozen=True)
class WhereBackwardDescriptor(WhereDescriptor):
    """The gradients of both choices, from that of the result."""

    IS_BACKWARD = True


@functools.cache
def _forward(element: ElementKind, has_input: bool, has_other: bool, *own: ElementKind) -> Program:
    given = joined(parameter_of(0), parameter_of(1)) if element.is_complex else parameter_of(0)
    there = tuple(each for each, is_there in zip(own, (has_input, has_other), strict=True) if is_there)
    values = [_moved(input_of(place, each.word), each, element) for place, each in enumerate(there, start=1)]
    number = stored(converted(given, element), element)
    first = values[0] if has_input else number
    second = values[-1] if has_other else number
    inputs = (BOOL, *(each.word for each in there))
    parameters = (2 - len(there)) * (1 + element.is_complex)
    return Program(inputs, (element.word,), expanded((where(input_of(0, BOOL), first, second),)), parameters)


def _moved(value: Expr, own: ElementKind, element: ElementKind) -> Expr:
    """A number as the result has it in memory: its word, unless it is of another dtype, and converted."""
    return value if own is element else convert(value, register(element))


@functools.cache
def _backward(element: ElementKind, has_input: bool, has_other: bool, *own: ElementKind) -> Program:
    condition, d = input_of(0, BOOL), input_of(1, element)
    pairs = zip((where(condition, d, 0), where(condition, 0, d)), own, (has_input, has_other), strict=True)
    wanted = [(result, each if each.is_float or each.is_complex else element) for result, each, is_wanted in pairs if is_wanted]
    outputs = tuple(target for _, target in wanted)
    return Program((BOOL, element), outputs, expanded([convert(result, register(target)) for result, target in wanted]))


class WhereCases(ElementByElement):
    def corners(self, element: ElementKind) -> Iterator[WhereDescriptor]:
        for shape in ((31, 33), (), (5, 0, 3)):
            yield self.descriptor(shape, element)
        if element is ElementKind.C64:
            yield self.descriptor((31, 33), element, None, 0.5 - 2j)
        if element is ElementKind.F32:
            yield self.descriptor((70_001,), element)
            yield self.descriptor((31, 33), element, None, 0.5)
            yield self.descriptor((31, 33), element, 0.5)

    def draw(self, random: Random, element: ElementKind) -> WhereDescriptor:
        numbers: list[dict[str, float]] = [{}, {}, {"input_value": 1.0}, {"other_value": 1.0}]
        return self.descriptor(self.drawn_shape(random), element, **random.choice(numbers))

    def showcase(self) -> Iterator[WhereDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            yield self.descriptor((4096, 4096), element)
            yield self.descriptor((4096, 4096), element, None, 0.0)

    def inputs(self, descriptor: WhereDescriptor, rng: Any) -> dict[str, Any]:
        def drawn() -> Any:
            values = rng.uniform(0.0, 100.0, descriptor.shape)
            if descriptor.element.is_complex:
                return values + 1j * rng.uniform(0.0, 100.0, descriptor.shape)
            return values if descriptor.element.is_float else values.round() % (2 if descriptor.element is BOOL else 100)

        return {"condition": rng.integers(0, 2, descriptor.shape), "input": drawn(), "other": drawn()}


def _kernels(name: str, elements: tuple[ElementKind, ...]) -> tuple[Kernel, ...]:
    limits = (rank_at_most("shape", 8),)
    return (
        Kernel(f"llvm.{name}", BackendKind.NUMBA, "llvm:elementwise", in_its_register, elements, limits),
        Kernel(f"triton.{name}", BackendKind.TRITON, "triton:elementwise", in_its_register, elements, limits),
    )


def _reference(descriptor: WhereDescriptor, condition: Any, input: Any = None, other: Any = None) -> Any:
    import numpy

    first: Any = descriptor.input_value if input is None else input
    second: Any = descriptor.other_value if other is None else other
    kind: Any = complex if descriptor.element.is_complex else numpy.float64 if descriptor.element.is_float else numpy.int64
    return numpy.where(condition != 0, first, second).astype(kind)


def _reference_backward(descriptor: WhereBackwardDescriptor, condition: Any, d_result: Any) -> Any:
    import numpy

    d_input, d_other = (numpy.where(chosen, d_result, 0.0) for chosen in (condition != 0, condition == 0))
    return d_input if descriptor.has_input else None, d_other if descriptor.has_other else None


class WhereArgs(Args):
    condition: TensorRef = read("shape", "true where input is taken, false where other is", element=BOOL, broadcasts=True)
    input: TensorRef = read(
        "shape",
        "the values where it holds",
        element="input_element",
        promotes=True,
        present="has_input",
        broadcasts=True,
        scalar="input_value",
    )
    other: TensorRef = read(
        "shape",
        "the values elsewhere",
        element="other_element",
        promotes=True,
        present="has_other",
        broadcasts=True,
        scalar="other_value",
    )
    result: TensorMut = write("shape", "the result", may_be=("input", "other"))


class WherePlan(Plan[WhereDescriptor, WhereArgs]):
    """An element of one tensor or the other, by a condition."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, WhereKind.WHERE
    reference = staticmethod(_reference)
    cases = WhereCases(WhereDescriptor)
    kernels = _kernels("where", STORED)


class WhereBackwardArgs(Args):
    condition: TensorRef = read("shape", "true where input was taken, false where other was", element=BOOL, broadcasts=True)
    d_result: TensorRef = read("shape", "the gradient of the result", broadcasts=True)
    d_input: TensorMut = write(
        "shape", "the gradient where it holds, else 0", element="d_input_element", present="has_input", may_be=("d_result",)
    )
    d_other: TensorMut = write(
        "shape", "the gradient elsewhere, else 0", element="d_other_element", present="has_other", may_be=("d_result",)
    )


class WhereBackwardPlan(Plan[WhereBackwardDescriptor, WhereBackwardArgs]):
    """The gradients of where."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, WhereKind.WHERE
    reference = staticmethod(_reference_backward)
    cases = WhereCases(WhereBackwardDescriptor)
    kernels = _kernels("where_backward", (*FLOATS, *COMPLEXES))
