"""What functions that are fitted by polynomials share."""

from __future__ import annotations

from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions.pieces import polynomial
from baracuda_kernels.formula.operations import convert, where

__all__ = ["Coefficients", "Fraction", "at_most", "fraction", "in_f64"]

Coefficients = tuple[float, ...]  # that of the lowest power first
Fraction = tuple[Coefficients, Coefficients]  # what is above and what is below


def fraction(x: Expr, fit: Fraction) -> Expr:
    return polynomial(x, fit[0]) / polynomial(x, fit[1])


def at_most(x: Expr, bound: float) -> Expr:
    """The lesser of the two; NaN stays."""
    return where(x > bound, bound, x)


def in_f64(compute: Callable[..., Expr], *args: Expr) -> Expr:
    """The result of a computation that is one in F64, in the element of the operands."""
    return convert(compute(*(convert(arg, ElementKind.F64) for arg in args)), args[0].element)
