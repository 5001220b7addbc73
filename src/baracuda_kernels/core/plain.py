"""Values as JSON can hold them."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A member of an enum by its value, a tuple as a list, all the way down."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
