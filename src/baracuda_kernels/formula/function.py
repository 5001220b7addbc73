"""Functions of formulas: each knows its derivative, and what operations it comes to.

A function is one node of a formula until a kernel is made of it, so that derivatives are taken of it and not of its polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from baracuda_kernels.formula.complex import is_complex, whole_of
from baracuda_kernels.formula.expression import Expr, Number, make, number_beside

__all__ = ["COMPLEX", "FUNCTIONS", "ROUGH", "ComplexFunction", "ScalarFunction", "function", "no_derivative"]


@dataclass(frozen=True)
class ScalarFunction:
    """`expansion` takes and gives expressions, of f32 or f64. `gradient` takes the gradient of the result, the result and the operands, and
    gives that of each operand; None where there is none."""

    name: str
    expansion: Callable[..., Expr]
    gradient: Callable[..., Any]
    arity: int

    def __call__(self, *args: Expr | Number) -> Expr:
        from baracuda_kernels.formula.operations import convert

        like = next(arg for arg in args if isinstance(arg, Expr))
        operands = tuple(arg if isinstance(arg, Expr) else number_beside(arg, like) for arg in args)
        if like.element.is_complex or any(is_complex(arg) for arg in operands):  # beside complex numbers, real ones are such
            operands = tuple(convert(arg, whole_of(arg.element.part)) for arg in operands)
            like = operands[0]
        known = like.element.is_float or (like.element.is_complex and self.name in COMPLEX)
        if len(args) != self.arity or not known or any(each.element is not like.element for each in operands):
            raise TypeError(f"{self.name}: got {args}, wanted {self.arity} floats of one dtype")
        return make(self.name, like.element, operands)

    def of_complex(self, gradient: Callable[..., Any] | None = None) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
        """Declares what it comes to of complex numbers, made of their parts. Its derivative is the one it has, unless it has a gradient
        of its own here, in which conjugates are taken."""

        def declare(expansion: Callable[..., Expr]) -> Callable[..., Expr]:
            COMPLEX[self.name] = ComplexFunction(expansion, gradient)
            return expansion

        return declare

    def roughly(self, expansion: Callable[..., Expr]) -> Callable[..., Expr]:
        """Declares what it comes to in f32 where results are rounded to 16-bit floats anyway: cheaper, and off by 2^-15 of the result at most."""
        ROUGH[self.name] = expansion
        return expansion


class ComplexFunction(NamedTuple):
    """A function of complex numbers: what it comes to, and its gradient where the derivative of the real function is not the same formula."""

    expansion: Callable[..., Expr]
    gradient: Callable[..., Any] | None


FUNCTIONS: dict[str, ScalarFunction] = {}
ROUGH: dict[str, Callable[..., Expr]] = {}
COMPLEX: dict[str, ComplexFunction] = {}


def function(gradient: Callable[..., Any]) -> Callable[[Callable[..., Expr]], ScalarFunction]:
    """Declares a function by what it comes to."""

    def declare(expansion: Callable[..., Expr]) -> ScalarFunction:
        name = expansion.__name__
        made = FUNCTIONS[name] = ScalarFunction(name, expansion, gradient, expansion.__code__.co_argcount)
        made.__dict__["__doc__"] = expansion.__doc__
        return made

    return declare


def no_derivative(d: Expr, y: Expr, *operands: Expr) -> NoReturn:
    """The gradient of what no framework derives, or not twice."""
    raise TypeError(f"{y.operation}: has no derivative here")
