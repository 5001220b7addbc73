"""The ops in NumPy float64, sharing nothing with any kernel or formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baracuda_kernels.core.element import ElementKind

__all__ = ["backward", "forward", "value"]


def forward(descriptor: Any, **operands: Any) -> Any:
    """The result of the op that a descriptor asks for."""
    row, element = descriptor.row, descriptor.element
    if element.is_complex:
        from baracuda_kernels.ops.elementwise.reference_complex import value_of_complex

        return value_of_complex(row.name, _operands(descriptor, operands), descriptor.row_numbers, descriptor.result_element)
    return value(row.name, element, _operands(descriptor, operands), descriptor.row_numbers, row.result)


def backward(descriptor: Any, d_result: Any, **operands: Any) -> Any:
    """The gradients of the operands from that of the result."""
    import numpy

    from baracuda_kernels.ops.elementwise.reference_complex import gradients_of_complex
    from baracuda_kernels.ops.elementwise.reference_gradients import GRADIENTS

    with numpy.errstate(all="ignore"):
        of = gradients_of_complex(descriptor.row.name) if descriptor.element.is_complex else GRADIENTS[descriptor.row.name]
        found = of(d_result, *_operands(descriptor, operands), *descriptor.row_numbers)
    wanted = tuple(gradient for gradient, number in zip(found, descriptor.values, strict=True) if number is None)
    return wanted[0] if len(wanted) == 1 else wanted


def _operands(descriptor: Any, given: Mapping[str, Any]) -> list[Any]:
    """All of them in order, those that are numbers too."""
    import numpy

    kind: Any = numpy.float64 if descriptor.element.is_float else complex if descriptor.element.is_complex else numpy.int64
    numbers = zip(descriptor.OPERANDS, descriptor.values, descriptor.elements, strict=True)
    return [
        numpy.full(descriptor.shape, number, kind)
        if number is not None
        else given[name]
        if own is descriptor.element
        else numpy.asarray(given[name], kind)
        for name, number, own in numbers
    ]


def value(
    name: str, element: ElementKind, operands: Sequence[Any], parameters: Sequence[float] = (), result: ElementKind | None = None
) -> Any:
    """The result of an op on operands of that element, in float64 or int64. Integers wrap around in it, or in `result`."""
    import numpy

    from baracuda_kernels.core.encoding import rounded
    from baracuda_kernels.ops.elementwise.reference_values import BY_ELEMENT, REFERENCES

    target = element if result is None else result
    if element is ElementKind.BOOL:
        operands = [numpy.asarray(operand, dtype=bool) for operand in operands]
    if element is ElementKind.U64:  # which int64 does not hold
        operands = [numpy.asarray(operand, dtype=numpy.uint64) for operand in operands]
    with numpy.errstate(all="ignore"):
        function = REFERENCES[name]
        found = function(element, *operands, *parameters) if name in BY_ELEMENT else function(*operands, *parameters)
        return numpy.asarray(found, dtype=numpy.float64) if target.is_float else rounded(found, target)
