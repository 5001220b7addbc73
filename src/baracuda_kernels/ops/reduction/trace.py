"""The sum of a matrix along its diagonal, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.args import Args, Operand, read, write
from baracuda_kernels.core.cases import Cases, Part, places
from baracuda_kernels.core.descriptor import Descriptor, Shape, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.rows import ALL
from baracuda_kernels.ops.reduction.geometry import no_bytes
from baracuda_kernels.ops.reduction.program import trace_of
from baracuda_kernels.ops.reduction.reduction import RANK, kernels
from baracuda_kernels.ops.reduction.row import summed

__all__ = [
    "TraceArgs",
    "TraceBackwardArgs",
    "TraceBackwardDescriptor",
    "TraceBackwardPlan",
    "TraceDescriptor",
    "TraceKind",
    "TracePlan",
]


class TraceKind(Enum):
    TRACE = "trace"


@dataclass(frozen=True)
class TraceDescriptor(Descriptor):
    """The sums along the diagonals of matrices, the last two axes of `shape`."""

    shape: Shape
    element: ElementKind
    kind: TraceKind = TraceKind.TRACE

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("shape", self.shape, 2)
        yield from extents_not_negative(shape=self.shape)

    @property
    def result_shape(self) -> Shape:
        return self.shape[:-2]

    @property
    def result_element(self) -> ElementKind:
        return summed(self.element)

    @property
    def count(self) -> int:
        """The number of elements that are reduced to one."""
        return min(self.shape[-2:])

    @property
    def diagonal_shape(self) -> Shape:
        return (*self.shape[:-2], self.count)


@dataclass(frozen=True)
class TraceBackwardDescriptor(TraceDescriptor):
    """The gradient of a trace: that of the result on the diagonal, and 0 elsewhere."""


def reference(descriptor: TraceDescriptor, input: Any) -> Any:
    return input.trace(axis1=-2, axis2=-1)


def reference_backward(descriptor: TraceBackwardDescriptor, d_result: Any, input: Any) -> Any:
    import numpy

    rows, columns = descriptor.shape[-2:]
    return d_result[..., None, None] * numpy.eye(rows, columns)


class TraceCases(Cases[Any]):
    SHAPES = ((2, 3, 5, 5), (67, 33), (3, 70), (1, 1), (2, 0, 3))  # a batch, a tall and a wide matrix, one element, nothing

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for shape in self.SHAPES if element is ElementKind.F32 else self.SHAPES[:1]:
            yield self.descriptor(shape, element)

    def draw(self, random: Random, element: ElementKind) -> Any:
        return self.descriptor(tuple(random.choice((0, 1, 2, 3, 8, 17)) for _ in range(random.randint(2, 4))), element)

    def showcase(self) -> Iterator[Any]:
        yield self.descriptor((2048, 2048), ElementKind.F32)

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        values = rng.uniform(-1.0, 3.0, descriptor.shape)
        return {"input": values if descriptor.element.is_float else abs(values).round()}

    def parts(self, descriptor: Any) -> Iterator[Part]:
        """Each matrix by itself."""
        batch = descriptor.shape[:-2]

        def take(name: str, values: Any, place: int) -> Any:
            return values.reshape(-1, *values.shape[len(batch) :])[place]

        for place in places(math.prod(batch) if math.prod(descriptor.shape) else 0):
            yield Part(replace(descriptor, shape=descriptor.shape[-2:]), partial(take, place=place))

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        """The bytes of the diagonals; nothing for the gradient."""
        matrices = (
            0 if isinstance(descriptor, TraceBackwardDescriptor) else math.prod(descriptor.diagonal_shape) * descriptor.element.size
        )
        return super().bytes_read(descriptor, operands) | {"input": matrices}

    def flops(self, descriptor: Any) -> int:
        return math.prod(descriptor.diagonal_shape)

    def summed_extent(self, descriptor: Any) -> int:
        return int(descriptor.count)


def _bytes(bytes_of: Callable[..., int]) -> Callable[[Any], int]:
    return lambda problem: bytes_of(trace_of(problem), problem.diagonal_shape, (len(problem.shape) - 2,))


class TraceArgs(Args):
    input: TensorRef = read("shape", "the matrices")
    result: TensorMut = write("result_shape", "the sums along their diagonals", element="result_element")


class TracePlan(Plan[TraceDescriptor, TraceArgs]):
    """The sum of a matrix along its diagonal."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference)
    cases = TraceCases(TraceDescriptor)
    kernels = kernels("trace", ALL, (RANK,), _bytes)


class TraceBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result")
    input: TensorRef = read("shape", "the matrices, of which only the shape matters")
    d_input: TensorMut = write("shape", "the gradient of the matrices", may_be=("input",))


class TraceBackwardPlan(Plan[TraceBackwardDescriptor, TraceBackwardArgs]):
    """The gradient of a trace."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference_backward)
    cases = TraceCases(TraceBackwardDescriptor)
    kernels = kernels("trace_backward", FLOATS, (RANK,), no_bytes)
