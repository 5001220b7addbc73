"""Complex numbers of two real ones, by their parts or in polar form; and the gradients.

complex   z = real + i imag            dreal = Re dz                          dimag = Im dz
polar     z = abs exp(i angle)         dabs = Re dz cos + Im dz sin           dangle = abs (Im dz cos - Re dz sin)
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.derive import expanded
from baracuda_kernels.formula.expression import Expr, Program, input_of
from baracuda_kernels.formula.functions.trigonometry import cos, sin
from baracuda_kernels.formula.operations import bitcast, convert
from baracuda_kernels.ops.elementwise.arithmetic import bits_of
from baracuda_kernels.ops.elementwise.cases import ElementByElement
from baracuda_kernels.ops.elementwise.guarantee import in_its_register

__all__ = [
    "ComplexArgs", "ComplexBackwardArgs", "ComplexBackwardDescriptor", "ComplexBackwardPlan", "ComplexDescriptor", "ComplexKind",
    "ComplexPlan",
]  # fmt: skip

WORD = ElementKind.I64  # what a complex number of f32 is read and written as
OF_PARTS = {ElementKind.F32: ElementKind.C64, ElementKind.F64: ElementKind.C128}


class ComplexKind(Enum):
    COMPLEX = "complex"
    POLAR = "polar"


@dataclass(frozen=True)
class ComplexDescriptor(OnElements):
    """Complex numbers of two real operands, all of one shape; a broadcast one has strides of 0."""

    IS_BACKWARD: ClassVar[bool] = False

    kind: ComplexKind
    shape: Shape
    element: ElementKind  # of the operands

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)

    @property
    def result_element(self) -> ElementKind:
        """The complex dtype of the result; there is none for 16-bit floats."""
        return OF_PARTS.get(self.element, ElementKind.C64)

    @property
    def is_polar(self) -> bool:
        return self.kind is ComplexKind.POLAR

    @property
    def in_words(self) -> bool:
        """Whether a complex number is read and written at once, and not part by part."""
        return self.result_element.size == WORD.size

    @property
    def numbers(self) -> Numbers:
        return ()

    @property
    def program(self) -> Program:
        return _program(self.kind, self.element, self.IS_BACKWARD, self.in_words)


@dataclass(frozen=True)
class ComplexBackwardDescriptor(ComplexDescriptor):
    """The gradients of both operands, from that of the complex numbers: its parts are the gradients of their parts, as in PyTorch."""

    IS_BACKWARD = True


@functools.cache
def _program(kind: ComplexKind, element: ElementKind, is_backward: bool, in_words: bool) -> Program:
    """A complex number is one operand where it is a word, else two: its parts."""
    complexes = (WORD,) if in_words else (element, element)
    if not is_backward:
        first, second = (input_of(place, element) for place in range(2))
        parts = (first, second) if kind is ComplexKind.COMPLEX else (first * cos(second), first * sin(second))
        return Program((element, element), complexes, expanded(_word(*parts) if in_words else parts))
    first, second = _parts(input_of(0, WORD)) if in_words else (input_of(place, element) for place in range(2))
    if kind is ComplexKind.COMPLEX:
        return Program(complexes, (element, element), (first, second))
    size, angle = (input_of(len(complexes) + place, element) for place in range(2))
    along, across = first * cos(angle) + second * sin(angle), second * cos(angle) - first * sin(angle)
    return Program((*complexes, element, element), (element, element), expanded([along, size * across]))


def _word(real: Expr, imag: Expr) -> tuple[Expr]:
    """Both parts as one word, the first in the lower half, as they lie in memory."""
    low, high = (convert(bits_of(part), WORD) for part in (real, imag))
    return ((high << 32) | (low & (1 << 32) - 1),)


def _parts(word: Expr) -> tuple[Expr, Expr]:
    low, high = (bitcast(convert(half, ElementKind.I32), ElementKind.F32) for half in (word, word >> 32))
    return low, high


class ComplexCases(ElementByElement):
    def corners(self, element: ElementKind) -> Iterator[ComplexDescriptor]:
        for shape in ((31, 33), (), (5, 0, 3)):
            yield self.descriptor(ComplexKind.COMPLEX, shape, element)
        yield self.descriptor(ComplexKind.POLAR, (3, 17), element)
        if element is ElementKind.F32:
            yield self.descriptor(ComplexKind.COMPLEX, (70_001,), element)
            yield self.descriptor(ComplexKind.POLAR, (2, 1, 3, 1, 2, 1, 5, 2), element)

    def draw(self, random: Random, element: ElementKind) -> ComplexDescriptor:
        return self.descriptor(random.choice(list(ComplexKind)), self.drawn_shape(random), element)  # type: ignore[no-any-return]

    def showcase(self) -> Iterator[ComplexDescriptor]:
        for kind in ComplexKind:
            yield self.descriptor(kind, (4096, 4096), ElementKind.F32)

    def inputs(self, descriptor: ComplexDescriptor, rng: Any) -> dict[str, Any]:
        return {"input": rng.uniform(0.1, 3.0, descriptor.shape), "other": rng.uniform(-9.0, 9.0, descriptor.shape)}


def _joined(real: Any, imag: Any) -> Any:
    """A sum of products with i would spread infinities to both parts."""
    import numpy

    joined = numpy.empty(real.shape, numpy.complex128)
    joined.real, joined.imag = real, imag
    return joined


def _reference(descriptor: ComplexDescriptor, input: Any, other: Any) -> Any:
    import numpy

    if not descriptor.is_polar:
        return _joined(input, other)
    with numpy.errstate(invalid="ignore"):
        return _joined(input * numpy.cos(other), input * numpy.sin(other))


def _reference_backward(descriptor: ComplexBackwardDescriptor, d_result: Any, input: Any = None, other: Any = None) -> Any:
    import numpy

    if not descriptor.is_polar:
        return d_result.real, d_result.imag
    with numpy.errstate(invalid="ignore"):
        cos, sin = numpy.cos(other), numpy.sin(other)
        return d_result.real * cos + d_result.imag * sin, input * (d_result.imag * cos - d_result.real * sin)


def _kernels(name: str) -> tuple[Kernel, ...]:
    limits, elements = (rank_at_most("shape", 8),), tuple(OF_PARTS)
    return (
        Kernel(f"llvm.{name}", BackendKind.NUMBA, "llvm:of_complexes", in_its_register, elements, limits),
        Kernel(f"triton.{name}", BackendKind.TRITON, "triton:of_complexes", in_its_register, elements, limits),
    )


class ComplexArgs(Args):
    input: TensorRef = read("shape", "the real parts, or the sizes", broadcasts=True)
    other: TensorRef = read("shape", "the imaginary parts, or the angles", broadcasts=True)
    result: TensorMut = write("shape", "the complex numbers", element="result_element")


class ComplexPlan(Plan[ComplexDescriptor, ComplexArgs]):
    """Complex numbers of two tensors of real ones."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference)
    cases = ComplexCases(ComplexDescriptor)
    kernels = _kernels("complex")


class ComplexBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result", element="result_element", broadcasts=True)
    input: TensorRef = read("shape", "the sizes", present="is_polar", broadcasts=True)
    other: TensorRef = read("shape", "the angles", present="is_polar", broadcasts=True)
    d_input: TensorMut = write("shape", "the gradient of the real parts, or of the sizes", may_be=("input", "other"))
    d_other: TensorMut = write("shape", "the gradient of the imaginary parts, or of the angles", may_be=("input", "other"))


class ComplexBackwardPlan(Plan[ComplexBackwardDescriptor, ComplexBackwardArgs]):
    """The gradients of both real operands."""

    category, op = OpCategory.BINARY_ELEMENTWISE, "kind"
    reference = staticmethod(_reference_backward)
    cases = ComplexCases(ComplexBackwardDescriptor)
    kernels = _kernels("complex_backward")
