"""From a row of the tables to what a kernel computes."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.formula.complex import joined
from baracuda_kernels.formula.derive import expanded, expanded_gradients, gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, input_of, parameter_of, register
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.elementwise.rounding import converted
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["computed_in", "program_of", "slopes_of"]


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
    result_elements = (stored_element or row.result_for(element), *row.more_results(element))
    own_elements = tuple(own for own, is_there in zip(elements, present, strict=True) if is_there)
    if descriptor.IS_BACKWARD:
        results = slopes_of(row, element, present, elements, result_elements)
        inputs = (*result_elements, *own_elements)
        outputs = tuple(each if each.is_float or each.is_complex else element for each in own_elements)
    else:
        found = row.formula_for(element)(*_operands(row, element, present, elements, 0))
        first, *more = found if isinstance(found, tuple) else (found,)
        if stored_element is not None:
            first = converted(convert(first, register(row.result_for(element))), stored_element)
        results, inputs, outputs = [first, *more], own_elements, result_elements
    stored = [convert(result, register(target)) for result, target in zip(results, outputs, strict=True)]
    numbers_given = len(row.parameters) + (len(present) - len(own_elements)) * (1 + element.is_complex)
    into_operations = expanded_gradients if descriptor.IS_BACKWARD else expanded
    return Program(inputs, outputs, into_operations(stored, all(target in HALVES for target in outputs)), numbers_given)


def slopes_of(
    row: ElementwiseRow,
    element: ElementKind,
    present: tuple[bool, ...],
    elements: tuple[ElementKind, ...] | None = None,
    result_elements: tuple[ElementKind, ...] | None = None,
) -> list[Expr]:
    """The gradient of each operand that is present, of the gradients of the results and these operands, which are in memory in `elements`."""
    result_elements = result_elements or (row.result_for(element), *row.more_results(element))
    computing = computed_in(row, element)
    # The gradients of results come before operands.
    given = _operands(row, element, present, elements or (element,) * len(present), len(result_elements))
    operands, parameters = given[: len(present)], given[len(present) :]
    kinds = (computing if each.is_complex else computing.part for each in result_elements)
    upstream = [convert(input_of(place, each), kind) for place, (each, kind) in enumerate(zip(result_elements, kinds, strict=True))]
    results = _gradients(row, element, upstream, operands, parameters)
    return [gradient for gradient, is_there in zip(results, present, strict=True) if is_there]


def _operands(
    row: ElementwiseRow, element: ElementKind, present: tuple[bool, ...], elements: tuple[ElementKind, ...], first: int
) -> list[Expr]:
    """What a formula is of: operands, and the row's parameters, which come before operands that are numbers."""
    computing, own = computed_in(row, element), len(row.parameters)
    places, numbers = itertools.count(first), itertools.count(own)

    def number() -> Expr:
        if element.is_complex:
            return convert(joined(parameter_of(next(numbers)), parameter_of(next(numbers))), computing)
        # Of a bound that is left out, the least or largest of its element.
        return (converted if row.left_out else convert)(parameter_of(next(numbers)), computing)

    operands = [
        _read(input_of(next(places), each), element, computing) if is_there else number()
        for each, is_there in zip(elements, present, strict=True)
    ]
    # A negative factor of unsigned integers wraps as they do.
    through = ElementKind.I64 if LIMITS.get(computing, (-1,))[0] == 0 else ElementKind.F64
    return [*operands, *(convert(convert(parameter_of(place), through), computing.part) for place in range(own))]


def _read(value: Expr, element: ElementKind, computing: ElementKind) -> Expr:
    """An operand as it is computed with: in the problem's element first, whatever it is in memory."""
    return convert(convert(value, register(element)), computing)


def _gradients(
    row: ElementwiseRow, element: ElementKind, upstream: Sequence[Expr], operands: Sequence[Expr], parameters: Sequence[Expr]
) -> list[Expr]:
    """Those of each operand; with several results, their sums."""
    gradient = row.gradient_for(element)
    if gradient is None:
        results = row.formula_for(element)(*operands, *parameters)
        results = results if isinstance(results, tuple) else (results,)
        every = [gradients(result, operands, d) for result, d in zip(results, upstream, strict=True)]
        return [functools.reduce(operator.add, each) for each in zip(*every, strict=True)]
    found = gradient(*upstream, *operands, *parameters)
    return list(found) if isinstance(found, tuple) else [found]
