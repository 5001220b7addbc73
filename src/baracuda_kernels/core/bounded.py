"""Bounded caches."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

__all__ = ["Bounded", "forget_choices"]


class Bounded:
    """Remembers up to `most` values and then starts afresh. Threads share it: a look-up is one look into a dict."""

    _all: ClassVar[weakref.WeakSet[Bounded]] = weakref.WeakSet()

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: dict[Any, Any] = {}
        self.get = self._values.get
        Bounded._all.add(self)

    def put(self, key: Any, value: Any) -> None:
        if len(self._values) >= self.most:
            self._values.clear()
        self._values[key] = value

    def clear(self) -> None:
        self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


def forget_choices() -> None:
    """Clears every cache of plans, since the next choice may differ."""
    for each in list(Bounded._all):
        each.clear()
