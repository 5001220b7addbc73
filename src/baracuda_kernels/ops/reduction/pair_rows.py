"""Reductions with two results of one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.formula.operations import convert, eq, where
from baracuda_kernels.ops.elementwise.rows import NUMBERS
from baracuda_kernels.ops.reduction.formulas import (
    State,
    added_pairs,
    added_triples,
    as_given,
    extremes,
    highest,
    is_less,
    is_more,
    lowest,
    next_best,
    number_of_best,
    place_of,
    scaled,
    shared,
    two_zeros,
)
from baracuda_kernels.ops.reduction.moments import (
    distances_and_squares,
    next_distance,
    next_value,
    rooted,
    value_and_square,
    variance,
    variance_of_values,
)
from baracuda_kernels.ops.reduction.row import CORRECTION, I64, ReduceRow, Start, always, same, wide

__all__ = ["PAIRS"]


def _variance_and_mean(total: Expr, distance: Expr, squares: Expr, count: Expr, correction: Expr) -> State:
    return variance(distance, squares, count, correction), convert(total, count.element) / count


def _variance_and_mean_of_values(total: Expr, squares: Expr, count: Expr, correction: Expr) -> State:
    return variance_of_values(total, squares, count, correction), total / count


# Gradients are of those of both results, the element, both results, helpers, count and parameters.


def _var_mean_gradient(d: Expr, d_mean: Expr, x: Expr, y: Expr, rounded: Expr, mean: Expr, count: Expr, correction: Expr) -> Expr:
    return scaled(d, x - mean, (count - correction) * 0.5) + d_mean / count


def _std_mean_gradient(d: Expr, d_mean: Expr, x: Expr, y: Expr, rounded: Expr, mean: Expr, count: Expr, correction: Expr) -> Expr:
    return where(eq(y, 0), 0, scaled(d, x - mean, y * (count - correction))) + d_mean / count


def _aminmax_gradient(
    d_low: Expr, d_high: Expr, x: Expr, low: Expr, high: Expr, times_low: Expr, times_high: Expr, count: Expr
) -> Expr:
    return shared(d_low, eq(x, low), times_low) + shared(d_high, eq(x, high), times_high)


def _with_indices(name: str, says: str, best: Callable[[Expr, Expr], Expr], start: Start) -> ReduceRow:
    return ReduceRow(
        name, says, lambda x, place, first: (x, place), number_of_best(best), start, lambda value, place, count: (value, place_of(place)),
        NUMBERS, second=always(I64), needs_elements=True, append=next_best(best), is_choice=True, names=("values", "indices"),
    )  # fmt: skip


def _value_distance_and_square(x: Expr, *given: Expr) -> State:
    return as_given(x), *distances_and_squares(x, *given)


def _next_value_and_distance(total: Expr, distance: Expr, squares: Expr, x: Expr, *given: Expr) -> State:
    return total + as_given(x), *next_distance(distance, squares, x, *given)


_VAR_MEAN = ReduceRow(
    "var_mean", "The variance, and the mean.",
    _value_distance_and_square, added_triples, lambda element: (0, 0, 0),
    _variance_and_mean, computed=wide, append=_next_value_and_distance, second=same, parameters=(CORRECTION,), gradient=_var_mean_gradient, helpers=("middle",), names=("var", "mean"),
)  # fmt: skip
_VAR_MEAN = replace(
    _VAR_MEAN, of_halves=replace(
        _VAR_MEAN, term=value_and_square, combine=added_pairs, start=two_zeros, finish=_variance_and_mean_of_values, append=next_value,
    ),
)  # fmt: skip

_ROWS = (
    _with_indices(
        "max_with_indices", "The largest element, NaN if there is one; and its index, the first of several.", is_more,
        lambda element: (lowest(element), highest(I64)),
    ),
    _with_indices(
        "min_with_indices", "The smallest element, NaN if there is one; and its index, the first of several.", is_less,
        lambda element: (highest(element), highest(I64)),
    ),
    ReduceRow(
        "aminmax", "The smallest element, and the largest; NaN if there is one.",
        lambda x, place, first: (x, x), extremes, lambda element: (highest(element), lowest(element)),
        lambda low, high, count: (low, high), NUMBERS, second=same, needs_elements=True,
        gradient=_aminmax_gradient, helpers=("ties_below", "ties_above"), names=("min", "max"),
    ),
    _VAR_MEAN,
    replace(rooted(_VAR_MEAN, "std_mean", "The standard deviation, and the mean.", _std_mean_gradient), names=("std", "mean")),
)  # fmt: skip
PAIRS = {row.name: row for row in _ROWS}
