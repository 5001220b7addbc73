"""From a row of the tables to what a kernel computes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, input_of, parameter_of, register
from baracuda_kernels.formula.operations import convert
from baracuda_kernels.ops.elementwise.rows import Row

__all__ = ["computed_in", "program_of"]


def computed_in(row: Row, element: ElementKind) -> ElementKind:
    """What the numbers of a problem are computed in."""
    return ElementKind.F64 if element is ElementKind.F32 and row.wide else register(element)


@functools.lru_cache(maxsize=4096)
def program_of(descriptor: Any, kind: Any, element: ElementKind) -> Program:
    """The program of a problem of one of the tables, by the class of its descriptor."""
    row: Row = descriptor.TABLE[kind.value]
    result_element = element if row.result is None else row.result
    computing = computed_in(row, element)
    arity = len(descriptor.OPERANDS)
    first = 1 if descriptor.IS_BACKWARD else 0  # the gradient of the result comes before the operands
    operands = [convert(input_of(first + place, element), computing) for place in range(arity)]
    parameters = [convert(parameter_of(place), computing) for place in range(len(row.parameters))]
    if descriptor.IS_BACKWARD:
        upstream = convert(input_of(0, result_element), computing)
        results = _gradients(row, element, upstream, operands, parameters)
        inputs, outputs = (result_element, *(element,) * arity), (element,) * arity
    else:
        results = [row.formula_for(element)(*operands, *parameters)]
        inputs, outputs = (element,) * arity, (result_element,)
    stored = [convert(result, register(target)) for result, target in zip(results, outputs, strict=True)]
    return Program(inputs, outputs, expanded(stored, all(target in HALVES for target in outputs)), len(parameters))


def _gradients(row: Row, element: ElementKind, upstream: Expr, operands: Sequence[Expr], parameters: Sequence[Expr]) -> list[Expr]:
    if row.gradient is None:
        return gradients(row.formula_for(element)(*operands, *parameters), operands, upstream)
    found = row.gradient(upstream, *operands, *parameters)
    return list(found) if isinstance(found, tuple) else [found]
