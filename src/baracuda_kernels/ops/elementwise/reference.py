"""The ops in NumPy float64, sharing nothing with any kernel or formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baracuda_kernels.core.element import ElementKind

__all__ = ["backward", "forward", "value"]


def forward(descriptor: Any, **operands: Any) -> Any:
    """The result of the op that a descriptor asks for."""
    row, element = descriptor.row, descriptor.element
    return value(row.name, element, _operands(descriptor, operands), descriptor.row_numbers, row.result)


def backward(descriptor: Any, d_result: Any, **operands: Any) -> Any:
    """The gradients of the operands from that of the result."""
    import numpy

    from baracuda_kernels.ops.elementwise.reference_gradients import GRADIENTS

    with numpy.errstate(all="ignore"):
        found = GRADIENTS[descriptor.row.name](d_result, *_operands(descriptor, operands), *descriptor.row_numbers)
    wanted = tuple(gradient for gradient, number in zip(found, descriptor.values, strict=True) if number is None)
    return wanted[0] if len(wanted) == 1 else wanted


def _operands(descriptor: Any, given: Mapping[str, Any]) -> list[Any]:
    """All of them in order, those that are numbers too."""
    import numpy

    kind = numpy.float64 if descriptor.element.is_float else numpy.int64
    return [
        given[name] if number is None else numpy.full(descriptor.shape, number, kind)
        for name, number in zip(descriptor.OPERANDS, descriptor.values, strict=True)
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
    with numpy.errstate(all="ignore"):
        function = REFERENCES[name]
        found = function(element, *operands, *parameters) if name in BY_ELEMENT else function(*operands, *parameters)
        return numpy.asarray(found, dtype=numpy.float64) if target.is_float else rounded(found, target)
