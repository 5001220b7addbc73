"""A choice between two tensors, or a tensor and a number, by a tensor of booleans; and its gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import Program, input_of, parameter_of
from baracuda_kernels.formula.operations import where
from baracuda_kernels.ops.elementwise.cases import ElementByElement
from baracuda_kernels.ops.elementwise.descriptor import TensorsOrNumbers, scalars_fit
from baracuda_kernels.ops.elementwise.guarantee import in_its_register
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import ALL

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
    input_value: float | None = None  # the value where the condition holds, if that is a number and not a tensor
    other_value: float | None = None  # the value elsewhere, if that is a number and not a tensor

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        yield from scalars_fit(self.element, {"input": self.input_value, "other": self.other_value})

    @property
    def program(self) -> Program:
        make = _backward if self.IS_BACKWARD else _forward
        return make(self.element, self.has_input, self.has_other)

    @property
    def numbers(self) -> Numbers:
        return () if self.IS_BACKWARD else tuple(each for each in (self.input_value, self.other_value) if each is not None)


@dataclass(frozen=True)
class WhereBackwardDescriptor(WhereDescriptor):
    """The gradients of both choices, from that of the result."""

    IS_BACKWARD = True


@functools.cache
def _forward(element: ElementKind, has_input: bool, has_other: bool) -> Program:
    number = converted(parameter_of(0), element)
    first = input_of(1, element) if has_input else number
    second = input_of(1 + has_input, element) if has_other else number
    inputs = (BOOL, *(element,) * (has_input + has_other))
    return Program(inputs, (element,), (where(input_of(0, BOOL), first, second),), 2 - has_input - has_other)


@functools.cache
def _backward(element: ElementKind, has_input: bool, has_other: bool) -> Program:
    condition, d = input_of(0, BOOL), input_of(1, element)
    results = ((where(condition, d, 0), has_input), (where(condition, 0, d), has_other))
    wanted = tuple(result for result, is_wanted in results if is_wanted)
    return Program((BOOL, element), (element,) * len(wanted), wanted)


class WhereCases(ElementByElement):
    def corners(self, element: ElementKind) -> Iterator[WhereDescriptor]:
        for shape in ((31, 33), (), (5, 0, 3)):
            yield self.descriptor(shape, element)
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
    return numpy.where(condition != 0, first, second).astype(numpy.float64 if descriptor.element.is_float else numpy.int64)


def _reference_backward(descriptor: WhereBackwardDescriptor, condition: Any, d_result: Any) -> Any:
    import numpy

    d_input, d_other = (numpy.where(chosen, d_result, 0.0) for chosen in (condition != 0, condition == 0))
    return d_input if descriptor.has_input else None, d_other if descriptor.has_other else None


class WhereArgs(Args):
    condition: TensorRef = read("shape", "true where input is taken, false where other is", element=BOOL, broadcasts=True)
    input: TensorRef = read("shape", "the values where it holds", present="has_input", broadcasts=True, scalar="input_value")
    other: TensorRef = read("shape", "the values elsewhere", present="has_other", broadcasts=True, scalar="other_value")
    result: TensorMut = write("shape", "the result", may_be=("input", "other"))


class WherePlan(Plan[WhereDescriptor, WhereArgs]):
    """An element of one tensor or the other, by a condition."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, WhereKind.WHERE
    reference = staticmethod(_reference)
    cases = WhereCases(WhereDescriptor)
    kernels = _kernels("where", ALL)


class WhereBackwardArgs(Args):
    condition: TensorRef = read("shape", "true where input was taken, false where other was", element=BOOL, broadcasts=True)
    d_result: TensorRef = read("shape", "the gradient of the result", broadcasts=True)
    d_input: TensorMut = write("shape", "the gradient where it holds, else 0", present="has_input", may_be=("d_result",))
    d_other: TensorMut = write("shape", "the gradient elsewhere, else 0", present="has_other", may_be=("d_result",))


class WhereBackwardPlan(Plan[WhereBackwardDescriptor, WhereBackwardArgs]):
    """The gradients of where."""

    category, op = OpCategory.TERNARY_ELEMENTWISE, WhereKind.WHERE
    reference = staticmethod(_reference_backward)
    cases = WhereCases(WhereBackwardDescriptor)
    kernels = _kernels("where_backward", FLOATS)
