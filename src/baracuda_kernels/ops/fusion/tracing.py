"""From a function of expressions to what a fused descriptor holds: a program, and the numbers that it is launched with."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

from baracuda_kernels.core.descriptor import Numbers
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.formula.derive import expanded, expanded_gradients, gradients, has_reciprocal
from baracuda_kernels.formula.expression import HALVES, Expr, Program, Traced, input_of, parameter_of, rebuilt, register, untraced
from baracuda_kernels.formula.operations import convert

__all__ = ["Trace", "backward_problem", "forward_problem", "slopes_of"]

MOST_TEXTS = 1024  # kept of each direction


@dataclass(frozen=True)
class Trace:
    """What a function of expressions computes of operands of an element, whatever the numbers that stand in it."""

    element: ElementKind
    computing: ElementKind
    operands: int
    numbers: int
    result: Expr

    @classmethod
    def of(cls, formula: Any, operands: int, element: ElementKind, wide: bool = False) -> tuple[Trace, Numbers]:
        """The trace of a formula, and its numbers. If `wide`, f32 is computed in f64."""
        computing = ElementKind.F64 if wide and element is ElementKind.F32 else register(element)
        numbers: list[float] = []
        result = formula(*(Traced(convert(input_of(place, element), computing), numbers) for place in range(operands)))
        if not isinstance(result, Expr):
            raise TypeError(f"a fused function must give an expression of its operands, got {result!r}")
        return cls(element, computing, operands, len(numbers), untraced(result)), tuple(numbers)

    @property
    def target(self) -> ElementKind:
        """The dtype of the result."""
        return self.element if self.result.element.is_float else self.result.element

    def text(self) -> str:
        """The formula as text, which identifies it."""
        return Program((self.element,) * self.operands, (self.target,), (self.result,), self.numbers).text()


def forward_problem(trace: Trace, numbers: Numbers) -> tuple[str, Numbers]:
    """The formula of a descriptor and its numbers."""
    return _forward_text(trace), numbers


def backward_problem(trace: Trace, numbers: Numbers) -> tuple[str, Numbers]:
    """The formula of all gradients and its numbers; for 16-bit floats the reciprocals of the numbers follow them."""
    if trace.element not in HALVES:
        return _backward_text(trace, ()), numbers
    invertible = tuple(map(has_reciprocal, numbers))
    reciprocals = [1 / number if is_invertible else 0.0 for number, is_invertible in zip(numbers, invertible, strict=True)]
    return _backward_text(trace, invertible), (*numbers, *reciprocals)


@remembered(MOST_TEXTS)
def _forward_text(trace: Trace) -> str:
    results = expanded([convert(trace.result, register(trace.target))], trace.target in HALVES)
    return Program((trace.element,) * trace.operands, (trace.target,), results, trace.numbers).text()


def slopes_of(trace: Trace) -> list[Trace]:
    """The gradient of each operand, of the gradient of the result and the operands."""
    behind = [input_of(place, trace.element) for place in range(trace.operands + 1)]
    upstream, *inputs = (convert(each, trace.computing) for each in behind)
    result = rebuilt(trace.result, dict(itertools.pairwise(behind)))
    return [replace(trace, operands=len(behind), result=slope) for slope in gradients(result, inputs, upstream)]


@remembered(MOST_TEXTS)
def _backward_text(trace: Trace, invertible: tuple[bool, ...]) -> str:
    element, count = trace.element, trace.operands
    stored = [convert(slope.result, register(element)) for slope in slopes_of(trace)]
    reciprocals = {
        _number(place): _number(trace.numbers + place) for place, is_invertible in enumerate(invertible) if is_invertible
    }
    results = expanded_gradients(stored, element in HALVES, reciprocals)
    return Program((element,) * (count + 1), (element,) * count, results, trace.numbers + len(invertible)).text()


def _number(place: int) -> Expr:
    """A number as it stands beside those that 16-bit floats are computed in."""
    return convert(parameter_of(place), ElementKind.F32)
