"""Every reduction as formulas of single numbers: what an element contributes, how two contributions become one, what comes out.

A contribution is a tuple of numbers. `start` is one that changes no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.formula.elementary import exp, log, pow
from baracuda_kernels.formula.expression import Expr, constant, register
from baracuda_kernels.formula.operations import absolute, convert, eq, is_nan, ne, sqrt, where
from baracuda_kernels.ops.elementwise.rows import ALL, NUMBERS, Parameter
from baracuda_kernels.ops.reduction.formulas import (
    added,
    added_pairs,
    as_it_is,
    best_and_times,
    best_present,
    distances_and_squares,
    divided_by_count,
    exponentials,
    extremes,
    highest,
    is_less,
    is_more,
    itself,
    larger,
    lowest,
    number_of_best,
    shared,
    sign,
    smaller,
    square_root,
    two_zeros,
    variance,
    without_nan,
    zero,
)

__all__ = ["HELPERS", "TABLE", "ReduceRow", "norm_of"]

F64, I64, U8, BOOL = ElementKind.F64, ElementKind.I64, ElementKind.U8, ElementKind.BOOL
Start = Callable[[ElementKind], tuple[float, ...]]


# --- what numbers are computed in, and what results are --------------------------------------------------------------------------


def plain(element: ElementKind) -> ElementKind:
    """As it is: halves in f32, truths as the numbers 0 and 1."""
    return U8 if element is BOOL else register(element)


def exact(element: ElementKind) -> ElementKind:
    """So that no sum of integers overflows."""
    return register(element) if element.is_float else I64


def wide(element: ElementKind) -> ElementKind:
    """Where products or squares of f32 would lose bits, or leave its range."""
    return F64 if element.is_float else I64


def same(element: ElementKind) -> ElementKind:
    return element


def summed(element: ElementKind) -> ElementKind:
    return element if element.is_float else I64


def always(result: ElementKind) -> Callable[[ElementKind], ElementKind]:
    return lambda element: result


@dataclass(frozen=True)
class ReduceRow:
    """One reduction.

    `term` takes an element, its number and the first element; `combine` two contributions, one after the other; `finish` a
    contribution and how many elements there were. All but `combine` take the parameters too.
    """

    name: str
    says: str
    term: Callable[..., Any]
    combine: Callable[..., Any]
    start: Start
    finish: Callable[..., Expr]
    elements: tuple[ElementKind, ...] = FLOATS
    computed: Callable[[ElementKind], ElementKind] = plain
    result: Callable[[ElementKind], ElementKind] = same
    parameters: tuple[Parameter, ...] = ()
    needs_elements: bool = False  # of nothing there is no such thing
    chosen: Callable[..., ReduceRow] | None = None  # the row for these parameters, where they decide about the formula
    gradient: Callable[..., Expr] | None = None  # of the result's gradient, element, result, helpers, count and parameters
    helpers: tuple[str, ...] = ()  # reductions of the input that the gradient needs


# --- the table -----------------------------------------------------------------------------------------------------------------

CORRECTION = Parameter("correction", 1.0, "what is taken from the number of elements before the division")
ORDER = Parameter("ord", 2.0, "the power of the norm: any number, inf and -inf")

_SUM = ReduceRow(
    "sum", "The sum of elements; integers add up in i64.",
    itself, added, zero, as_it_is, ALL, exact, summed,
    gradient=lambda d, x, y, count: d,
)  # fmt: skip
_AMAX = ReduceRow(
    "amax", "The largest element, or NaN if there is one.",
    itself, larger, lambda element: (lowest(element),), as_it_is, ALL, needs_elements=True,
    gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_above",),
)  # fmt: skip
_L1 = ReduceRow(
    "l1_norm", "The sum of absolute values.",
    lambda x, place, first: absolute(x), added, zero, as_it_is, computed=wide,
    gradient=lambda d, x, y, count: d * sign(x),
)  # fmt: skip
_L2 = ReduceRow(
    "l2_norm", "The square root of the sum of squares.",
    lambda x, place, first: x * x, added, zero, square_root, computed=wide,
    gradient=lambda d, x, y, count: where(eq(y, 0), 0, d * x / y),
)  # fmt: skip
_LINF = ReduceRow(
    "linf_norm", "The largest absolute value.",
    lambda x, place, first: absolute(x), larger, lambda element: (lowest(element),), as_it_is, needs_elements=True,
    gradient=lambda d, x, y, ties, count: shared(d * sign(x), eq(absolute(x), y), ties), helpers=("ties_of_size",),
)  # fmt: skip
_VAR = ReduceRow(
    "var", "The variance: the mean square of distances from the mean.",
    distances_and_squares, added_pairs, two_zeros, variance, computed=wide, parameters=(CORRECTION,),
    gradient=lambda d, x, y, mean, count, correction: d * 2.0 * (x - mean) / (count - correction), helpers=("middle",),
)  # fmt: skip


def _std_gradient(d: Expr, x: Expr, y: Expr, mean: Expr, count: Expr, correction: Expr) -> Expr:
    return where(eq(y, 0), 0, d * (x - mean) / (y * (count - correction)))


def _prod_gradient(d: Expr, x: Expr, y: Expr, others: Expr, zeros: Expr, count: Expr) -> Expr:
    """Of the only zero it is the product of all others; with more zeros there is none."""
    return where(eq(zeros, 0), d * others / x, where(eq(zeros, 1) & eq(x, 0), d * others, 0))


_ROWS = (
    _SUM,
    ReduceRow(
        "mean", "The sum divided by the number of elements.",
        itself, added, zero, divided_by_count,
        gradient=lambda d, x, y, count: d / count,
    ),
    ReduceRow(
        "prod", "The product of elements; that of integers in i64.",
        itself, lambda a, b: a * b, lambda element: (1,), as_it_is, ALL, wide, summed,
        gradient=_prod_gradient, helpers=("product_of_others", "zeros"),
    ),
    _AMAX,
    ReduceRow(
        "amin", "The smallest element, or NaN if there is one.",
        itself, smaller, lambda element: (highest(element),), as_it_is, ALL, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_below",),
    ),
    ReduceRow(
        "argmax", "The number of the largest element, the first of several; that of the first NaN if there is one.",
        lambda x, place, first: (x, place), number_of_best(is_more), lambda element: (lowest(element), highest(I64)),
        lambda value, place, count: place, NUMBERS, result=always(I64), needs_elements=True,
    ),
    ReduceRow(
        "argmin", "The number of the smallest element, the first of several; that of the first NaN if there is one.",
        lambda x, place, first: (x, place), number_of_best(is_less), lambda element: (highest(element), highest(I64)),
        lambda value, place, count: place, NUMBERS, result=always(I64), needs_elements=True,
    ),
    ReduceRow(
        "any", "Whether an element is not zero.",
        lambda x, place, first: convert(ne(x, 0), U8), lambda a, b: a | b, zero, as_it_is, ALL, result=always(BOOL),
    ),
    ReduceRow(
        "all", "Whether no element is zero.",
        lambda x, place, first: convert(ne(x, 0), U8), lambda a, b: a & b, lambda element: (1,), as_it_is, ALL, result=always(BOOL),
    ),
    ReduceRow(
        "count_nonzero", "How many elements are not zero.",
        lambda x, place, first: convert(ne(x, 0), I64), added, zero, as_it_is, ALL, result=always(I64),
    ),
    _VAR,
    replace(
        _VAR, name="std", says="The standard deviation: the square root of the variance.",
        finish=lambda *given: sqrt(variance(*given)), gradient=_std_gradient,
    ),
    ReduceRow(
        "logsumexp", "The logarithm of the sum of exponentials.",
        lambda x, place, first: (x, constant(1, x.element)), exponentials, lambda element: (-math.inf, 0),
        lambda top, total, count: top + log(total),
        gradient=lambda d, x, y, count: d * exp(x - y),
    ),
    _L1,
    _L2,
    _LINF,
    ReduceRow(
        "vector_norm", "The norm of any power: of the sum of absolute values to it, the root.",
        lambda *given: given[0], added, zero, as_it_is, computed=wide, parameters=(ORDER,), chosen=lambda power: norm_of(power),
        gradient=lambda *given: given[0],
    ),
    ReduceRow(
        "nansum", "The sum of all elements but NaN.",
        lambda x, place, first: without_nan(x), added, zero, as_it_is,
        gradient=lambda d, x, y, count: where(is_nan(x), 0, d),
    ),
    ReduceRow(
        "nanmean", "The mean of all elements but NaN.",
        lambda x, place, first: (without_nan(x), convert(eq(x, x), x.element)), added_pairs, two_zeros,
        lambda total, present, count: total / present,
        gradient=lambda d, x, y, present, count: where(is_nan(x), 0, d / present), helpers=("present",),
    ),
    ReduceRow(
        "nanmax", "The largest element; NaN if all are.",
        itself, best_present(is_more), lambda element: (math.nan,), as_it_is, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_above",),
    ),
    ReduceRow(
        "nanmin", "The smallest element; NaN if all are.",
        itself, best_present(is_less), lambda element: (math.nan,), as_it_is, needs_elements=True,
        gradient=lambda d, x, y, ties, count: shared(d, eq(x, y), ties), helpers=("ties_below",),
    ),
    ReduceRow(
        "ptp", "The distance of the largest element from the smallest.",
        lambda x, place, first: (x, x), extremes, lambda element: (highest(element), lowest(element)),
        lambda low, high, count: high - low, NUMBERS, needs_elements=True,
    ),
)  # fmt: skip
TABLE = {row.name: row for row in _ROWS}


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


def _helper(
    name: str, term: Callable[..., Any], combine: Callable[..., Any], start: Start, finish: Callable[..., Expr]
) -> ReduceRow:
    return ReduceRow(name, "", term, combine, start, finish, computed=wide, result=always(F64))


def _tied(name: str, value: Callable[[Expr], Expr], best: Callable[[Expr, Expr], Expr]) -> ReduceRow:
    return _helper(
        name,
        lambda x, place, first: (value(x), constant(1, x.element)),
        best_and_times(best),
        lambda element: (math.nan, 0),
        lambda best, times, count: times,
    )


# What gradients need to know of the input, in f64.
HELPERS = {
    row.name: row
    for row in (
        _helper("middle", itself, added, zero, divided_by_count),
        _helper("present", lambda x, place, first: convert(eq(x, x), x.element), added, zero, as_it_is),
        _helper("zeros", lambda x, place, first: convert(eq(x, 0), x.element), added, zero, as_it_is),
        _helper(
            "product_of_others", lambda x, place, first: where(eq(x, 0), 1, x), lambda a, b: a * b, lambda element: (1,), as_it_is
        ),
        _tied("ties_above", lambda x: x, is_more),
        _tied("ties_below", lambda x: x, is_less),
        _tied("ties_of_size", absolute, is_more),
        _tied("ties_of_least_size", absolute, is_less),
    )
}
