"""Every reduction as formulas of single numbers: what an element contributes, how two contributions become one, what comes out."""

from __future__ import annotations

import math
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.elementary import exp, log
from baracuda_kernels.formula.operations import convert, eq, ne, where
from baracuda_kernels.ops.elementwise.rows import ALL, BOOLS, INTEGERS, NUMBERS
from baracuda_kernels.ops.reduction import nan_rows, norm_rows
from baracuda_kernels.ops.reduction.formulas import (
    added,
    added_pairs,
    as_it_is,
    divided_by_count,
    exponentials,
    extremes,
    highest,
    is_less,
    is_more,
    itself,
    larger,
    lowest,
    multiplied,
    next_best,
    next_exponential,
    next_exponentials,
    number_of_best,
    one,
    place_of,
    prod_gradient,
    scaled,
    shared,
    smaller,
    two_zeros,
    zero,
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
from baracuda_kernels.ops.reduction.row import BOOL, CORRECTION, I64, U8, ReduceRow, always, exact, summed, wide

__all__ = ["TABLE"]

_VAR = ReduceRow(
    "var", "The variance: the mean squared distance from the mean.",
    distances_and_squares, added_pairs, two_zeros, variance, computed=wide, parameters=(CORRECTION,), append=next_distance,
    gradient=lambda d, x, y, mean, count, correction: scaled(d, x - mean, (count - correction) * 0.5), helpers=("middle",),
)  # fmt: skip
_VAR = replace(_VAR, of_halves=replace(_VAR, term=value_and_square, finish=variance_of_values, append=next_value))


def _std_gradient(d: Expr, x: Expr, y: Expr, mean: Expr, count: Expr, correction: Expr) -> Expr:
    return where(eq(y, 0), 0, scaled(d, x - mean, y * (count - correction)))


def _ptp_gradient(d: Expr, x: Expr, y: Expr, most: Expr, times: Expr, least: Expr, times_least: Expr, count: Expr) -> Expr:
    return shared(d, eq(x, most), times) - shared(d, eq(x, least), times_least)


_LOGSUMEXP = ReduceRow(
    "logsumexp", "The logarithm of the sum of exponentials.",
    lambda x, place, first: (x, constant(1, x.element)), exponentials, lambda element: (-math.inf, 0),
    lambda top, total, count: top + log(total),
    gradient=lambda d, x, y, count: d * exp(x - y), append=next_exponential, several=next_exponentials,
)  # fmt: skip

_ROWS = (
    ReduceRow(
        "sum", "The sum; i64 for integers.",
        itself, added, zero, as_it_is, ALL, exact, summed,
        converts=True, gradient=lambda d, x, y, count: d,
    ),
    ReduceRow(
        "mean", "The mean of all elements.",
        itself, added, zero, divided_by_count,
        converts=True, gradient=lambda d, x, y, count: d / count,
    ),
    ReduceRow(
        "prod", "The product; i64 for integers.",
        itself, multiplied, one, as_it_is, ALL, wide, summed,
        converts=True, gradient=prod_gradient, helpers=("product_of_others", "zeros"),
    ),
    ReduceRow(
        "amax", "The largest element, or NaN if there is one.",
        itself, larger, lambda element: (lowest(element),), as_it_is, ALL, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_above",),
    ),
    ReduceRow(
        "amin", "The smallest element, or NaN if there is one.",
        itself, smaller, lambda element: (highest(element),), as_it_is, ALL, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_below",),
    ),
    ReduceRow(
        "argmax", "The index of the largest element, the first of several; of the first NaN if there is one.",
        lambda x, place, first: (x, place), number_of_best(is_more), lambda element: (lowest(element), highest(I64)),
        lambda value, place, count: place_of(place), NUMBERS, result=always(I64), needs_elements=True, append=next_best(is_more),
    ),
    ReduceRow(
        "argmin", "The index of the smallest element, the first of several; of the first NaN if there is one.",
        lambda x, place, first: (x, place), number_of_best(is_less), lambda element: (highest(element), highest(I64)),
        lambda value, place, count: place_of(place), NUMBERS, result=always(I64), needs_elements=True, append=next_best(is_less),
    ),
    ReduceRow(
        "any", "Whether an element is not zero.",
        lambda x, place, first: convert(ne(x, 0), U8), lambda a, b: a | b, zero, as_it_is, ALL, result=always(BOOL),
    ),
    ReduceRow(
        "all", "Whether no element is zero.",
        lambda x, place, first: convert(ne(x, 0), U8), lambda a, b: a & b, one, as_it_is, ALL, result=always(BOOL),
    ),
    ReduceRow(
        "count_nonzero", "The number of elements that are not zero.",
        lambda x, place, first: convert(ne(x, 0), I64), added, zero, as_it_is, ALL, result=always(I64),
    ),
    ReduceRow(
        "reduce_xor", "The bitwise XOR of all elements.",
        itself, lambda a, b: a ^ b, zero, as_it_is, (*INTEGERS, *BOOLS),
    ),
    _VAR,
    rooted(_VAR, "std", "The standard deviation: the square root of the variance.", _std_gradient),
    _LOGSUMEXP,
    replace(
        _LOGSUMEXP, name="logmeanexp", says="The logarithm of the mean of exponentials.",
        finish=lambda top, total, count: top + log(total / count), gradient=lambda d, x, y, count: d * exp(x - y) / count,
    ),
    *norm_rows.ROWS,
    *nan_rows.ROWS,
    ReduceRow(
        "ptp", "The largest element minus the smallest.",
        lambda x, place, first: (x, x), extremes, lambda element: (highest(element), lowest(element)),
        lambda low, high, count: high - low, NUMBERS, needs_elements=True,
        gradient=_ptp_gradient, helpers=("most", "ties_above", "least", "ties_below"),
    ),
)  # fmt: skip
TABLE = {row.name: row for row in _ROWS}
