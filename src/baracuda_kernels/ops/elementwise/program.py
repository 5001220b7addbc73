"""From a row of the tables to what a kernel computes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.complex import joined
from baracuda_kernels.formula.derive import expanded, expanded_gradients, gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, input_of, parameter_of, register
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["computed_in", "program_of"]


def computed_in(row: ElementwiseRow, element: ElementKind) -> ElementKind:
    """What the numbers of a problem are computed in."""
    if element is ElementKind.C64 and row.of_complex is not None and row.of_complex.wide:
        return ElementKind.C128
    return ElementKind.F64 if element is ElementKind.F32 and row.wide else register(element)


@functools.lru_cache(maxsize=4096)
def program_of(
    descriptor: Any,
    kind: Any,
    element: ElementKind,
    present: tuple[bool, ...],
    elements: tuple[ElementKind, ...],
    stored_element: ElementKind | None = None,
) -> Program:
    """The program of a problem of one of the tables, by the class of its descriptor. Operands that are not present are numbers; the others
    are in memory in `elements`, and are converted to `element` as they are read."""
    row: ElementwiseRow = descriptor.TABLE[kind.value]
    result_element = stored_element or row.result_for(element)
    computing = computed_in(row, element)
    own_elements = tuple(own for own, is_there in zip(elements, present, strict=True) if is_there)
    first = 1 if descriptor.IS_BACKWARD else 0  # the gradient of the result comes before the operands
    own = len(row.parameters)
    places, numbers = itertools.count(first), itertools.count(own)

    def number() -> Expr:
        if element.is_complex:
            return convert(joined(parameter_of(next(numbers)), parameter_of(next(numbers))), computing)
        # Of a bound that is left out, the least or largest of its element.
        return (converted if row.left_out else convert)(parameter_of(next(numbers)), computing)

    operands = [
        _read(input_of(next(places), own), element, computing) if is_there else number()
        for own, is_there in zip(elements, present, strict=True)
    ]
    parameters = [convert(parameter_of(place), computing.part) for place in range(own)]
    if descriptor.IS_BACKWARD:
        upstream = convert(input_of(0, result_element), computing if result_element.is_complex else computing.part)
        results = _gradients(row, element, upstream, operands, parameters)
        results = [gradient for gradient, is_there in zip(results, present, strict=True) if is_there]
        inputs = (result_element, *own_elements)
        outputs = tuple(each if each.is_float or each.is_complex else element for each in own_elements)
    else:
        found = row.formula_for(element)(*operands, *parameters)
        first, *more = found if isinstance(found, tuple) else (found,)
        results = [
            first if stored_element is None else converted(convert(first, register(row.result_for(element))), stored_element),
            *more,
        ]
        inputs, outputs = own_elements, (result_element, *row.more_results(element))
    stored = [convert(result, register(target)) for result, target in zip(results, outputs, strict=True)]
    numbers_given = own + (len(present) - len(own_elements)) * (1 + element.is_complex)
    into_operations = expanded_gradients if descriptor.IS_BACKWARD else expanded
    return Program(inputs, outputs, into_operations(stored, all(target in HALVES for target in outputs)), numbers_given)


def _read(value: Expr, element: ElementKind, computing: ElementKind) -> Expr:
    """An operand as it is computed with: in the problem's element first, whatever it is in memory."""
    return convert(convert(value, register(element)), computing)


def _gradients(
    row: ElementwiseRow, element: ElementKind, upstream: Expr, operands: Sequence[Expr], parameters: Sequence[Expr]
) -> list[Expr]:
    gradient = row.gradient_for(element)
    if gradient is None:
        return gradients(row.formula_for(element)(*operands, *parameters), operands, upstream)
    found = gradient(upstream, *operands, *parameters)
    return list(found) if isinstance(found, tuple) else [found]
