"""Derivatives of elementwise ops: the gradients of rows are formulas, and so fused functions that have gradients themselves."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.derivatives import Rule, elementwise, refuse_complex
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.ops.elementwise.descriptor import ElementwiseDescriptor
from baracuda_kernels.ops.elementwise.program import computed_in, slopes_of
from baracuda_kernels.ops.fusion.fuse import Formula, function_of, written
from baracuda_kernels.ops.fusion.tracing import Trace

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    gradient = function.backward()
    if gradient is not None and len(gradient.upstream) > 1:  # of two results there is no forward mode yet
        return None
    return _TANGENTS.get(function.name) or elementwise(function)


def composition(function: Function) -> Rule | None:
    if function.name in _COMPOSITIONS:
        return _COMPOSITIONS[function.name]
    return _of_row(function) if getattr(function.plan.descriptor_type, "IS_BACKWARD", False) else None


def _of_row(function: Function) -> Rule:
    """Each gradient by a function of its own."""

    def rule(f: Any, **given: Any) -> Any:
        problem = f.describe(function, given)
        every = [given[name] for name in function.inputs]
        arrays = [each for each in every if each is not None]
        refuse_complex(f, function, arrays)
        upstream = every[: -len(problem.values)]
        # Whatever operands are in memory: of some ops the result is wider than what they are converted to.
        own = max((each.dtype for each in upstream if each is not None), key=lambda dtype: dtype.itemsize)
        arrays = [f.cast(each, own) for each in arrays]
        present = tuple(number is None for number in problem.values)
        numbers = written([problem.numbers] * len(FLOATS))  # those of this call
        targets = [
            getattr(problem, f"d_{name}_element") for name, is_there in zip(problem.OPERANDS, present, strict=True) if is_there
        ]
        slopes = zip(_slopes(type(problem), problem.kind, present), targets, strict=True)
        found = (f.cast(f(each.name)(numbers, *arrays), target) for each, target in slopes)
        return tuple(next(found) if is_there else None for is_there in present)

    return rule


@remembered(1024)
def _slopes(descriptor: type[ElementwiseDescriptor], kind: Any, present: tuple[bool, ...]) -> tuple[Formula, ...]:
    """The gradient of each operand that is present, of that of the result, the operands and the row's numbers."""
    row = descriptor.TABLE[kind.value]
    operands = 1 + len(row.more_results(FLOATS[0])) + sum(present)
    numbers = len(row.parameters) + len(present) - sum(present)
    every = [
        [Trace(element, computed_in(row, element), operands, numbers, slope) for slope in slopes_of(row, element, present)]
        for element in FLOATS
    ]
    return tuple(function_of(dict(zip(FLOATS, slopes, strict=True))) for slopes in zip(*every, strict=True))


def _filled(f: Any, given: Any, name: str) -> Any:
    return f.zeros_like(given[name]) if given[f"t_{name}"] is None else given[f"t_{name}"]


def _cast(f: Any, t_input: Any, dtype: Any, **_: Any) -> Any:
    return f("cast")(t_input, dtype)


def _cast_back(f: Any, d_result: Any, input_element: Any, **_: Any) -> Any:
    return f("cast")(d_result, input_element)


def _where(f: Any, condition: Any, t_input: Any, t_other: Any, result: Any, **_: Any) -> Any:
    """Of a choice that has no tangent 0."""
    return f("where")(condition, *(0.0 if each is None else f.cast(each, result.dtype) for each in (t_input, t_other)))


def _where_back(f: Any, condition: Any, d_result: Any, **given: Any) -> Any:
    problem = f.describe(registry.function("where_backward"), {"condition": condition, "d_result": d_result, **given})
    choices = (
        (problem.has_input, (d_result, 0.0), problem.d_input_element),
        (problem.has_other, (0.0, d_result), problem.d_other_element),
    )
    return tuple(f.cast(f("where")(condition, *chosen), target) if is_there else None for is_there, chosen, target in choices)


def _complex(f: Any, **given: Any) -> Any:
    return f("complex")(_filled(f, given, "real"), _filled(f, given, "imag"))


def _complex_back(f: Any, d_result: Any) -> Any:
    return d_result.real, d_result.imag


def _polar(f: Any, abs: Any, angle: Any, **given: Any) -> Any:
    along, across = _filled(f, given | {"abs": abs}, "abs"), _filled(f, given | {"angle": angle}, "angle") * abs
    sine, cosine = f("sin")(angle), f("cos")(angle)
    return f("complex")(along * cosine - across * sine, along * sine + across * cosine)


def _polar_back(f: Any, d_result: Any, abs: Any, angle: Any) -> Any:
    sine, cosine = f("sin")(angle), f("cos")(angle)
    return d_result.real * cosine + d_result.imag * sine, (d_result.imag * cosine - d_result.real * sine) * abs


_TANGENTS: dict[str, Rule] = {"cast": _cast, "where": _where, "complex": _complex, "polar": _polar}
_COMPOSITIONS: dict[str, Rule] = {
    "cast_backward": _cast_back,
    "where_backward": _where_back,
    "complex_backward": _complex_back,
    "polar_backward": _polar_back,
}
