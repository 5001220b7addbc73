"""Functions of formulas: each knows its derivative, and what operations it comes to.

A function is one node of a formula until a kernel is made of it, so that derivatives are taken of it and not of its polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.formula.expression import Expr, Number, make, number_beside

__all__ = ["FUNCTIONS", "ROUGH", "ScalarFunction", "function"]


@dataclass(frozen=True)
class ScalarFunction:
    """`expansion` takes and gives expressions, of f32 or f64. `gradient` takes the gradient of the result, the result and the operands, and
    gives that of each operand; None where there is none."""

    name: str
    expansion: Callable[..., Expr]
    gradient: Callable[..., Any]
    arity: int

    def __call__(self, *args: Expr | Number) -> Expr:
        like = next(arg for arg in args if isinstance(arg, Expr))
        operands = tuple(arg if isinstance(arg, Expr) else number_beside(arg, like) for arg in args)
        if len(args) != self.arity or not like.element.is_float or any(each.element is not like.element for each in operands):
            raise TypeError(f"{self.name}: got {args}, wanted {self.arity} floats of one dtype")
        return make(self.name, like.element, operands)

    def roughly(self, expansion: Callable[..., Expr]) -> Callable[..., Expr]:
        """Declares what it comes to in f32 where results are rounded to 16-bit floats anyway: cheaper, and off by 2^-15 of the result at most."""
        ROUGH[self.name] = expansion
        return expansion


FUNCTIONS: dict[str, ScalarFunction] = {}
ROUGH: dict[str, Callable[..., Expr]] = {}


def function(gradient: Callable[..., Any]) -> Callable[[Callable[..., Expr]], ScalarFunction]:
    """Declares a function by what it comes to."""

    def declare(expansion: Callable[..., Expr]) -> ScalarFunction:
        name = expansion.__name__
        made = FUNCTIONS[name] = ScalarFunction(name, expansion, gradient, expansion.__code__.co_argcount)
        made.__dict__["__doc__"] = expansion.__doc__
        return made

    return declare
