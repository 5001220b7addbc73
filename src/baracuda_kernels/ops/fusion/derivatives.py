"""Derivatives of fused formulas: the gradient of each operand is a formula too."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule, elementwise
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.ops.fusion.fuse import NUMBERS, Formula, function_of
from baracuda_kernels.ops.fusion.tracing import slopes_of

__all__ = ["composition", "tangent"]


def tangent(function: Formula) -> Rule:
    return elementwise(function)


def composition(function: Formula) -> Rule:
    """Each gradient by a function of its own."""

    def rule(f: Any, **given: Any) -> Any:
        operands = [given[name] for name in function.inputs if given[name] is not None]
        found = [f(each.name)(given[NUMBERS], *operands) for each in _slopes(function)]
        return (*found, *[None] * (len(function.outputs) - len(found)))

    return rule


@remembered(1024)
def _slopes(function: Formula) -> tuple[Formula, ...]:
    every = {element: slopes_of(trace) for element, trace in function.traces.items()}
    return tuple(function_of(dict(zip(every, slopes, strict=True))) for slopes in zip(*every.values(), strict=True))
