"""What functions that are fitted by polynomials share."""

from __future__ import annotations

from collections.abc import Callable
from math import log as log_of

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.functions.elementary import log, log1p
from baracuda_kernels.formula.functions.pieces import polynomial
from baracuda_kernels.formula.operations import absolute, convert, where

__all__ = ["Coefficients", "Fraction", "Zero", "at_most", "beside_square", "fraction", "in_f64", "log_beside"]

Coefficients = tuple[float, ...]  # that of the lowest power first
Fraction = tuple[Coefficients, Coefficients]  # what is above and what is below
Zero = tuple[float, float]  # of a function, as a sum: with it as a factor the function is right to the last digits beside it


def fraction(x: Expr, fit: Fraction) -> Expr:
    return polynomial(x, fit[0]) / polynomial(x, fit[1])


def at_most(x: Expr, bound: float) -> Expr:
    """The lesser of the two; NaN stays."""
    return where(x > bound, bound, x)


def in_f64(compute: Callable[..., Expr], *args: Expr) -> Expr:
    """The result of a computation that is one in F64, in the element of the operands."""
    return convert(compute(*(convert(arg, ElementKind.F64) for arg in args)), args[0].element)


def _beside(x: Expr, zero: Zero) -> Expr:
    return (x - zero[0]) - zero[1]


def beside_square(size: Expr, zero: Zero) -> Expr:
    """The square of a number that is not negative, less that of a zero."""
    return _beside(size, zero) * (size + zero[0])


def log_beside(x: Expr, zero: Zero) -> Expr:
    """log(x / zero)."""
    beyond = _beside(x, zero)
    return where(absolute(beyond) < zero[0] * 0.25, log1p(beyond * (1 / zero[0])), log(x) - log_of(zero[0]))
