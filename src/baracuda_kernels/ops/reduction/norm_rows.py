"""Norms of any power."""

from __future__ import annotations

import math
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.powers import pow
from baracuda_kernels.formula.operations import absolute, convert, eq, ne, where
from baracuda_kernels.ops.elementwise.rows import Parameter
from baracuda_kernels.ops.reduction.formulas import (
    added,
    as_it_is,
    highest,
    larger,
    lowest,
    scaled,
    sign,
    signed,
    smaller,
    square_root,
    zero,
)
from baracuda_kernels.ops.reduction.row import ReduceRow, wide

__all__ = ["ROWS", "norm_of"]

ORDER = Parameter("ord", 2.0, "the power of the norm: any number, inf and -inf")

_L1 = ReduceRow(
    "l1_norm", "The sum of absolute values.",
    lambda x, place, first: absolute(x), added, zero, as_it_is, computed=wide, converts=True,
    gradient=lambda d, x, y, count: d * sign(x),
)  # fmt: skip
_L2 = ReduceRow(
    "l2_norm", "The square root of the sum of squares.",
    lambda x, place, first: x * x, added, zero, square_root, computed=wide, converts=True,
    gradient=lambda d, x, y, count: where(eq(y, 0), 0, scaled(d, x, y)),
)  # fmt: skip
_LINF = ReduceRow(
    "linf_norm", "The largest absolute value.",
    lambda x, place, first: absolute(x), larger, lambda element: (lowest(element),), as_it_is, needs_elements=True, converts=True,
    gradient=lambda d, x, y, ties, count: where(eq(absolute(x), y), signed(d / ties, x), 0), helpers=("ties_of_size",),
)  # fmt: skip
_ANY = ReduceRow(
    "vector_norm", "The p-norm: (Σ|x|^p)^(1/p), with p = ord.",
    lambda *given: given[0], added, zero, as_it_is, computed=wide, converts=True, parameters=(ORDER,), chosen=lambda power: norm_of(power),
    gradient=lambda *given: given[0],
)  # fmt: skip
ROWS = (_L1, _L2, _LINF, _ANY)


def norm_of(power: float) -> ReduceRow:
    """The norm of that power, with a formula of its own where there is a simpler one."""
    special = {1.0: _L1, 2.0: _L2, math.inf: _LINF}
    if power in special:
        return special[power]
    if power == 0:
        term, gradient = lambda x, place, first: convert(ne(x, 0), x.element), lambda d, x, y, count: constant(0, x.element)
        return replace(_L1, term=term, gradient=gradient)
    if power == -math.inf:
        return replace(_LINF, combine=smaller, start=lambda element: (highest(element),), helpers=("ties_of_least_size",))

    def slope(d: Expr, x: Expr, y: Expr, count: Expr) -> Expr:
        is_flat = eq(y, 0) | eq(x, 0) if power < 1 else eq(y, 0)
        return where(is_flat, 0, d * sign(x) * pow(absolute(x) / y, power - 1.0))

    return replace(
        _L1,
        term=lambda x, place, first: pow(absolute(x), power),
        finish=lambda total, count: pow(total, 1.0 / power),
        gradient=slope,
    )
