"""Derivatives of elementwise ops: the gradients of rows are formulas, and so fused functions that have gradients themselves."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule, elementwise
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.ops.elementwise.descriptor import ElementwiseDescriptor
from baracuda_kernels.ops.elementwise.program import computed_in, slopes_of
from baracuda_kernels.ops.fusion.fuse import Formula, function_of, written
from baracuda_kernels.ops.fusion.tracing import Trace

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule:
    return _TANGENTS.get(function.name) or elementwise(function)


def composition(function: Function) -> Rule | None:
    if function.name in _COMPOSITIONS:
        return _COMPOSITIONS[function.name]
    return _of_row(function) if getattr(function.plan.descriptor_type, "IS_BACKWARD", False) else None


def _of_row(function: Function) -> Rule:
    """Each gradient by a function of its own."""

    def rule(f: Any, **given: Any) -> Any:
        problem = f.describe(function, given)
        upstream, *operands = (given[name] for name in function.inputs)
        arrays = [each for each in (upstream, *operands) if each is not None]
        present = tuple(number is None for number in problem.values)
        numbers = written([problem.numbers] * len(FLOATS))
        found = (f(each.name)(numbers, *arrays) for each in _slopes(type(problem), problem.kind, present))
        return tuple(next(found) if is_there else None for is_there in present)

    return rule


@remembered(1024)
def _slopes(descriptor: type[ElementwiseDescriptor], kind: Any, present: tuple[bool, ...]) -> tuple[Formula, ...]:
    """The gradient of each operand that is present, of that of the result, the operands and the row's numbers."""
    row = descriptor.TABLE[kind.value]
    operands, numbers = 1 + sum(present), len(row.parameters) + len(present) - sum(present)
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


def _where(f: Any, condition: Any, t_input: Any, t_other: Any, **_: Any) -> Any:
    """Of a choice that has no tangent 0."""
    return f("where")(condition, 0.0 if t_input is None else t_input, 0.0 if t_other is None else t_other)


def _where_back(f: Any, condition: Any, d_result: Any, input_value: Any, other_value: Any) -> Any:
    choices = (input_value is None, (d_result, 0.0)), (other_value is None, (0.0, d_result))
    return tuple(f("where")(condition, *chosen) if is_there else None for is_there, chosen in choices)


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
