"""What gradients need to know of the input: reductions that come out in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.operations import absolute, convert, eq, is_nan, where
from baracuda_kernels.ops.reduction.formulas import (
    added,
    added_pairs,
    as_it_is,
    best_and_times,
    divided_by_count,
    highest,
    is_less,
    is_more,
    itself,
    larger,
    lowest,
    multiplied,
    one,
    smaller,
    two_zeros,
    without_nan,
    zero,
)
from baracuda_kernels.ops.reduction.row import F64, ReduceRow, Start, always, plain, wide

__all__ = ["HELPERS", "helper"]


def helper(
    name: str,
    term: Callable[..., Any],
    combine: Callable[..., Any],
    start: Start,
    finish: Callable[..., Expr],
    operands: int = 1,
    computed: Callable[[ElementKind], ElementKind] = wide,
) -> ReduceRow:
    return ReduceRow(name, "", term, combine, start, finish, computed=computed, result=always(F64), operands=operands)


def _counted(name: str, is_one: Callable[[Expr], Expr]) -> ReduceRow:
    """How many elements are such ones, in the integers that elements are numbered in."""
    return helper(name, lambda x, place, first: convert(is_one(x), place.element), added, zero, as_it_is, computed=plain)


def _tied(name: str, value: Callable[[Expr], Expr], best: Callable[[Expr, Expr], Expr]) -> ReduceRow:
    return helper(
        name,
        lambda x, place, first: (value(x), constant(1, place.element)),
        best_and_times(best),
        lambda element: (math.nan, 0),
        lambda best, times, count: times,
        computed=plain,
    )


HELPERS = {
    row.name: row
    for row in (
        helper("middle", itself, added, zero, divided_by_count),
        helper(
            "middle_of_present", lambda x, place, first: (without_nan(x), convert(eq(x, x), place.element)), added_pairs, two_zeros,
            lambda total, present, count: total / convert(present, total.element),
        ),
        _counted("present", lambda x: eq(x, x)),
        _counted("zeros", lambda x: eq(x, 0)),
        helper("product_of_others", lambda x, place, first: where(eq(x, 0), 1, x), multiplied, one, as_it_is),
        helper("product_of_present_others", lambda x, place, first: where(eq(x, 0) | is_nan(x), 1, x), multiplied, one, as_it_is),
        helper("most", itself, larger, lambda element: (lowest(element),), as_it_is, computed=plain),
        helper("least", itself, smaller, lambda element: (highest(element),), as_it_is, computed=plain),
        _tied("ties_above", lambda x: x, is_more),
        _tied("ties_below", lambda x: x, is_less),
        _tied("ties_of_size", absolute, is_more),
        _tied("ties_of_least_size", absolute, is_less),
    )
}  # fmt: skip
