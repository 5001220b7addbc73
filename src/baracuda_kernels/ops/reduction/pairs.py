"""Reductions with two results of one pass over the input, and their gradients."""

from __future__ import annotations

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.rows import NUMBERS
from baracuda_kernels.ops.reduction import reference
from baracuda_kernels.ops.reduction.cases import ReduceCases, ReduceChoiceBackwardCases, ReducePairBackwardCases
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceChoiceBackwardDescriptor,
    ReducePairBackwardDescriptor,
    ReducePairDescriptor,
    ReducePairKind,
)
from baracuda_kernels.ops.reduction.geometry import backward_bytes, no_bytes, reduce_bytes
from baracuda_kernels.ops.reduction.reduction import RANK, element_makes_sense, is_choice, is_differentiable, kernels

__all__ = [
    "ReduceChoiceBackwardArgs", "ReduceChoiceBackwardPlan", "ReducePairArgs", "ReducePairBackwardArgs", "ReducePairBackwardPlan",
    "ReducePairPlan",
]  # fmt: skip


class ReducePairArgs(Args):
    input: TensorRef = read("shape", "the elements")
    result: TensorMut = write("result_shape", "the result", element="result_element")
    second: TensorMut = write("result_shape", "the second result", element="second_element")


class ReducePairPlan(Plan[ReducePairDescriptor, ReducePairArgs]):
    """A reduction with two results."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce_pair)
    cases = ReduceCases(ReducePairDescriptor, ReducePairKind)
    kernels = kernels("reduce_pair", NUMBERS, (RANK, element_makes_sense), reduce_bytes)


class ReducePairBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result")
    d_second: TensorRef = read("result_shape", "the gradient of the second result")
    input: TensorRef = read("shape", "the elements")
    result: TensorRef = read("result_shape", "the saved result")
    second: TensorRef = read("result_shape", "the saved second result")
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("input",))


class ReducePairBackwardPlan(Plan[ReducePairBackwardDescriptor, ReducePairBackwardArgs]):
    """The gradient of a reduction with two results."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce_pair_backward)
    cases = ReducePairBackwardCases()
    kernels = kernels("reduce_pair_backward", FLOATS, (RANK, is_differentiable), backward_bytes)


class ReduceChoiceBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result")
    input: TensorRef = read("shape", "the elements, of which only the shape matters")
    second: TensorRef = read("result_shape", "the index of the chosen element", element=ElementKind.I64)
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("input",))


class ReduceChoiceBackwardPlan(Plan[ReduceChoiceBackwardDescriptor, ReduceChoiceBackwardArgs]):
    """The gradient of a reduction that returns one of the elements."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.reduce_choice_backward)
    cases = ReduceChoiceBackwardCases()
    kernels = kernels("reduce_choice_backward", FLOATS, (RANK, is_choice), no_bytes)
