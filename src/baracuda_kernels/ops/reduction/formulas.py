"""The formulas that reductions are made of: contributions of elements, how two of them become one, and the last step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.functions.elementary import exp_below, exp_nonpositive
from baracuda_kernels.formula.operations import absolute, convert, eq, fma, is_nan, ne, rarely, reciprocal, sqrt, where

__all__ = [
    "State",
    "added",
    "added_pairs",
    "added_triples",
    "as_given",
    "as_it_is",
    "best_and_times",
    "best_present",
    "divided_by_count",
    "exponentials",
    "extremes",
    "highest",
    "is_less",
    "is_more",
    "itself",
    "larger",
    "lowest",
    "multiplied",
    "next_best",
    "next_best_present",
    "next_exponential",
    "next_exponentials",
    "number_of_best",
    "number_of_best_present",
    "one",
    "place_of",
    "prod_gradient",
    "scaled",
    "shared",
    "sign",
    "signed",
    "smaller",
    "square_root",
    "two_zeros",
    "without_nan",
    "zero",
]

U8, BOOL = ElementKind.U8, ElementKind.BOOL
State = tuple[Expr, ...]


def lowest(element: ElementKind) -> float:
    if element.is_float:
        return -math.inf
    return 0 if element in (U8, BOOL) else -(1 << (8 * element.size - 1))


def highest(element: ElementKind) -> float:
    if element.is_float:
        return math.inf
    return 255 if element is U8 else 1 if element is BOOL else (1 << (8 * element.size - 1)) - 1


def _or_nan(is_better: Expr, b: Expr) -> Expr:
    return is_better | is_nan(b) if b.element.is_float else is_better


def larger(a: Expr, b: Expr) -> Expr:
    """NaN if one of them is."""
    return where(_or_nan(b > a, b), b, a)


def smaller(a: Expr, b: Expr) -> Expr:
    return where(_or_nan(b < a, b), b, a)


def number_of_best(best: Callable[[Expr, Expr], Expr]) -> Callable[..., State]:
    """The best element and its index; of equals the first one, of NaN too."""

    def combine(a: Expr, at: Expr, b: Expr, number: Expr) -> State:
        takes, ties = best(b, a), eq(a, b)
        if a.element.is_float:
            takes, ties = takes | (is_nan(b) & ~is_nan(a)), ties | (is_nan(a) & is_nan(b))
        takes = takes | (ties & (number < at))
        return where(takes, b, a), where(takes, number, at)

    return combine


def next_best(best: Callable[[Expr, Expr], Expr]) -> Callable[..., State]:
    """Appends an element with a larger index than all before: it has to be better; none is better than NaN."""

    def append(a: Expr, at: Expr, x: Expr, place: Expr, first: Expr) -> State:
        takes = best(x, a)
        if x.element.is_float:
            takes = ~(eq(x, a) | best(a, x)) & eq(a, a)
        return where(takes, x, a), where(takes, place, at)

    return append


def place_of(place: Expr) -> Expr:
    """Where nothing was better than the start, all are the same, and the first one is it."""
    return where(eq(place, int(highest(place.element))), 0, place)


def number_of_best_present(best: Callable[[Expr, Expr], Expr]) -> Callable[..., State]:
    """Combines two elements and their indices; NaN is passed over, and so is the start."""

    def combine(a: Expr, at: Expr, b: Expr, number: Expr) -> State:
        takes = best(b, a) | (is_nan(a) & ~is_nan(b)) | (eq(a, b) & (number < at))
        return where(takes, b, a), where(takes, number, at)

    return combine


def next_best_present(best: Callable[[Expr, Expr], Expr]) -> Callable[..., State]:
    """Appends an element with a larger index than all before: any is better than the start."""

    def append(a: Expr, at: Expr, x: Expr, place: Expr, first: Expr) -> State:
        takes = ~(eq(x, a) | best(a, x)) & eq(x, x)
        return where(takes, x, a), where(takes, place, at)

    return append


def added(a: Expr, b: Expr) -> Expr:
    return a + b


def added_pairs(a: Expr, c: Expr, b: Expr, d: Expr) -> State:
    return a + b, c + d


def added_triples(a: Expr, c: Expr, e: Expr, b: Expr, d: Expr, f: Expr) -> State:
    return a + b, c + d, e + f


def multiplied(a: Expr, b: Expr) -> Expr:
    return a * b


def itself(x: Expr, place: Expr, first: Expr) -> Expr:
    return x


def as_it_is(total: Expr, count: Expr, *parameters: Expr) -> Expr:
    return total


def divided_by_count(total: Expr, count: Expr) -> Expr:
    return total / convert(count, total.element)


def square_root(total: Expr, count: Expr) -> Expr:
    return sqrt(total)


def zero(element: ElementKind) -> tuple[float, ...]:
    return (0,)


def one(element: ElementKind) -> tuple[float, ...]:
    return (1,)


def two_zeros(element: ElementKind) -> tuple[float, ...]:
    return (0, 0)


def without_nan(x: Expr) -> Expr:
    return where(is_nan(x), 0, x)


def as_given(x: Expr) -> Expr:
    """An element before it was made wider."""
    return x.args[0] if x.operation == "convert" else x


def exponentials(top: Expr, total: Expr, other: Expr, more: Expr) -> State:
    """Sums of exp(x - top): those below the higher top are scaled to it."""
    is_higher = _or_nan(other > top, other)
    scale = exp_nonpositive(where(eq(top, other), 0, -absolute(top - other)))
    return where(is_higher, other, top), where(is_higher, total * scale + more, total + more * scale)


def next_exponential(top: Expr, total: Expr, x: Expr, place: Expr, first: Expr) -> State:
    """Appends one element. A NaN need not be the maximum: it shows in the sum."""
    scale, is_higher = exp_nonpositive(where(eq(x, top), 0, -absolute(x - top))), x > top
    return where(is_higher, x, top), where(is_higher, total * scale + 1.0, total + scale)


def next_exponentials(top: Expr, total: Expr, *elements: Expr) -> State:
    """Appends several elements: the sum is scaled once for all of them."""
    highest = top
    for x in elements:
        highest = where(x > highest, x, highest)
    base = where(absolute(highest) < math.inf, highest, 0)  # the distance of infinities would be NaN
    scaled = total * exp_below(top, base)
    return highest, scaled + tree_sum([exp_below(x, base) for x in elements])


def tree_sum(terms: Sequence[Expr]) -> Expr:
    """A pairwise sum, which shortens the chain of dependencies."""
    middle = len(terms) // 2
    return tree_sum(terms[:middle]) + tree_sum(terms[middle:]) if middle else terms[0]


def extremes(low: Expr, high: Expr, lower: Expr, higher: Expr) -> State:
    return smaller(low, lower), larger(high, higher)


def best_present(is_better: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """NaN counts as nothing, and so does the start."""
    return lambda a, b: where(is_better(b, a) | is_nan(a), b, a)


def best_and_times(best: Callable[[Expr, Expr], Expr]) -> Callable[..., State]:
    """The best element and how often it is there."""

    def combine(a: Expr, times: Expr, b: Expr, more: Expr) -> State:
        takes = best(b, a) | is_nan(a)
        return where(takes, b, a), where(eq(a, b), times + more, where(takes, more, times))

    return combine


def is_more(a: Expr, b: Expr) -> Expr:
    return a > b


def is_less(a: Expr, b: Expr) -> Expr:
    return a < b


def sign(x: Expr) -> Expr:
    return where(x > 0, 1.0, where(x < 0, constant(-1, x.element), x))


def signed(d: Expr, x: Expr) -> Expr:
    """d times the sign of x."""
    return where(x > 0, d, where(x < 0, -d, 0))


def prod_gradient(d: Expr, x: Expr, y: Expr, others: Expr, zeros: Expr, count: Expr) -> Expr:
    """The gradient of prod: at a single zero the product of all others; 0 everywhere if there are more zeros."""
    return where(eq(zeros, 0), _divided(d * others, x), where(eq(zeros, 1) & eq(x, 0), d * others, 0))


def _divided(a: Expr, x: Expr) -> Expr:
    """a / x in f64 unless x is 0, of an x that is given in f32 or 16-bit floats by its reciprocal there: with one step of Newton's it has enough digits."""
    if as_given(x).element is ElementKind.F64:
        return a / x
    inverse = convert(reciprocal(convert(x, ElementKind.F32)), ElementKind.F64)
    near = a * (inverse * fma(-x, inverse, 2.0))
    is_small = (absolute(x) < 2.0**-100) & ne(x, 0)
    return rarely(is_small | (absolute(x) > 2.0**100), a / x, near)


def scaled(d: Expr, x: Expr, y: Expr) -> Expr:
    """d x / y, for an x of every element: by one division for all of them, if the quotient is within range, as it is of all but f64."""
    return d * x / y if as_given(d).element is ElementKind.F64 else d / y * x


def shared(d: Expr, is_one: Expr, ties: Expr) -> Expr:
    return where(is_one, d / ties, 0)
