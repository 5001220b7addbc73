"""The sums that variances are made of, of distances from one of the elements, or of 16-bit floats as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.operations import convert, eq, fma, is_nan, sqrt, where
from baracuda_kernels.ops.reduction.formulas import State, as_given, without_nan
from baracuda_kernels.ops.reduction.row import ReduceRow

__all__ = [
    "distances_and_squares", "distances_from_one", "next_distance", "next_present_distance", "next_present_value", "next_value",
    "present_base", "present_value_and_square", "rooted", "value_and_square", "variance", "variance_of_present", "variance_of_present_values",
    "variance_of_values",
]  # fmt: skip


def rooted(row: ReduceRow, name: str, says: str, gradient: Callable[..., Expr]) -> ReduceRow:
    """The row with the square root of the variance as its result, or as the first of two."""

    def finish(*given: Expr) -> State:
        found = row.finish(*given)
        first, *second = found if isinstance(found, tuple) else (found,)
        return sqrt(first), *second

    of_halves = None if row.of_halves is None else rooted(row.of_halves, name, says, gradient)
    return replace(row, name=name, says=says, finish=finish, gradient=gradient, of_halves=of_halves)


def _free(count: Expr, correction: Expr) -> Expr:
    """The degrees of freedom, never less than none."""
    return where(count - correction < 0, 0, count - correction)


def _at_least_one(count: Expr) -> Expr:
    return where(eq(count, 0), 1, count)


# --- distances from the first element ------------------------------------------------------------------------------------------


def distances_and_squares(x: Expr, place: Expr, first: Expr, correction: Expr) -> State:
    half = _half_distance(x, first)
    return half, half * half


def next_distance(total: Expr, squares: Expr, x: Expr, place: Expr, first: Expr, correction: Expr) -> State:
    half = _half_distance(x, first)
    return total + half, fma(half, half, squares)


def _half_distance(x: Expr, base: Expr) -> Expr:
    """Half of it, which is always finite if both are, taken as precisely as the numbers are given: only its last bit is lost, and not x's."""
    return convert(fma(as_given(x), 0.5, as_given(base) * -0.5), x.element)


def variance(total: Expr, squares: Expr, count: Expr, correction: Expr) -> Expr:
    """Since distances are from one of the elements, no more than a factor of `count` can cancel."""
    rest = squares - total * (total / _at_least_one(count))
    return where(rest < 0, 0, rest) * 4.0 / _free(count, correction)


# --- distances from the first element that is there: it is part of the contribution, as is how many there are ------------------


def present_base(x: Expr, place: Expr, first: Expr, correction: Expr) -> State:
    nothing, given = constant(0, x.element), as_given(x)
    return nothing, nothing, without_nan(given), convert(eq(given, given), place.element)


def next_present_distance(
    total: Expr, squares: Expr, base: Expr, present: Expr, x: Expr, place: Expr, first: Expr, correction: Expr
) -> State:
    """NaN is taken for the base, at no distance."""
    given, wide = as_given(x), total.element
    value = where(is_nan(given), base, given)
    base = where(eq(present, 0), value, base)
    half = _half_distance(convert(value, wide), convert(base, wide))
    return total + half, fma(half, half, squares), base, present + convert(eq(given, given), present.element)


def distances_from_one(
    total: Expr, squares: Expr, base: Expr, present: Expr, others: Expr, more: Expr, other: Expr, number: Expr
) -> State:
    """Combines two parts: distances from the second base become those from the first one, if there is one."""
    is_none, wide = eq(present, 0), total.element
    gap = where(is_none, 0, fma(convert(other, wide), 0.5, convert(base, wide) * -0.5))
    shift = gap * convert(number, wide)
    return (
        total + (others + shift),
        squares + (more + gap * (others + others + shift)),
        where(is_none, other, base),
        present + number,
    )


def variance_of_present(total: Expr, squares: Expr, base: Expr, present: Expr, count: Expr, correction: Expr) -> Expr:
    return variance(total, squares, convert(present, total.element), correction)


# --- 16-bit floats as they are --------------------------------------------------------------------------------------------------------
# Where much of the squares cancels, all elements have about one exponent, and sums of their few bits in f64 are exact.


def value_and_square(x: Expr, *given: Expr) -> State:
    return x, x * x


def next_value(total: Expr, squares: Expr, x: Expr, *given: Expr) -> State:
    return total + x, fma(x, x, squares)


def variance_of_values(total: Expr, squares: Expr, count: Expr, correction: Expr) -> Expr:
    """The variance, corrected for the rounding of the mean."""
    mean = total / _at_least_one(count)
    lost = fma(-mean, count, total)
    rest = fma(-mean, lost, fma(-mean, total, squares))
    return where(rest < 0, 0, rest) / _free(count, correction)


def present_value_and_square(x: Expr, place: Expr, first: Expr, correction: Expr) -> State:
    given = as_given(x)
    return *value_and_square(convert(without_nan(given), x.element)), convert(eq(given, given), place.element)


def next_present_value(total: Expr, squares: Expr, present: Expr, x: Expr, *others: Expr) -> State:
    given = as_given(x)
    return *next_value(total, squares, convert(without_nan(given), x.element)), present + convert(eq(given, given), present.element)


def variance_of_present_values(total: Expr, squares: Expr, present: Expr, count: Expr, correction: Expr) -> Expr:
    return variance_of_values(total, squares, convert(present, total.element), correction)
