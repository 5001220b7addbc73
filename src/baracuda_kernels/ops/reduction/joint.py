"""Reductions of two operands in one pass over both, and their gradients."""

from __future__ import annotations

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.rows import ALL
from baracuda_kernels.ops.reduction import joint_reference
from baracuda_kernels.ops.reduction.descriptor import ReduceJointBackwardDescriptor, ReduceJointDescriptor
from baracuda_kernels.ops.reduction.geometry import backward_bytes, reduce_bytes
from baracuda_kernels.ops.reduction.joint_cases import ReduceJointBackwardCases, ReduceJointCases
from baracuda_kernels.ops.reduction.reduction import RANK, element_makes_sense, is_differentiable, kernels

__all__ = ["ReduceJointArgs", "ReduceJointBackwardArgs", "ReduceJointBackwardPlan", "ReduceJointPlan"]


class ReduceJointArgs(Args):
    input: TensorRef = read("shape", "the elements", broadcasts=True)
    other: TensorRef = read("shape", "the second operand", broadcasts=True)
    result: TensorMut = write("result_shape", "the result", element="result_element")


class ReduceJointPlan(Plan[ReduceJointDescriptor, ReduceJointArgs]):
    """A reduction of two operands."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(joint_reference.reduce_joint)
    cases = ReduceJointCases()
    kernels = kernels("reduce_joint", ALL, (RANK, element_makes_sense), reduce_bytes)


class ReduceJointBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result")
    input: TensorRef = read("shape", "the elements", broadcasts=True)
    other: TensorRef = read("shape", "the second operand", broadcasts=True)
    result: TensorRef = read("result_shape", "the saved result")
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("input",))
    d_other: TensorMut = write("shape", "the gradient of the second operand", may_be=("other",))


class ReduceJointBackwardPlan(Plan[ReduceJointBackwardDescriptor, ReduceJointBackwardArgs]):
    """The gradient of a reduction of two operands."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(joint_reference.reduce_joint_backward)
    cases = ReduceJointBackwardCases()
    kernels = kernels("reduce_joint_backward", FLOATS, (RANK, is_differentiable), backward_bytes)
