"""Integrals up to every point, and their gradients, as one scan: of what each place and the one next to it make."""

from __future__ import annotations

from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.expression import Expr, input_of, parameter_of, rebuilt, register
from baracuda_kernels.formula.operations import convert, eq, where
from baracuda_kernels.ops.calculus.runs import Formula, Reader
from baracuda_kernels.ops.scan.rows import ScanFormulas, running_sum

__all__ = ["Running", "gradient_formulas", "running_formulas"]

F64, I64 = ElementKind.F64, ElementKind.I64


class Running(NamedTuple):
    """A scan of a tensor of `shape` along `axis`. Every operand is read at each place and `next_to` it, 1 or -1; beyond its own bound it is 0."""

    formulas: ScanFormulas  # whose inputs are the numbers at a place and next to it, of one operand after the other
    shape: Shape
    axis: int
    operands: tuple[int, ...]  # by their places among the args
    bounds: tuple[int, ...]
    output: int
    next_to: int
    is_back: bool

    @property
    def is_inside(self) -> bool:
        """Whether nothing beyond a bound is read."""
        return self.next_to > 0 and all(bound > self.shape[self.axis] for bound in self.bounds)


def running_formulas(area: Formula, operands: tuple[int, ...], element: ElementKind, numbers: int) -> ScanFormulas:
    """The sums of areas, which are of operands at a place and the next."""
    read = Reader(0, element, ())
    for operand in operands:
        read(operand, 0)
        read(operand, 1)
    inputs = (element,) * len(read.inputs)
    term = rebuilt(area(read, 0), {parameter_of(place): input_of(len(inputs) + place, F64) for place in range(numbers)})
    total = summed_in(element)
    return running_sum(inputs, numbers, total, term, input_of(0, total), element)


def gradient_formulas(element: ElementKind) -> ScanFormulas:
    """That of an integrand with steps of dx: half of dx times the gradients of the areas on both sides. Those are sums of d from the last
    one back, so that the one before is the same and one d more."""
    total = summed_in(element)
    area, d_before, dx, place = (input_of(at, each) for at, each in ((0, total), (2, element), (3, F64), (4, I64)))
    both: Expr = where(eq(place, 0), area, area + (area + convert(d_before, total)))
    value = both * (convert(dx, total) * 0.5)
    return running_sum((element, element), 1, total, convert(input_of(0, element), total), value, element)


def summed_in(element: ElementKind) -> ElementKind:
    """Sums of f32 in f64, as all running ones."""
    return F64 if element is ElementKind.F32 else register(element)
