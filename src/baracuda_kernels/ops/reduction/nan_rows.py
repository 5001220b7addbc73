"""Reductions for which NaN counts as nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.operations import convert, eq, is_nan, where
from baracuda_kernels.ops.reduction.formulas import (
    added,
    added_pairs,
    added_triples,
    as_given,
    as_it_is,
    best_present,
    highest,
    is_less,
    is_more,
    itself,
    multiplied,
    next_best_present,
    number_of_best_present,
    one,
    prod_gradient,
    scaled,
    shared,
    two_zeros,
    without_nan,
    zero,
)
from baracuda_kernels.ops.reduction.moments import (
    distances_from_one,
    next_present_distance,
    next_present_value,
    present_base,
    present_value_and_square,
    rooted,
    variance_of_present,
    variance_of_present_values,
)
from baracuda_kernels.ops.reduction.row import CORRECTION, I64, ReduceRow, always, wide

__all__ = ["ROWS"]


def _of_present(slope: Callable[..., Expr]) -> Callable[..., Expr]:
    """The gradient, with 0 where the element is NaN."""
    return lambda d, x, *others: where(is_nan(x), 0, slope(d, x, *others))


_NANVAR = ReduceRow(
    "nanvar", "The variance of all elements but NaN.",
    present_base, distances_from_one, lambda element: (0, 0, 0, 0), variance_of_present, computed=wide, parameters=(CORRECTION,),
    append=next_present_distance,
    gradient=_of_present(lambda d, x, y, mean, present, count, correction: scaled(d, x - mean, (present - correction) * 0.5)),
    helpers=("middle_of_present", "present"),
)  # fmt: skip
_NANVAR = replace(
    _NANVAR, of_halves=replace(
        _NANVAR, term=present_value_and_square, combine=added_triples, start=lambda element: (0, 0, 0), finish=variance_of_present_values,
        append=next_present_value,
    ),
)  # fmt: skip


def _nanstd_gradient(d: Expr, x: Expr, y: Expr, mean: Expr, present: Expr, count: Expr, correction: Expr) -> Expr:
    return where(eq(y, 0), 0, scaled(d, x - mean, y * (present - correction)))


def _place(name: str, says: str, best: Callable[[Expr, Expr], Expr]) -> ReduceRow:
    return ReduceRow(
        name, says,
        lambda x, place, first: (x, place), number_of_best_present(best), lambda element: (math.nan, highest(I64)),
        lambda value, place, count: where(is_nan(value), constant(-1, place.element), place), result=always(I64), needs_elements=True,
        append=next_best_present(best),
    )  # fmt: skip


ROWS = (
    ReduceRow(
        "nansum", "The sum of all elements but NaN.",
        lambda x, place, first: without_nan(x), added, zero, as_it_is,
        converts=True, gradient=_of_present(lambda d, x, y, count: d),
    ),
    ReduceRow(
        "nanmean", "The mean of all elements but NaN.",
        lambda x, place, first: (without_nan(x), convert(eq(x, x), x.element)), added_pairs, two_zeros,
        lambda total, present, count: total / present,
        converts=True, gradient=_of_present(lambda d, x, y, present, count: d / present), helpers=("present",),
    ),
    ReduceRow(
        "nanprod", "The product of all elements but NaN.",
        lambda x, place, first: convert(where(is_nan(as_given(x)), 1, as_given(x)), x.element), multiplied, one, as_it_is, computed=wide,
        gradient=_of_present(prod_gradient), helpers=("product_of_present_others", "zeros"),
    ),
    ReduceRow(
        "nanmax", "The largest element that is not NaN; NaN if all are.",
        itself, best_present(is_more), lambda element: (math.nan,), as_it_is, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_above",),
    ),
    ReduceRow(
        "nanmin", "The smallest element that is not NaN; NaN if all are.",
        itself, best_present(is_less), lambda element: (math.nan,), as_it_is, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_below",),
    ),
    _place("nanargmax", "The index of the largest element that is not NaN, the first of several; -1 if all are NaN.", is_more),
    _place("nanargmin", "The index of the smallest element that is not NaN, the first of several; -1 if all are NaN.", is_less),
    _NANVAR,
    rooted(_NANVAR, "nanstd", "The standard deviation of all elements but NaN.", _of_present(_nanstd_gradient)),
)  # fmt: skip
