"""From a row of the table to what a kernel computes."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.descriptor import Numbers
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.formula.derive import expanded, expanded_gradients
from baracuda_kernels.formula.expression import HALVES, Expr, Program, constant, input_of, parameter_of, register
from baracuda_kernels.formula.operations import convert, eq, where
from baracuda_kernels.formula.reduction import FEW, SEVERAL, Reduction
from baracuda_kernels.ops.reduction.formulas import highest
from baracuda_kernels.ops.reduction.helper_rows import HELPERS
from baracuda_kernels.ops.reduction.row import ReduceRow
from baracuda_kernels.ops.reduction.rows import TABLE
from baracuda_kernels.ops.reduction.tables import EVERY

__all__ = [
    "BELOW", "COUNTED", "choice_program", "diagonal_program", "gradient_program", "helpers_of", "reduction_of", "sum_of", "trace_of",
]  # fmt: skip

COUNTED = 2  # among the inputs of the gradient of a choice: counted, not read
BELOW = 1  # the same of a trace
F64, I32, I64 = ElementKind.F64, ElementKind.I32, ElementKind.I64


def reduction_of(problem: Any) -> Reduction:
    return _reduction(
        problem.kind.value, problem.numbers, problem.element, problem.result_elements, _counting(problem), problem.computing
    )


def _counting(problem: Any) -> ElementKind:
    return I32 if problem.count < FEW else I64


def sum_of(element: ElementKind) -> Reduction:
    """The sum, integers and booleans as they are."""
    return _made(TABLE["sum"], element, (element,), I64, TABLE["sum"].computed(element))


def helpers_of(problem: Any) -> tuple[Reduction, ...]:
    """What a gradient needs to know of the input."""
    rows = (HELPERS[each] if isinstance(each, str) else each for each in problem.row.helpers)
    return tuple(_made(row, problem.element, (F64,), _counting(problem), row.computed(problem.element)) for row in rows)


@remembered(1024)
def _reduction(
    kind: str,
    numbers: Numbers,
    element: ElementKind,
    results: tuple[ElementKind, ...],
    counting: ElementKind,
    computing: ElementKind,
) -> Reduction:
    row = _row(kind, numbers)
    if element in HALVES and row.of_halves is not None:
        row = row.of_halves
    return _made(row, element, results, counting, computing)


def _row(kind: str, numbers: Numbers) -> ReduceRow:
    row = EVERY[kind]
    return row if row.chosen is None else row.chosen(*numbers)


def _parameters(row: ReduceRow, computing: ElementKind) -> tuple[Expr, list[Expr]]:
    """How many elements there are, and the row's own."""
    every = [parameter_of(place) for place in range(1 + len(row.parameters))]
    if computing.is_float:
        every = [convert(each, computing) for each in every]
    return every[0], every[1:]


def _tuple(found: Any) -> tuple[Expr, ...]:
    return found if isinstance(found, tuple) else (found,)


def _made(
    row: ReduceRow, element: ElementKind, results: tuple[ElementKind, ...], counting: ElementKind, computing: ElementKind
) -> Reduction:
    """Whose elements are numbered in `counting`."""
    count, parameters = _parameters(row, computing)
    given = 1 + len(parameters)
    rough = all(result in HALVES for result in results)
    of_element = (element, counting, *[element] * row.operands)

    def appended(states: int) -> list[Expr]:
        """The element, its index, the first one, and the other's, behind so many numbers."""
        x, place, *others = (input_of(states + place, kind) for place, kind in enumerate(of_element))
        return [convert(x, computing), place, *(convert(each, computing) for each in others), *parameters]

    state = tuple(term.element for term in _tuple(row.term(*appended(0))))
    starts = [constant(min(number, highest(kind)), kind) for number, kind in zip(row.start(computing), state, strict=True)]
    both = [input_of(place, kind) for place, kind in enumerate(state * 2)]
    before, new = both[: len(state)], appended(len(state))
    append = row.combine(*before, *_tuple(row.term(*new))) if row.append is None else row.append(*before, *new)
    combined = _tuple(row.combine(*both))
    finished = _tuple(row.finish(*both[: len(state)], count, *parameters))
    finished = tuple(convert(each, register(kind)) for each, kind in zip(finished, results, strict=True))
    return Reduction(
        Program((), state, tuple(starts), given),
        Program((*state, *of_element), state, expanded(_tuple(append), rough), given),
        Program(state * 2, state, expanded(combined, rough), given),
        Program(state, results, expanded(finished, rough), given),
        None if row.several is None else _several(row, element, computing, state, rough, given),
    )


def _several(
    row: ReduceRow, element: ElementKind, computing: ElementKind, state: tuple[ElementKind, ...], rough: bool, given: int
) -> Program:
    assert row.several is not None
    inputs = (*state, *[element] * SEVERAL)
    before, elements = ([input_of(place, inputs[place]) for place in places] for places in
                        (range(len(state)), range(len(state), len(inputs))))  # fmt: skip
    found = row.several(*before, *(convert(each, computing) for each in elements))
    return Program(inputs, state, expanded(found, rough), given)


def trace_of(problem: Any) -> Reduction:
    """The sum of what is on a diagonal."""
    element = problem.element
    return _reduction("sum", (), element, TABLE["sum"].results(element), I64, TABLE["sum"].computed(element))


def diagonal_program(element: ElementKind) -> Program:
    """The gradient of one element: inputs are the result's gradient, and how far below the diagonal the element is."""
    return Program((element, I64), (element,), (where(eq(input_of(BELOW, I64), 0), input_of(0, element), 0),))


def choice_program(element: ElementKind) -> Program:
    """The gradient of one element: inputs are the result's gradient, the number of what was chosen, and that of the element."""
    d, chosen, place = input_of(0, element), input_of(1, I64), input_of(COUNTED, I64)
    return Program((element, I64, I64), (element,), (where(eq(place, chosen), d, 0),))


def gradient_program(problem: Any) -> Program:
    """The gradient of one element: inputs are the gradients of the results, the element, the results and the helpers."""
    return _gradient(problem.kind.value, problem.numbers, problem.element, problem.result_elements, problem.computing)


@remembered(1024)
def _gradient(
    kind: str, numbers: Numbers, element: ElementKind, results: tuple[ElementKind, ...], computing: ElementKind
) -> Program:
    row = _row(kind, numbers)
    assert row.gradient is not None
    count, parameters = _parameters(row, computing)
    elements = (*results, *[element] * row.operands, *results, *[F64] * len(row.helpers))
    given = [convert(input_of(place, kind), computing) for place, kind in enumerate(elements)]
    slopes = tuple(convert(each, register(element)) for each in _tuple(row.gradient(*given, count, *parameters)))
    return Program(elements, (element,) * row.operands, expanded_gradients(slopes, element in HALVES), 1 + len(parameters))
