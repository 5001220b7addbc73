"""Derivatives beyond the first in reverse mode: what tangents of a function's inputs make of its results, and gradients written with functions
that are differentiable themselves.

A package of ops says both in its module `derivatives`, which is loaded when one is asked for. `tangent(function)` gives a rule for a function
that has a gradient, `composition(function)` one for a gradient; None where there is none. A rule is called with the functions of the arrays'
framework, and by name with everything that the call was given and, of a tangent, the results and `t_x`, the tangent of x or None. It gives the
tangent of each result that has a gradient, or each result of the gradient again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.identity import remembered
from baracuda_kernels.core.turns import imported

if TYPE_CHECKING:
    from baracuda_kernels.core.function import Function, Gradient

__all__ = [
    "Rule",
    "composition",
    "elementwise",
    "has_composition",
    "has_tangent",
    "kept",
    "part",
    "reduced",
    "slopes",
    "tangent",
    "weighted",
]

Rule = Callable[..., Any]


@remembered(1024)
def tangent(function: Function) -> Rule | None:
    """How its results change as its inputs do."""
    return None if function.gradient is None else _said(function, "tangent")


@remembered(1024)
def composition(function: Function) -> Rule | None:
    """The same results, by functions that are differentiable themselves."""
    return _said(function, "composition")


def has_tangent(function: Function) -> bool:
    """Whether there is forward mode through a function."""
    return tangent(function) is not None


def has_composition(function: Function) -> bool:
    """Whether there are second derivatives of a function."""
    gradient = function.backward()
    return gradient is not None and composition(gradient.function) is not None


def _said(function: Function, what: str) -> Rule | None:
    module = f"{function.plan.__module__.rpartition('.')[0]}.derivatives"
    if not module.startswith("baracuda_kernels.") or importlib.util.find_spec(module) is None:
        return None
    rule: Rule | None = getattr(imported(module), what)(function)
    return rule


def slopes(f: Any, gradient: Gradient, given: Mapping[str, Any], **upstream: Any) -> dict[str, Any]:
    """What the backward gives of these gradients of results, by the inputs' names."""
    values = {name: given[name] for name in (*gradient.saved_inputs, *gradient.saved_outputs)}
    values |= {name: upstream.get(output) for name, output in gradient.upstream.items()}
    options = {name: given[name] for name in gradient.options}
    options |= {option: given[name].dtype for option, name in gradient.elements.items()}
    results = f(gradient.function.name)(**values, **options)
    return dict(zip(gradient.results.values(), results if isinstance(results, tuple) else (results,), strict=True))


def elementwise(function: Function) -> Rule:
    """The tangent where every result depends on the operands of its own place alone: the gradients of tangents, added up."""
    gradient = function.backward()
    assert gradient is not None
    (output,) = gradient.upstream.values()

    def rule(f: Any, **given: Any) -> Any:
        parts = []
        for name in gradient.results.values():
            if given[f"t_{name}"] is not None:
                parts.append(slopes(f, gradient, given, **{output: given[f"t_{name}"]})[name])
        return f.added(parts)

    return rule


def reduced(function: Function) -> Rule:
    """The tangent of what is reduced along axes: the sum of tangents, each times what the result changes by."""
    gradient = function.backward()
    assert gradient is not None
    outputs = tuple(dict.fromkeys(gradient.upstream.values()))

    def rule(f: Any, **given: Any) -> Any:
        problem, found = f.describe(function, given), []
        for chosen in outputs:
            ones = {name: (f.ones_like if name == chosen else f.zeros_like)(given[name]) for name in outputs}
            by = slopes(f, gradient, given, **ones)
            parts = [by[name] * given[f"t_{name}"] for name in by if given[f"t_{name}"] is not None]
            total = f("sum")(f.added(parts), problem.axes, problem.keepdim)
            found.append(total if total.dtype == given[chosen].dtype else f("cast")(total, given[chosen].dtype))
        return tuple(found)

    return rule


def weighted(function: Function, upstream: str) -> Rule:
    """The gradient of what is reduced along axes, where what the result changes by does not itself change."""

    def rule(f: Any, **given: Any) -> Any:
        problem, d = f.describe(function, given), given[upstream]
        fixed = {name: f.constant(each) if hasattr(each, "shape") else each for name, each in given.items()}
        weights = f(function.name)(**fixed | {upstream: f.ones_like(fixed[upstream])})
        return f.constant(weights) * d.reshape(kept(problem))

    return rule


def kept(problem: Any) -> tuple[int, ...]:
    """The shape of what is reduced, with extents of 1 along its axes."""
    return tuple(1 if axis in problem.axes else extent for axis, extent in enumerate(problem.shape))


def part(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """What is from one place to another along an axis."""
    return x[(*(slice(None),) * (axis % x.ndim), slice(start, stop))]
