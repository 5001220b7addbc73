"""Helpers to compute tile sizes. No backend is imported: declarations ask tiles for their workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from baracuda_kernels.core.layout import Layout

T = TypeVar("T")

__all__ = ["for_contiguous", "power_of_two"]


def power_of_two(number: int) -> int:
    """The smallest power of two that is at least `number`."""
    return 1 << max(0, number - 1).bit_length()


def for_contiguous(tile: T | None, layouts: Iterable[Layout | None]) -> T | None:
    """A tile that was timed with contiguous operands is used for these only; others use the default."""
    return tile if all(layout is None or layout.is_contiguous for layout in layouts) else None
