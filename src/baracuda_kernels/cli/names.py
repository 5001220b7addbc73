"""Ops as a user names them."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.nearest import no_such
from baracuda_kernels.core.plan import Plan


class UnknownOp(Exception):
    """The message lists the ops, the nearest first."""


def plan_named(op: str) -> type[Plan[Any, Any]]:
    plans = registry.plans()
    if op in plans:
        return plans[op]
    raise UnknownOp(no_such("op", op, plans))
