"""Reductions of complex numbers, where they are not made as those of real numbers are."""

from __future__ import annotations

import math
from dataclasses import replace

from baracuda_kernels.formula.complex import conj, imag, joined, real
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.powers import pow
from baracuda_kernels.formula.operations import absolute, convert, eq, ne, where
from baracuda_kernels.ops.reduction.formulas import (
    State,
    added,
    added_pairs,
    as_it_is,
    highest,
    larger,
    lowest,
    scaled,
    smaller,
    square_root,
    two_zeros,
    zero,
)
from baracuda_kernels.ops.reduction.moments import at_least_one, free, half_distance, rooted
from baracuda_kernels.ops.reduction.row import CORRECTION, ReduceRow, part, wide

__all__ = ["of_complex"]

SAME = ("sum", "mean", "any", "all", "count_nonzero")  # whose formulas serve complex numbers as they are


def _unit(z: Expr) -> Expr:
    size = absolute(z)
    return where(eq(size, 0), 0, z / size)


def _square(x: Expr, place: Expr, first: Expr) -> Expr:
    return real(x) * real(x) + imag(x) * imag(x)


_L1 = ReduceRow(
    "l1_norm", "", lambda x, place, first: absolute(x), added, zero, as_it_is, computed=wide, converts=True, result=part,
    gradient=lambda d, x, y, count: d * _unit(x),
)  # fmt: skip
_L2 = replace(
    _L1, name="l2_norm", term=_square, finish=square_root, gradient=lambda d, x, y, count: where(eq(y, 0), 0, scaled(d, x, y))
)
_LINF = ReduceRow(
    "linf_norm", "", lambda x, place, first: absolute(x), larger, lambda element: (lowest(element.part),), as_it_is, needs_elements=True,
    converts=True, computed=wide, result=part, helpers=("ties_of_complex_size", "largest_size"),
    gradient=lambda d, x, y, ties, size, count: where(eq(absolute(x), size), _unit(x) * (d / ties), 0),
)  # fmt: skip


def norm_of(power: float) -> ReduceRow:
    """The norm of that power."""
    special = {1.0: _L1, 2.0: _L2, math.inf: _LINF}
    if power in special:
        return special[power]
    if power == 0:
        term, gradient = lambda x, place, first: convert(ne(x, 0), x.element.part), lambda d, x, y, count: constant(0, x.element)
        return replace(_L1, term=term, gradient=gradient)
    if power == -math.inf:
        return replace(
            _LINF,
            combine=smaller,
            start=lambda element: (highest(element.part),),
            helpers=("ties_of_least_complex_size", "least_size"),
        )

    def slope(d: Expr, x: Expr, y: Expr, count: Expr) -> Expr:
        is_flat = eq(y, 0) | eq(x, 0) if power < 1 else eq(y, 0)
        return where(is_flat, 0, _unit(x) * (d * pow(absolute(x) / y, power - 1.0)))

    return replace(
        _L1,
        term=lambda x, place, first: pow(absolute(x), power),
        finish=lambda total, count: pow(total, 1.0 / power),
        gradient=slope,
    )


def _distances(x: Expr, place: Expr, first: Expr, correction: Expr) -> State:
    re, im = half_distance(real(x), real(first)), half_distance(imag(x), imag(first))
    return joined(re, im), re * re + im * im


def _variance(total: Expr, squares: Expr, count: Expr, correction: Expr) -> Expr:
    among = at_least_one(count)
    rest = squares - (real(total) * (real(total) / among) + imag(total) * (imag(total) / among))
    return where(rest < 0, 0, rest) * 4.0 / free(count, correction)


def _var_gradient(d: Expr, x: Expr, y: Expr, re: Expr, im: Expr, count: Expr, correction: Expr) -> Expr:
    return scaled(d, x - joined(re, im), (count - correction) * 0.5)


def _std_gradient(d: Expr, x: Expr, y: Expr, re: Expr, im: Expr, count: Expr, correction: Expr) -> Expr:
    return where(eq(y, 0), 0, scaled(d, x - joined(re, im), y * (count - correction)))


def _prod_gradient(d: Expr, x: Expr, y: Expr, re: Expr, im: Expr, zeros: Expr, count: Expr) -> Expr:
    others = joined(re, im)
    return where(eq(zeros, 0), d * conj(others / x), where(eq(zeros, 1) & eq(x, 0), d * conj(others), 0))


_VAR = ReduceRow(
    "var", "", _distances, added_pairs, two_zeros, _variance, computed=wide, parameters=(CORRECTION,), result=part,
    gradient=_var_gradient, helpers=("middle_real", "middle_imag"),
)  # fmt: skip


def of_complex(row: ReduceRow) -> ReduceRow | None:
    """The row for complex numbers, if they have it."""
    if row.name in SAME:
        return row
    if row.name == "prod":
        helpers = ("product_of_others_real", "product_of_others_imag", "zeros")
        return replace(row, gradient=_prod_gradient, helpers=helpers)
    if row.name == "vector_norm":
        return replace(row, chosen=norm_of, result=part)
    return {"l1_norm": _L1, "l2_norm": _L2, "linf_norm": _LINF, "var": _VAR, "std": rooted(_VAR, "std", "", _std_gradient)}.get(
        row.name
    )
