"""Values as plain data, which JSON can hold."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

__all__ = ["number", "plain"]

_NOT_FINITE = ("nan", "inf", "-inf")  # which JSON has no numbers for


def plain(value: Any) -> Any:
    """A member of an enum by its value, a tuple as a list, a number that is not finite by its name, all the way down."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def number(value: Any) -> Any:
    """What `plain` made of a number or of several; anything else is as it is."""
    if isinstance(value, list):
        return [number(each) for each in value]
    return float(value) if value in _NOT_FINITE else value
