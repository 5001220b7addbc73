"""A function for every row of the tables, and one for its gradients, named after the inventory."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import Dtype, Number, View, beside, broadcast_shape, element_from
from baracuda_kernels.ops.elementwise import elementwise, pairs
from baracuda_kernels.ops.elementwise.cast import CastPlan
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor, CastKind
from baracuda_kernels.ops.elementwise.channel_functions import ByChannel
from baracuda_kernels.ops.elementwise.complex import (
    ComplexBackwardDescriptor,
    ComplexBackwardPlan,
    ComplexDescriptor,
    ComplexKind,
    ComplexPlan,
)
from baracuda_kernels.ops.elementwise.gated_functions import GatedActivation
from baracuda_kernels.ops.elementwise.table_functions import Elementwise, backward, forward
from baracuda_kernels.ops.elementwise.where import WhereBackwardDescriptor, WhereBackwardPlan, WhereDescriptor, WherePlan

__all__: list[str] = []  # what it declares is found by its name

FAMILIES: tuple[tuple[Any, Any, Any], ...] = (
    (elementwise.UnaryPlan, elementwise.UnaryBackwardPlan, Elementwise),
    (elementwise.BinaryPlan, elementwise.BinaryBackwardPlan, Elementwise),
    (elementwise.TernaryPlan, elementwise.TernaryBackwardPlan, Elementwise),
    (elementwise.GatedActivationPlan, elementwise.GatedActivationBackwardPlan, GatedActivation),
)
PAIRS: tuple[tuple[Any, Any], ...] = (
    (pairs.UnaryPairPlan, elementwise.UnaryBackwardPlan),
    (pairs.BinaryPairPlan, elementwise.BinaryBackwardPlan),
)


def _declare_all() -> None:
    for plan, gradients, kind in FAMILIES:
        for row in plan.descriptor_type.TABLE.values():
            globals()[row.name] = forward(row, plan, ByChannel if row.by_channel else kind)
            if row.differentiable:
                globals()[f"{row.name}_backward"] = backward(row, gradients, row.name, "d_result")
    for plan, gradients in PAIRS:
        for row in plan.descriptor_type.TABLE.values():
            globals()[row.name] = forward(row, plan, Elementwise, row.results)
            (part,) = (name for name in row.results if row.parts.get(name))
            alone = gradients.descriptor_type.TABLE[row.parts[part]]
            globals()[f"{row.name}_backward"] = backward(alone, gradients, row.name, f"d_{part}")


_declare_all()


# --- what has a plan of its own ----------------------------------------------------------------------------------------------------


@function(CastPlan, gradient="cast_backward")
def cast(input: View, dtype: Dtype) -> CastDescriptor:
    """The values in another dtype, rounded once; to integers towards zero, saturating, and NaN to 0."""
    return CastDescriptor(input.shape, input.element, element_from("cast", "dtype", dtype))


@function(CastPlan, names={"d_result": "input", "d_input": "result"})
def cast_backward(d_result: View, input_element: Dtype) -> CastDescriptor:
    """The gradient of cast, from that of its result: cast back to the dtype of the operand."""
    return CastDescriptor(d_result.shape, d_result.element, element_from("cast_backward", "input_element", input_element))


@function(WherePlan, gradient="where_backward")
def where(
    condition: View, input: View, other: View, *, input_value: Number | None = None, other_value: Number | None = None
) -> WhereDescriptor:
    """input where the condition holds, else other; one of the two may be a number."""
    operands = {"condition": condition, "input": input, "other": other}
    element, values = beside("where", operands, {"input": input_value, "other": other_value})
    return WhereDescriptor(broadcast_shape("where", operands), element, values["input"], values["other"])


@function(WhereBackwardPlan)
def where_backward(
    condition: View, d_result: View, input_value: Number | None = None, other_value: Number | None = None
) -> WhereBackwardDescriptor:
    """The gradients of where, from that of its result; of a number there is none."""
    shape = broadcast_shape("where_backward", {"condition": condition, "d_result": d_result})
    values: Any = (input_value, other_value)
    return WhereBackwardDescriptor(shape, d_result.element, *values)


@function(CastPlan)
def bitcast(input: View, dtype: Dtype) -> CastDescriptor:
    """The same bits as another dtype of the same size."""
    return CastDescriptor(input.shape, input.element, element_from("bitcast", "dtype", dtype), CastKind.BITCAST)


@function(ComplexPlan, gradient="complex_backward", names={"real": "input", "imag": "other"})
def complex(real: View, imag: View) -> ComplexDescriptor:
    """Complex numbers from their real and imaginary parts, of f32 or f64."""
    return ComplexDescriptor(ComplexKind.COMPLEX, broadcast_shape("complex", {"real": real, "imag": imag}), real.element)


@function(ComplexBackwardPlan, names={"d_real": "d_input", "d_imag": "d_other"})
def complex_backward(d_result: View) -> ComplexBackwardDescriptor:
    """The gradients of complex, from that of its result: its parts."""
    return ComplexBackwardDescriptor(ComplexKind.COMPLEX, d_result.shape, d_result.element.part)


@function(ComplexPlan, gradient="polar_backward", names={"abs": "input", "angle": "other"})
def polar(abs: View, angle: View) -> ComplexDescriptor:
    """Complex numbers from their absolute value and angle, of f32 or f64."""
    return ComplexDescriptor(ComplexKind.POLAR, broadcast_shape("polar", {"abs": abs, "angle": angle}), abs.element)


@function(ComplexBackwardPlan, names={"abs": "input", "angle": "other", "d_abs": "d_input", "d_angle": "d_other"})
def polar_backward(d_result: View, abs: View, angle: View) -> ComplexBackwardDescriptor:
    """The gradients of polar, from that of its result."""
    shape = broadcast_shape("polar_backward", {"d_result": d_result, "abs": abs, "angle": angle})
    return ComplexBackwardDescriptor(ComplexKind.POLAR, shape, d_result.element.part)
