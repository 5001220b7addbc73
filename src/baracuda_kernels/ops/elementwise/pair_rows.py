"""Ops with two results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.operations import absolute, convert, eq, trunc, where
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY, floor_quotient, floor_remainder, with_sign_of
from baracuda_kernels.ops.elementwise.formats import mantissa_and_exponent
from baracuda_kernels.ops.elementwise.rows import NUMBERS, ElementwiseRow

__all__ = ["BINARY_PAIRS", "UNARY_PAIRS", "PairRow"]


@dataclass(frozen=True)
class PairRow(ElementwiseRow):
    """An op with two results, of which `formula` gives both. One of them has a gradient."""

    second: ElementKind | None = None  # the element of the second result; by default that of the operands
    results: tuple[str, str] = ("first", "second")  # what the function calls them
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)  # which result has a gradient, and which op alone gives it

    def more_results(self, element: ElementKind) -> tuple[ElementKind, ...]:
        return (element if self.second is None else self.second,)


def _modf(x: Expr) -> tuple[Expr, Expr]:
    whole = trunc(x)
    left = where(eq(absolute(x), INFINITY), 0, x - whole)
    return with_sign_of(left, x), with_sign_of(whole, x)


def _frexp(x: Expr) -> tuple[Expr, Expr]:
    mantissa, exponent = mantissa_and_exponent(x)
    return mantissa, convert(exponent, ElementKind.I32)


UNARY_PAIRS = {
    row.name: row
    for row in (
        PairRow("modf", _modf, "The fractional and the integral part, both with the sign of x; of an infinity 0 and itself.",
                results=("fractional", "integral"), parts={"fractional": "frac"}),
        PairRow("frexp", _frexp,
                "The mantissa, from 0.5 to 1 with the sign of x, and the exponent, an i32: x = mantissa · 2^exponent. Zeros, "
                "infinities and NaN are their own mantissa, with exponent 0.",
                second=ElementKind.I32, results=("mantissa", "exponent"), parts={"mantissa": "mantissa"}),
    )
}  # fmt: skip
BINARY_PAIRS = {
    row.name: row
    for row in (
        PairRow("divmod", lambda x, y: (floor_quotient(x, y), floor_remainder(x, y)),
                "floor_divide and remainder at once; both 0 for integers divided by 0.", NUMBERS, domain=((-20.0, 20.0), (0.5, 4.0)),
                results=("quotient", "remainder"), parts={"remainder": "remainder"}),
    )
}  # fmt: skip
