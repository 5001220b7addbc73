"""What the tiers above a plan add to the host time of a call: the function, and the PyTorch operator with and without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.plan import Plan

__all__ = ["FUNCTION", "OPERATOR", "RECORDED", "calls_of"]

FUNCTION, OPERATOR, RECORDED = "function", "PyTorch operator", "PyTorch operator, recorded"


def calls_of(plan: type[Plan[Any, Any]], descriptor: Any, operands: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """The calls that lead to this problem without any options; none where no function has it so."""
    from baracuda_kernels.torch.operators import entry, operator

    for function in registry.functions().values():
        if function.plan is not plan:
            continue
        schema = operator(function.name).schema
        given = [operands.get(name) for name in function.inputs]
        if schema.inputs != schema.positional[: len(given)]:
            continue
        if operator(function.name).describe(schema.bind(tuple(given), {})) == descriptor:
            return _calls(function, entry(function.name), given)
    return {}


def _calls(function: Function, operator: Callable[..., Any], given: list[Any]) -> dict[str, Callable[[], object]]:
    calls: dict[str, Callable[[], object]] = {FUNCTION: lambda: function(*given), OPERATOR: lambda: operator(*given)}
    if function.gradient is not None:
        tracked = [tensor.detach().requires_grad_(tensor.is_floating_point()) for tensor in given]
        calls[RECORDED] = lambda: operator(*tracked)
    return calls
