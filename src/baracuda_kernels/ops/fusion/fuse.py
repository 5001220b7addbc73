"""`fuse`: a Python function of a few numbers as one function on arrays.

    scaled = bk.fuse(lambda x, y: bk.gelu(x) * y + 1)
    z = scaled(x, y)

It is traced once for each element. Python's operators and the functions of the tables work on what it is given. Formulas that differ in
their numbers alone share a function that takes these as an option, and so all that is compiled.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from baracuda_kernels.core.descriptor import Numbers
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.errors import InvalidProblem, Unsupported, rejection
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.core.view import View, broadcast_shape
from baracuda_kernels.ops.fusion.fusion import MOST_OPERANDS, NAMES, FusedBackwardPlan, FusedPlan
from baracuda_kernels.ops.fusion.tracing import Trace, backward_problem, forward_problem

__all__ = ["NUMBERS", "Formula", "Fused", "Traces", "function_of", "fuse", "written"]

Traces = Mapping[ElementKind, Trace]
NUMBERS = "numbers"  # the option that they are


class Fused:
    """A function that `fuse` has made: a formula, and the numbers in it."""

    def __init__(self, function: Function, numbers: str, formula: Callable[..., Any]) -> None:
        self.function, self.numbers = function, numbers
        self.name = self.__name__ = self.__qualname__ = function.name
        self.__doc__, self.__module__ = inspect.getdoc(formula) or "A fused function.", formula.__module__
        public = function.__signature__
        self.__signature__ = public.replace(parameters=[each for each in public.parameters.values() if each.name != NUMBERS])

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(self.numbers, *given, **named)

    def __repr__(self) -> str:
        return f"<function {self.name}{self.__signature__}>"

    def select(self, *given: Any, **named: Any) -> Plan[Any, Any]:
        """The plan that such a call runs."""
        return self.function.select(self.numbers, *given, **named)


class Formula(Function):
    """What fused functions share that differ in their numbers alone."""

    in_torch = "baracuda_kernels.torch.fuse of it"
    traces: Traces  # of the formula, or of that whose gradients they are


_formulas: dict[str, Formula] = {}


def fuse(formula: Callable[..., Any], *, wide: bool = False) -> Fused:
    """A function of one to eight arrays, every element of which is computed by `formula` in one kernel, with its gradients.

    Arrays have one element; they are broadcast like NumPy's. f16 and bf16 are computed in f32; `wide`, f32 is computed in f64.
    """
    if not inspect.isfunction(formula) and not inspect.ismethod(formula):
        got = type(formula).__name__
        raise rejection("fuse", [Reason(ReasonCode.WRONG_TYPE, "formula", got, "a Python function of its operands")])
    count = len(inspect.signature(formula).parameters)
    if not 1 <= count <= MOST_OPERANDS:
        got, wanted = f"a function of {count} operands", f"one of 1 to {MOST_OPERANDS}"
        raise InvalidProblem("fuse", [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "formula", got, wanted)])
    found = {element: Trace.of(formula, count, element, wide) for element in FLOATS}
    function = function_of({element: trace for element, (trace, _) in found.items()})
    return Fused(function, written([numbers for _, numbers in found.values()]), formula)


def function_of(traces: Traces) -> Formula:
    """What computes a formula that is traced for every element: the one there is already, if there is one."""
    identity = "".join(trace.text() for trace in traces.values())
    name, count = f"fused_{hashlib.sha256(identity.encode()).hexdigest()[:12]}", next(iter(traces.values())).operands
    if count > MOST_OPERANDS:
        wanted = f"a function of at most {MOST_OPERANDS} operands, as a derivative takes those of the formula and one more"
        raise Unsupported("fuse", [Reason(ReasonCode.LIMIT, "formula", f"one of {count}", wanted)])
    with LOADING:
        if name not in _formulas:
            backward = _function(f"{name}_backward", ("d_result",), count, FusedBackwardPlan, None, traces)
            _formulas[name] = _function(name, (), count, FusedPlan, backward.name, traces)
    return _formulas[name]


def _function(name: str, leading: tuple[str, ...], count: int, plan: Any, gradient: str | None, traces: Traces) -> Formula:
    names = (*leading, *NAMES[:count])
    problem = backward_problem if leading else forward_problem

    def describe(**given: Any) -> Any:
        operands = {each: given[each] for each in names}
        element = operands[names[0]].element
        if element not in FLOATS:
            raise InvalidProblem(name, [Reason(ReasonCode.ELEMENT, names[0], element, " or ".join(map(str, FLOATS)))])
        text, numbers = problem(traces[element], _read(name, given[NUMBERS], traces)[element])
        return plan.descriptor_type(text, broadcast_shape(name, operands), element, numbers)

    kinds = inspect.Parameter
    parameters = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in names]
    absent = [kinds(each, kinds.KEYWORD_ONLY, annotation=View, default=None) for each in NAMES[count:]]
    numbers = kinds(NUMBERS, kinds.POSITIONAL_OR_KEYWORD, annotation=str)
    describe.__signature__ = inspect.Signature([numbers, *parameters, *absent])  # type: ignore[attr-defined] # as inspect looks for it
    describe.__name__ = describe.__qualname__ = name
    describe.__module__ = "__main__"  # it is the caller's, and none of the library's functions
    describe.__doc__ = "The gradients of a fused function." if leading else "A fused function, whatever its numbers."
    made = Formula(describe, plan, gradient)
    made.traces = traces
    return made


def written(numbers: list[Numbers]) -> str:
    """The numbers that a formula has for each element, as an option that calls are looked up by at no cost."""
    return ";".join(" ".join(number.hex() for number in each) for each in numbers)


def _read(function: str, text: str, traces: Traces) -> dict[ElementKind, Numbers]:
    try:
        numbers = [tuple(map(float.fromhex, each.split())) for each in text.split(";")]
    except ValueError:
        numbers = []
    counts = [trace.numbers for trace in traces.values()]
    if list(map(len, numbers)) != counts:
        wanted = f"{', '.join(map(str, counts))} numbers for {', '.join(map(str, traces))}, as fuse writes them"
        raise InvalidProblem(function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, NUMBERS, repr(text), wanted)])
    return dict(zip(traces, numbers, strict=True))
