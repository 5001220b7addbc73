"""A tensor in another element: its numbers (cast), or its bits (bitcast)."""

from __future__ import annotations

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise import reference_cast
from baracuda_kernels.ops.elementwise.cast_cases import CastCases
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor
from baracuda_kernels.ops.elementwise.guarantee import in_its_register
from baracuda_kernels.ops.elementwise.rows import ALL

__all__ = ["CastArgs", "CastPlan"]


class CastArgs(Args):
    input: TensorRef = read("shape", "the operand", broadcasts=True)
    result: TensorMut = write("shape", "the result in the other dtype", element="result_element", may_be=("input",))


class CastPlan(Plan[CastDescriptor, CastArgs]):
    """A tensor in another dtype: its values, rounded once, or its bits."""

    category, op = OpCategory.UNARY_ELEMENTWISE, "kind"
    reference = staticmethod(reference_cast.cast)
    cases = CastCases(CastDescriptor)
    kernels = (
        Kernel("llvm.cast", BackendKind.NUMBA, "llvm:elementwise", in_its_register, ALL, (rank_at_most("shape", 8),)),
        Kernel("triton.cast", BackendKind.TRITON, "triton:elementwise", in_its_register, ALL, (rank_at_most("shape", 8),)),
    )
