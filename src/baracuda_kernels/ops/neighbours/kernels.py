"""The kernels that plans of ops on neighbours have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, Limit, rank_at_most
from baracuda_kernels.core.sku import BackendKind, PrecisionGuarantee

__all__ = ["RANK", "kernels"]

RANK = rank_at_most("shape", 8)


def kernels(
    name: str, guarantee: Callable[[Any], PrecisionGuarantee], elements: tuple[ElementKind, ...], limits: tuple[Limit, ...]
) -> tuple[Kernel, ...]:
    """Of a plan whose problems are `runs`."""
    return (
        Kernel(f"numba.{name}", BackendKind.NUMBA, "numba:in_runs", guarantee, elements, limits),
        Kernel(f"triton.{name}", BackendKind.TRITON, "triton:in_runs", guarantee, elements, limits),
    )
