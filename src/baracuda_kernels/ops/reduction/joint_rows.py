"""Reductions of two operands in one pass: distances, and whether they are the same."""

from __future__ import annotations

import math
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.operations import absolute, convert, eq, is_nan, ne, sqrt, where
from baracuda_kernels.ops.elementwise.rows import ALL, Parameter
from baracuda_kernels.ops.reduction.formulas import State, added, added_pairs, added_triples, as_it_is, one, scaled, two_zeros, zero
from baracuda_kernels.ops.reduction.helper_rows import HELPERS, helper
from baracuda_kernels.ops.reduction.norm_rows import norm_of
from baracuda_kernels.ops.reduction.row import BOOL, U8, ReduceRow, always, wide

__all__ = ["JOINT"]

POWER = Parameter("p", 2.0, "the power of the norm: any number, inf and -inf")
APART = Parameter("eps", 1e-6, "what is added to every difference")
LEAST = Parameter("eps", 1e-8, "the least that a norm counts as")
RELATIVE = Parameter("rtol", 1e-5, "the distance that is close, as a share of the other's size")
ABSOLUTE = Parameter("atol", 1e-8, "the distance that is close in any case")
NAN_IS_NAN = Parameter("equal_nan", 0.0, "1 where NaN is the same as NaN, else 0")

# Terms take an element, its index, the first element, the other's element and the parameters; gradients are of both elements, and take
# the result's gradient, both elements, the result, helpers, count and parameters.


def _of_difference(row: ReduceRow, shift: float = 0.0) -> ReduceRow:
    """The reduction `row`, applied to the difference of two operands plus `shift`."""

    def difference(x: Expr, other: Expr) -> Expr:
        return x - other + shift if shift else x - other

    def slopes(d: Expr, x: Expr, other: Expr, *rest: Expr) -> State:
        assert row.gradient is not None
        slope = row.gradient(d, difference(x, other), *rest)
        return slope, -slope

    return replace(
        row,
        term=lambda x, place, first, other: row.term(difference(x, other), place, first),
        gradient=slopes,
        helpers=tuple(_of_difference(HELPERS[each] if isinstance(each, str) else each, shift) for each in row.helpers),
        operands=2,
    )


def _lengths(a: Expr, b: Expr, least: Expr) -> State:
    """Two norms from their squares, each at least `least`."""
    lengths = sqrt(a), sqrt(b)
    return tuple(where(length < least, least, length) for length in lengths)


def _cosine(products: Expr, squares: Expr, other_squares: Expr, count: Expr, least: Expr) -> Expr:
    length, other_length = _lengths(squares, other_squares, least)
    return products / (length * other_length)


def _cosine_gradient(
    d: Expr, x: Expr, other: Expr, y: Expr, products: Expr, squares: Expr, other_squares: Expr, count: Expr, least: Expr
) -> State:
    """A norm that counts as the least one does not change with its elements."""
    length, other_length = _lengths(squares, other_squares, least)
    scale = d / (length * other_length)
    along, along_other = (where(each > least * least, products / each, constant(0, x.element)) for each in (squares, other_squares))
    return scale * (other - x * along), scale * (x - other * along_other)


def _is_close(x: Expr, place: Expr, first: Expr, other: Expr, relative: Expr, least: Expr, nan_is_nan: Expr) -> Expr:
    distance = absolute(x - other)
    close = (distance <= least + relative * absolute(other)) & (distance < math.inf)
    same = eq(x, other) | (is_nan(x) & is_nan(other) & ne(nan_is_nan, 0))
    return convert(close | same, U8)


def _average_gradient(d: Expr, x: Expr, weight: Expr, y: Expr, total: Expr, weights: Expr, count: Expr) -> State:
    return scaled(d, weight, weights), scaled(d, x - total / weights, weights)


_ROWS = (
    ReduceRow(
        "dist", "The norm of the difference.",
        lambda *given: given[0], added, zero, as_it_is, computed=wide, parameters=(POWER,), operands=2,
        chosen=lambda power: _of_difference(norm_of(power)), gradient=lambda *given: given[:2],
    ),
    ReduceRow(
        "pairwise_distance", "The norm of the difference, to every element of which eps is added.",
        lambda *given: given[0], added, zero, as_it_is, computed=wide, parameters=(POWER, APART), operands=2,
        chosen=lambda power, eps: _of_difference(norm_of(power), eps), gradient=lambda *given: given[:2],
    ),
    ReduceRow(
        "cosine_similarity", "The cosine of the angle between two vectors.",
        lambda x, place, first, other, least: (x * other, x * x, other * other), added_triples, lambda element: (0, 0, 0), _cosine,
        computed=wide, parameters=(LEAST,), operands=2, gradient=_cosine_gradient,
        helpers=(
            helper("products", lambda x, place, first, other: x * other, added, zero, as_it_is, 2),
            helper("squares", lambda x, place, first, other: x * x, added, zero, as_it_is, 2),
            helper("other_squares", lambda x, place, first, other: other * other, added, zero, as_it_is, 2),
        ),
    ),
    ReduceRow(
        "average", "The weighted mean.",
        lambda x, place, first, weight: (x * weight, weight), added_pairs, two_zeros, lambda total, weights, count: total / weights,
        computed=wide, operands=2, gradient=_average_gradient,
        helpers=(
            helper("weighted", lambda x, place, first, weight: x * weight, added, zero, as_it_is, 2),
            helper("weights", lambda x, place, first, weight: weight, added, zero, as_it_is, 2),
        ),
    ),
    ReduceRow(
        "allclose", "Whether all elements are close to those of the other.",
        _is_close, lambda a, b: a & b, one, as_it_is, computed=wide, result=always(BOOL), operands=2,
        parameters=(RELATIVE, ABSOLUTE, NAN_IS_NAN),
    ),
    ReduceRow(
        "equal", "Whether all elements are those of the other.",
        lambda x, place, first, other: convert(eq(x, other), U8), lambda a, b: a & b, one, as_it_is, ALL, result=always(BOOL), operands=2,
    ),
)  # fmt: skip
JOINT = {row.name: row for row in _ROWS}
