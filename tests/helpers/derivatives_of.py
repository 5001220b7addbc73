"""Small calls of rows of tables, away from kinks and ties, on which derivatives are compared with differences."""

from __future__ import annotations

import math
from typing import Any

import torch

from baracuda_kernels.core import registry
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

from torch_calls import WHERE, tensor

# A row of every kind: with parameters, a choice, a number beside, a second result; reductions with every helper; scans that are no sums.
HANDFUL = (
    "softplus", "logit", "i1e", "log_ndtr", "remainder", "clamp", "divmod", "glu", "addcdiv", "prod", "var", "logsumexp", "ptp", "amax", "nanvar", "vector_norm", "dist", "average",
    "aminmax", "max_with_indices", "cumprod", "logcumsumexp", "cummax", "nanprod", "polar", "cast", "complex",
)  # fmt: skip


def calls_of(name: str) -> list[dict[str, Any]]:
    """Of a function that is not described one by one, in f64."""
    function = registry.function(name)
    plan, inputs = function.plan.__name__, list(function.inputs)
    row = getattr(function, "row", None)
    if row is not None:
        return [{each: _drawn(row, place) for place, each in enumerate(inputs)}]
    if plan in ("ReducePlan", "ReducePairPlan"):
        return _reductions(name)
    if plan == "ReduceJointPlan":
        one, other = inputs
        calls: list[dict[str, Any]] = [{one: tensor(3, 4), other: tensor(4).abs() + 0.5}]
        powers = (1.0, 3.0, math.inf) if "p" in function.options else ()
        return calls + [{one: tensor(3, 4), other: tensor(4, 3).T + 0.3, "p": power} for power in powers]
    if plan == "ScanPlan":
        return [{"input": tensor(3, 5), "dim": 1}, {"input": tensor(3, 5), "dim": 0, "reverse": True}]
    if plan == "OrderPlan":
        return [{"input": tensor(3, 5), "dim": 1}, {"input": tensor(3, 3), "dim": (0, 1), "keepdim": True}]
    if plan == "QuantilePlan":
        share = 100.0 if name.endswith("percentile") else 1.0
        return [
            {"input": tensor(3, 5), "q": (0.2 * share, 0.6 * share), "dim": 1},
            {"input": tensor(3, 5), "q": 0.4 * share, "keepdim": True},
        ]
    others = {"cast": {"input": tensor(3), "dtype": torch.float64}, "polar": {"abs": tensor(3), "angle": tensor(4)[:3]}}
    return [others.get(name, {each: tensor(3 + place)[:3] for place, each in enumerate(inputs)})]


def _reductions(name: str) -> list[dict[str, Any]]:
    if name == "matrix_norm":
        return [{"input": tensor(3, 4)}]
    calls: list[dict[str, Any]] = [{"input": tensor(3, 4), "dim": 1}]
    if name not in ("max_with_indices", "min_with_indices"):
        calls.append({"input": tensor(2, 3, 2), "dim": (0, 2), "keepdim": True})
    if name == "prod":
        calls.append({"input": tensor(5).abs().where(torch.arange(5, device=WHERE) != 2, 0.0)})
    if name == "vector_norm":
        calls += [{"input": tensor(3, 4), "dim": 1, "ord": order} for order in (1.0, 3.0, 0.5, 0.0, math.inf, -math.inf)]
    return calls


def _drawn(row: ElementwiseRow, place: int) -> torch.Tensor:
    """Numbers from within the operand's domain, none of them where it ends and no two operands alike."""
    low, high = row.domain[min(place, len(row.domain) - 1)]
    low, high = max(low, -3.0), min(high, 3.0)
    shares = (torch.arange(6, dtype=torch.float64, device=WHERE) * 0.157 + 0.061 + 0.0371 * place) % 1.0
    return low + (high - low) * (0.05 + 0.9 * shares).roll(2 * place)
