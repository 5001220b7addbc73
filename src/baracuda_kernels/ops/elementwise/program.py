"""From a row of the tables to what a kernel computes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.formula.derive import expanded, expanded_gradients, gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, input_of, parameter_of, register
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["computed_in", "program_of", "slopes_of"]


def computed_in(row: ElementwiseRow, element: ElementKind) -> ElementKind:
    """What the numbers of a problem are computed in."""
    return ElementKind.F64 if element is ElementKind.F32 and row.wide else register(element)


@functools.lru_cache(maxsize=4096)
def program_of(descriptor: Any, kind: Any, element: ElementKind, present: tuple[bool, ...]) -> Program:
    """The program of a problem of one of the tables, by the class of its descriptor. Operands that are not present are numbers."""
    row: ElementwiseRow = descriptor.TABLE[kind.value]
    result_element = element if row.result is None else row.result
    tensors = sum(present)
    if descriptor.IS_BACKWARD:
        results = slopes_of(row, element, present)
        inputs, outputs = (result_element, *(element,) * tensors), (element,) * tensors
    else:
        found = row.formula_for(element)(*_operands(row, element, present, 0))
        results = list(found) if isinstance(found, tuple) else [found]
        inputs, outputs = (element,) * tensors, (result_element, *row.more_results(element))
    stored = [convert(result, register(target)) for result, target in zip(results, outputs, strict=True)]
    numbers_given = len(row.parameters) + len(present) - tensors
    into_operations = expanded_gradients if descriptor.IS_BACKWARD else expanded
    return Program(inputs, outputs, into_operations(stored, all(target in HALVES for target in outputs)), numbers_given)


def slopes_of(row: ElementwiseRow, element: ElementKind, present: tuple[bool, ...]) -> list[Expr]:
    """The gradient of each operand that is present, of the gradient of the result and these operands."""
    given = _operands(row, element, present, 1)  # the gradient of the result comes before them
    operands, parameters = given[: len(present)], given[len(present) :]
    upstream = convert(input_of(0, element if row.result is None else row.result), computed_in(row, element))
    results = _gradients(row, element, upstream, operands, parameters)
    return [gradient for gradient, is_there in zip(results, present, strict=True) if is_there]


def _operands(row: ElementwiseRow, element: ElementKind, present: tuple[bool, ...], first: int) -> list[Expr]:
    """What a formula is of: operands, and the row's parameters, which come before operands that are numbers."""
    computing, own = computed_in(row, element), len(row.parameters)
    places, numbers = itertools.count(first), itertools.count(own)
    number = converted if row.left_out else convert  # of a bound that is left out, the least or largest of its element
    operands = [
        convert(input_of(next(places), element), computing) if is_there else number(parameter_of(next(numbers)), computing)
        for is_there in present
    ]
    # A negative factor of unsigned integers wraps as they do.
    through = ElementKind.I64 if LIMITS.get(computing, (-1,))[0] == 0 else ElementKind.F64
    return [*operands, *(convert(convert(parameter_of(place), through), computing) for place in range(own))]


def _gradients(
    row: ElementwiseRow, element: ElementKind, upstream: Expr, operands: Sequence[Expr], parameters: Sequence[Expr]
) -> list[Expr]:
    if row.gradient is None:
        return gradients(row.formula_for(element)(*operands, *parameters), operands, upstream)
    found = row.gradient(upstream, *operands, *parameters)
    return list(found) if isinstance(found, tuple) else [found]
