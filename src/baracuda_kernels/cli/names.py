"""Ops as a user names them."""

from __future__ import annotations

import difflib
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.plan import Plan


class UnknownOp(Exception):
    """The message lists the ops, the nearest first."""


def plan_named(op: str) -> type[Plan[Any, Any]]:
    plans = registry.plans()
    if op in plans:
        return plans[op]
    nearest = difflib.get_close_matches(op.lower(), plans, n=1)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    raise UnknownOp(f"There is no op {op!r}.{hint} The ops are: {', '.join(plans)}.")
