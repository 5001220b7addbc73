"""Derivatives of order statistics: which elements are chosen does not change with them, so all of them are linear in between."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core import derivatives
from baracuda_kernels.core.derivatives import Rule, kept
from baracuda_kernels.core.function import Function
from baracuda_kernels.ops.order_statistics.order_statistics import OrderBackwardPlan, QuantileBackwardPlan, QuantilePlan

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule:
    return _quantiles(function) if function.plan is QuantilePlan else derivatives.reduced(function)


def composition(function: Function) -> Rule | None:
    if function.plan is OrderBackwardPlan:
        return derivatives.weighted(function, "d_values")
    return _quantiles_backward(function) if function.plan is QuantileBackwardPlan else None


def _weights(f: Any, backward: str, given: dict[str, Any], like: Any) -> list[Any]:
    """How much each element counts in each quantile."""
    several = given["q"] if isinstance(given["q"], tuple | list) else (given["q"],)
    options = {name: given[name] for name in ("dim", "interpolation")}
    input = f.constant(given["input"])
    return [f.constant(f(backward)(f.ones_like(like), input, (q,), keepdim=True, stacked=False, **options)) for q in several]


def _quantiles(function: Function) -> Rule:
    def rule(f: Any, **given: Any) -> Any:
        problem = f.describe(function, given)
        lines = f.constant(given["input"].reshape(-1)[:1]).reshape((1,) * given["input"].ndim)
        weights = _weights(f, f"{function.name}_backward", given, f.expand(lines, kept(problem)))
        found = [f("sum")(each * given["t_input"], problem.axes, problem.keepdim) for each in weights]
        return f.stack(found) if problem.stacked else found[0]

    return rule


def _quantiles_backward(function: Function) -> Rule:
    def rule(f: Any, **given: Any) -> Any:
        problem, d = f.describe(function, given), given["d_result"]
        every = [d[place] for place in range(d.shape[0])] if problem.stacked else [d]
        every = [each.reshape(kept(problem)) for each in every]
        weights = _weights(f, function.name, given, f.constant(every[0]))
        return f.added([weight * each for weight, each in zip(weights, every, strict=True)])

    return rule
