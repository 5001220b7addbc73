"""Many elements made one: sums, extremes, moments and norms along any axes, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, Limit, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.rows import ALL
from baracuda_kernels.ops.reduction import reference
from baracuda_kernels.ops.reduction.cases import ReduceBackwardCases, ReduceCases, ReduceToCases
from baracuda_kernels.ops.reduction.descriptor import ReduceBackwardDescriptor, ReduceDescriptor, ReduceKind, ReduceToDescriptor
from baracuda_kernels.ops.reduction.geometry import backward_bytes, reduce_bytes, reduce_to_bytes
from baracuda_kernels.ops.reduction.rows import TABLE
from baracuda_kernels.targets.cpu.llvm import reduction_launch
from baracuda_kernels.targets.cuda.formulas import reduction_tiles

__all__ = [
    "RANK", "ReduceArgs", "ReduceBackwardArgs", "ReduceBackwardPlan", "ReducePlan", "ReduceToArgs", "ReduceToPlan", "element_makes_sense",
    "is_choice", "is_differentiable", "kernels",
]  # fmt: skip


def in_fixed_order(descriptor: ReduceDescriptor | ReduceToDescriptor) -> PrecisionGuarantee:
    """How many elements become one is all that the order depends on."""
    computing = descriptor.computing if isinstance(descriptor, ReduceDescriptor) else TABLE["sum"].computed(descriptor.element)
    precision = MathPrecision(computing.value) if computing.is_float else MathPrecision.EXACT
    return PrecisionGuarantee(precision, computing, True, True, True)


def fixed_by_shape(descriptor: ReduceDescriptor | ReduceToDescriptor) -> PrecisionGuarantee:
    """How a sum is shared out among programs depends on how many sums there are."""
    return replace(in_fixed_order(descriptor), batch_invariant=False)


def element_makes_sense(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ReduceDescriptor)
    if descriptor.converted not in descriptor.row.elements:
        wanted = " or ".join(map(str, descriptor.row.elements))
        where = "element" if descriptor.as_element is None else "as_element"
        yield Reason(ReasonCode.LIMIT, where, descriptor.converted, f"{wanted}, for {descriptor.kind.value}")


def is_differentiable(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ReduceDescriptor)
    if descriptor.row.gradient is None:
        yield Reason(ReasonCode.LIMIT, "kind", descriptor.kind.name, "a reduction that has a gradient here")


def is_choice(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ReduceDescriptor)
    if not descriptor.row.is_choice:
        yield Reason(ReasonCode.LIMIT, "kind", descriptor.kind.name, "a reduction that returns one of the elements")


RANK = rank_at_most("shape", 8)
ON_CPU, ON_CUDA = reduction_launch.workspace_bytes, reduction_tiles.workspace_bytes


def kernels(
    name: str, elements: tuple[ElementKind, ...], limits: tuple[Limit, ...], bytes_of: Callable[..., Callable[[Any], int]]
) -> tuple[Kernel, ...]:
    return (
        Kernel(f"llvm.{name}", BackendKind.NUMBA, f"llvm:{name}", in_fixed_order, elements, limits, bytes_of(ON_CPU)),
        Kernel(f"triton.{name}", BackendKind.TRITON, f"triton:{name}", fixed_by_shape, elements, limits, bytes_of(ON_CUDA)),
    )


class ReduceArgs(Args):
    input: TensorRef = read("shape", "the elements")
    result: TensorMut = write("result_shape", "the result", element="result_element")


class ReducePlan(Plan[ReduceDescriptor, ReduceArgs]):
    """A reduction along any axes."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce)
    cases = ReduceCases(ReduceDescriptor, ReduceKind)
    kernels = kernels("reduce", ALL, (RANK, element_makes_sense), reduce_bytes)


class ReduceBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result", element="result_element")
    input: TensorRef = read("shape", "the elements")
    result: TensorRef = read("result_shape", "the saved result", element="result_element")
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("input",))


class ReduceBackwardPlan(Plan[ReduceBackwardDescriptor, ReduceBackwardArgs]):
    """The gradient of a reduction."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce_backward)
    cases = ReduceBackwardCases()
    kernels = kernels("reduce_backward", FLOATS, (RANK, is_differentiable), backward_bytes)


class ReduceToArgs(Args):
    input: TensorRef = read("shape", "the elements")
    result: TensorMut = write("target_shape", "their sums", element="result_element")


class ReduceToPlan(Plan[ReduceToDescriptor, ReduceToArgs]):
    """The sum to a smaller shape that broadcasts to that of the input."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce_to)
    cases = ReduceToCases(ReduceToDescriptor)
    kernels = kernels("reduce_to", FLOATS, (RANK,), reduce_to_bytes)
