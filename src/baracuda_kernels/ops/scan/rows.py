"""The formulas of all scans, forward and backward.

A scan turns every element into a state, joins the states up to each place with an associative `combine`, and makes a result of what
comes out. A gradient is a scan too, in the other direction:

cumsum        g joins as a sum                        dx = g                            of d
cummax, -min  (g, i) of equal i join as a sum         dx = g where i is the place       of (d, the index)
logcumsumexp  (y, g) join as (y', g' + exp(y' - y) g) dx = exp(x - y) g                 of (y, d)

The gradient of a product is no such scan; it has a body of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.formula.derive import expanded
from baracuda_kernels.formula.expression import HALVES, Expr, constant, input_of, register
from baracuda_kernels.formula.functions.elementary import exp, exp_nonpositive, log_normal
from baracuda_kernels.formula.operations import absolute, convert, eq, is_nan, where
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor, ScanKind
from baracuda_kernels.ops.scan.scaled import multiplied, scaled, settled, unscaled

__all__ = [
    "ALL",
    "FORWARD",
    "INTEGERS",
    "PREFIX",
    "SUFFIX",
    "ScanFormulas",
    "ScanRow",
    "computed_in",
    "formulas_of",
    "running_sum",
    "tree_formulas_of",
]

I64 = ElementKind.I64
INTEGERS = (ElementKind.I8, ElementKind.I16, ElementKind.I32, I64, ElementKind.U8, ElementKind.BOOL)
ALL = (*FLOATS, *INTEGERS)
State = tuple[Expr, ...]
INFINITY = float("inf")


@dataclass(frozen=True)
class ScanRow:
    """One scan.

    `term` takes the operands and the place along the axis, `combine` an earlier and a later state, `value` a state, the operands and the
    place. `chain` says that states are joined one after the other, so that nothing overflows that would not; `exact` that the order of
    joining has no say. Floats are computed in f32, or in f64 if they are among the `wide`.
    """

    term: Callable[..., State]
    combine: Callable[[State, State], State]
    start: Callable[[ElementKind], tuple[float, ...]]
    value: Callable[..., State]
    elements: tuple[ElementKind, ...] = FLOATS
    wide: tuple[ElementKind, ...] = ()
    chain: bool = False
    exact: bool = False
    least_states: int = 2  # without an output for the others, only so many are kept
    settle: Callable[[State], State] | None = None  # what becomes of a state before a tile of others is joined to it
    lift: Callable[[State, Expr], Expr] | None = None  # of a pair for a power and a sum: the sum beside another power
    falls: bool = False  # whether that power falls along the walk rather than rises
    commutes: bool = False  # whether states may be joined in another order

    def computed_in(self, element: ElementKind) -> ElementKind:
        if element.is_float:
            return ElementKind.F64 if element in self.wide else register(element)
        return I64 if not self.exact else ElementKind.U8 if element is ElementKind.BOOL else element


def _itself(state: State, *given: Expr) -> State:
    return state


def _added(a: State, b: State) -> State:
    return (a[0] + b[0],)


def _multiplied(a: State, b: State) -> State:
    return (a[0] * b[0],)


def _or(replacement: float) -> Callable[..., State]:
    return lambda x, place: (where(is_nan(x), replacement, x) if x.element.is_float else x,)


def _lowest(element: ElementKind) -> float:
    return -INFINITY if element.is_float else 0 if element is ElementKind.U8 else -(2 ** (8 * element.size - 1))


def _highest(element: ElementKind) -> float:
    return INFINITY if element.is_float else 2 ** (8 * element.size - (element is not ElementKind.U8)) - 1


def _extremum(beats: Callable[[Expr, Expr], Expr], first: Callable[[ElementKind], float]) -> ScanRow:
    """The later of equals; NaN beats everything, and a later NaN an earlier one. Beside the value, where it is."""

    def combine(a: State, b: State) -> State:
        later = beats(b[0], a[0])
        if b[0].element.is_float:
            later = later | is_nan(b[0])
        return tuple(where(later, y, x) for x, y in zip(a, b, strict=True))

    return ScanRow(
        lambda x, place: (x, place), combine, lambda element: (first(element), 0), _itself, ALL, exact=True, least_states=1
    )


def _shifted_sum(a: State, b: State) -> State:
    """The sum of (m, s), each of which stands for exp(m) s; m is NaN where that is."""
    (m, s), (n, t) = a, b
    gap = n - m
    # Equal infinities are no distance apart; NaN is, and makes the power NaN.
    power = exp_nonpositive(where(eq(m, n), 0.0, -absolute(gap)))
    rises = n > m
    return where(rises | is_nan(n), n, m), where(rises, s * power + t, s + t * power)


def _decayed(a: State, b: State) -> State:
    """An earlier result is no larger, so that no power exceeds 1."""
    (y, g), (z, h) = a, b
    return z, h + exp(where(eq(z, y), 0.0, z - y)) * g


def _share(state: State, d: Expr, x: Expr, y: Expr, place: Expr) -> State:
    """Beside the power of the state, which may be less than y."""
    return (where(eq(x, -INFINITY), 0.0, exp(x - state[0]) * state[1]),)


def _same_run(a: State, b: State) -> State:
    """Along the walk back the place of the extremum only moves away, so that equal ones have nothing else in between."""
    return where(eq(a[1], b[1]), a[0] + b[0], b[0]), b[1]


_CUMSUM = ScanRow(lambda x, place: (x,), _added, lambda _: (0,), _itself, ALL, wide=(ElementKind.F32,), commutes=True)
_CUMPROD = ScanRow(lambda x, place: (x,), _multiplied, lambda _: (1,), _itself, ALL, wide=(ElementKind.F32,), chain=True)
_EXTREMUM_BACK = ScanRow(
    lambda d, index, place: (d, index),
    _same_run,
    lambda _: (0, -1),
    lambda state, d, index, place: (where(eq(index, place), state[0], 0),),
    wide=(ElementKind.F32,),
)
FORWARD = {
    ScanKind.CUMSUM: _CUMSUM,
    ScanKind.NANCUMSUM: replace(_CUMSUM, term=_or(0)),
    ScanKind.CUMPROD: _CUMPROD,
    ScanKind.NANCUMPROD: replace(_CUMPROD, term=_or(1)),
    ScanKind.CUMMAX: _extremum(lambda a, b: a >= b, _lowest),
    ScanKind.CUMMIN: _extremum(lambda a, b: a <= b, _highest),
    ScanKind.LOGCUMSUMEXP: ScanRow(
        lambda x, place: (x, constant(1, x.element)),
        _shifted_sum,
        lambda _: (-INFINITY, 0),
        lambda state, x, place: (state[0] + log_normal(state[1]),),  # no sum is far below the 1 of its largest element
        lift=lambda state, power: state[1] * exp_nonpositive(state[0] - power),
        commutes=True,
    ),
}


def _wide(state: State) -> State:
    return convert(state[0], ElementKind.F64), state[1]


_SCALED = ScanRow(
    lambda x, place: _wide(scaled(x)),
    multiplied,
    lambda _: (1, 0),
    lambda state, x, place: (unscaled(state, x.element),),
    settle=settled,
)
SCALED = {  # products of floats, joined in any order
    ScanKind.CUMPROD: _SCALED,
    ScanKind.NANCUMPROD: replace(_SCALED, term=lambda x, place: _wide(scaled(where(is_nan(x), 1.0, x)))),
}
_CUMPROD_BACK = ScanRow(  # the body joins these states, a factor and what comes down to it, in its own way
    lambda d, x, place: (d, x),
    lambda a, b: b,
    lambda _: (0, 1),
    lambda state, d, x, place: (state[0],),
    wide=(ElementKind.F32,),
    chain=True,
)
BACKWARD = {
    ScanKind.CUMSUM: replace(_CUMSUM, elements=FLOATS),
    ScanKind.NANCUMSUM: ScanRow(
        lambda d, x, place: (d,),
        _added,
        lambda _: (0,),
        lambda state, d, x, place: (where(is_nan(x), 0, state[0]),),
        wide=(ElementKind.F32,),
        commutes=True,
    ),
    ScanKind.CUMPROD: _CUMPROD_BACK,
    ScanKind.NANCUMPROD: replace(
        _CUMPROD_BACK,
        term=lambda d, x, place: (d, where(is_nan(x), 1, x)),
        value=lambda state, d, x, place: (where(is_nan(x), 0, state[0]),),
    ),
    ScanKind.CUMMAX: _EXTREMUM_BACK,
    ScanKind.CUMMIN: _EXTREMUM_BACK,
    ScanKind.LOGCUMSUMEXP: ScanRow(
        lambda d, x, y, place: (y, d),
        _decayed,
        lambda _: (INFINITY, 0),
        _share,
        lift=lambda state, power: state[1] * exp_nonpositive(power - state[0]),
        falls=True,
    ),
}


@dataclass(frozen=True)
class ScanFormulas:
    """A row for operands of certain elements, in operations alone. Expressions have as inputs what their comments say, in this order."""

    inputs: tuple[ElementKind, ...]  # of the operands that are read
    outputs: tuple[ElementKind, ...]
    states: tuple[ElementKind, ...]
    start: tuple[float, ...]
    term: State  # operands, place
    combine: State  # earlier state, later state
    value: State  # state, operands, place
    settle: State | None  # state
    lift: State | None  # state, power
    chain: bool
    exact: bool
    commutes: bool
    falls: bool = False
    numbers: int = 0  # parameters in f64, after the operands


def _row(problem: ScanDescriptor) -> ScanRow:
    return (BACKWARD if isinstance(problem, ScanBackwardDescriptor) else FORWARD)[problem.kind]


def computed_in(problem: ScanDescriptor) -> ElementKind:
    return _row(problem).computed_in(problem.element)


def formulas_of(problem: ScanDescriptor) -> ScanFormulas:
    return _formulas_by(_row(problem), problem)


def tree_formulas_of(problem: ScanDescriptor) -> ScanFormulas:
    """The same for states that are joined as a tree, whatever they are: so few times each that rough powers will do for 16-bit floats."""
    row = _row(problem)
    if problem.kind in PRODUCTS and problem.element.is_float:
        row = replace(row, wide=FLOATS) if isinstance(problem, ScanBackwardDescriptor) else SCALED[problem.kind]
    return _formulas_by(row, problem, rough=problem.element in HALVES)


def _formulas_by(row: ScanRow, problem: ScanDescriptor, rough: bool = False) -> ScanFormulas:
    element = problem.element
    if isinstance(problem, ScanBackwardDescriptor):
        others = (problem.reads_input, element), (problem.reads_result, element), (problem.reads_indices, I64)
        return _formulas(row, (element, *(each for is_read, each in others if is_read)), (element,), rough)
    outputs = (problem.result_element, I64) if problem.has_indices else (problem.result_element,)
    return _formulas(row, (element,), outputs, rough)


def _formulas(row: ScanRow, inputs: tuple[ElementKind, ...], outputs: tuple[ElementKind, ...], rough: bool) -> ScanFormulas:
    computing = row.computed_in(inputs[0])
    given = [_widened(input_of(place, element), computing) for place, element in enumerate(inputs)]
    term = row.term(*given, input_of(len(inputs), I64))[: max(len(outputs), row.least_states)]
    states = tuple(each.element for each in term)
    count = len(states)
    earlier, later = (tuple(input_of(at + place, each) for place, each in enumerate(states)) for at in (0, count))
    again = [_widened(input_of(count + place, element), computing) for place, element in enumerate(inputs)]
    values = row.value(earlier, *again, input_of(count + len(inputs), I64))
    stored = [convert(value, register(element)) for value, element in zip(values, outputs, strict=True)]
    joined = row.combine(earlier, later)
    start = row.start(computing)[:count]
    settled = None if row.settle is None else expanded(row.settle(earlier), rough)
    lifted = None if row.lift is None else expanded((row.lift(earlier, input_of(count, states[0])),), rough)
    formulas = (expanded(term, rough), expanded(joined, rough), expanded(stored, rough), settled, lifted)
    return ScanFormulas(inputs, outputs, states, start, *formulas, row.chain, row.exact, row.commutes, row.falls)


def _widened(x: Expr, computing: ElementKind) -> Expr:
    """Operands are computed with in one element; indices stay what they are."""
    return x if x.element is I64 else convert(x, computing)


def running_sum(
    inputs: tuple[ElementKind, ...], numbers: int, total: ElementKind, term: Expr, value: Expr, output: ElementKind
) -> ScanFormulas:
    """A running sum of terms of operands, parameters and the place; the value is computed from the sum and all of these."""
    rough, total_of = output in HALVES, (input_of(0, total), input_of(1, total))
    terms, sums, values = (
        expanded((each,), rough) for each in (convert(term, total), total_of[0] + total_of[1], convert(value, register(output)))
    )
    return ScanFormulas(inputs, (output,), (total,), (0,), terms, sums, values, None, None, False, False, True, numbers=numbers)


def _of_states(element: ElementKind, start: tuple[float, ...], combine: Callable[[State, State], State]) -> ScanFormulas:
    """A scan of states themselves."""
    count = len(start)
    earlier, later = (tuple(input_of(at + place, element) for place in range(count)) for at in (0, count))
    states = (element,) * count
    return ScanFormulas(states, states, states, start, earlier, combine(earlier, later), earlier, None, None, False, False, False)


# What the gradient of a product is made of: products of what comes before, and steps back from the end, d + x g of a later g, as (x, d).
PREFIX = _of_states(ElementKind.F64, (1,), _multiplied)
SUFFIX = _of_states(ElementKind.F64, (1, 0), lambda a, b: (b[0] * a[0], b[1] + b[0] * a[1]))
