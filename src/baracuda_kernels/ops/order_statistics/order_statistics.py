"""Order statistics: the median, the mode and quantiles along any axes, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, at_most, exact_order
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.elementwise.rows import NUMBERS
from baracuda_kernels.ops.order_statistics import reference, tiles
from baracuda_kernels.ops.order_statistics.cases import OrderBackwardCases, OrderCases, QuantileBackwardCases, QuantileCases
from baracuda_kernels.ops.order_statistics.descriptor import (
    OrderBackwardDescriptor,
    OrderDescriptor,
    OrderKind,
    QuantileBackwardDescriptor,
    QuantileDescriptor,
)
from baracuda_kernels.ops.order_statistics.geometry import workspace_bytes
from baracuda_kernels.ops.reduction.reduction import RANK

__all__ = [
    "OrderArgs", "OrderBackwardArgs", "OrderBackwardPlan", "OrderPlan", "QuantileArgs", "QuantileBackwardArgs", "QuantileBackwardPlan",
    "QuantilePlan",
]  # fmt: skip


def as_they_are(descriptor: Any) -> PrecisionGuarantee:
    """Results are elements, and nothing is computed."""
    register = descriptor.element.accumulator
    return PrecisionGuarantee(
        MathPrecision(register.value) if register.is_float else MathPrecision.EXACT, register, True, True, True
    )


def fits_a_program_if_sorted(descriptor: Descriptor) -> Iterator[Reason]:
    """A mode is found in a sorted line, and lines are sorted within one program."""
    assert isinstance(descriptor, OrderDescriptor)
    if descriptor.kind is OrderKind.MODE and descriptor.count > tiles.MOST_SORTED:
        yield Reason(ReasonCode.LIMIT, "count", descriptor.count, f"at most {tiles.MOST_SORTED} elements for a mode")


FEW = at_most("quantiles", tiles.MOST_QUANTILES)


class OrderArgs(Args):
    input: TensorRef = read("shape", "the elements")
    values: TensorMut = write("result_shape", "the chosen elements")
    indices: TensorMut = write("result_shape", "the indices of the chosen elements", element=ElementKind.I64)


class OrderPlan(Plan[OrderDescriptor, OrderArgs]):
    """Median, nanmedian or mode along any axes."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.order)
    cases = OrderCases(OrderDescriptor)
    kernels = (
        Kernel("numba.order", BackendKind.NUMBA, "numba:order", as_they_are, NUMBERS, (RANK,), workspace_bytes),
        Kernel(
            "triton.order",
            BackendKind.TRITON,
            "triton:order",
            as_they_are,
            NUMBERS,
            (RANK, fits_a_program_if_sorted),
            tiles.workspace_bytes,
        ),
    )


class OrderBackwardArgs(Args):
    d_values: TensorRef = read("result_shape", "the gradient of the chosen elements")
    input: TensorRef = read("shape", "the elements, of which only the shape matters")
    indices: TensorRef = read("result_shape", "the indices of the chosen elements", element=ElementKind.I64)
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("input",))


class OrderBackwardPlan(Plan[OrderBackwardDescriptor, OrderBackwardArgs]):
    """The gradient of an order statistic."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.order_backward)
    cases = OrderBackwardCases()
    kernels = (
        Kernel("numba.order_backward", BackendKind.NUMBA, "numba:order_backward", as_they_are, limits=(RANK,)),
        Kernel("triton.order_backward", BackendKind.TRITON, "triton:order_backward", as_they_are, limits=(RANK,)),
    )


class QuantileArgs(Args):
    input: TensorRef = read("shape", "the elements")
    result: TensorMut = write("result_shape", "their quantiles")


class QuantilePlan(Plan[QuantileDescriptor, QuantileArgs]):
    """Quantiles along any axes."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.quantile)
    cases = QuantileCases(QuantileDescriptor)
    kernels = (
        Kernel("numba.quantile", BackendKind.NUMBA, "numba:quantile", exact_order, FLOATS, (RANK,), workspace_bytes),
        Kernel("triton.quantile", BackendKind.TRITON, "triton:quantile", exact_order, FLOATS, (RANK, FEW), tiles.workspace_bytes),
    )


class QuantileBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the quantiles")
    input: TensorRef = read("shape", "the elements")
    d_input: TensorMut = write("shape", "the gradient of the elements")


class QuantileBackwardPlan(Plan[QuantileBackwardDescriptor, QuantileBackwardArgs]):
    """The gradient of quantiles, shared between the neighbouring elements."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.quantile_backward)
    cases = QuantileBackwardCases()
    kernels = (
        Kernel(
            "numba.quantile_backward", BackendKind.NUMBA, "numba:quantile_backward", exact_order, FLOATS, (RANK,), workspace_bytes
        ),
        Kernel(
            "triton.quantile_backward",
            BackendKind.TRITON,
            "triton:quantile_backward",
            exact_order,
            FLOATS,
            (RANK, FEW),
            tiles.workspace_bytes,
        ),
    )
