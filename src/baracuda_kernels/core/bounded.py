"""What is remembered, within bounds."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

__all__ = ["Bounded", "forget_choices"]


class Bounded:
    """Remembers up to `most` values and then starts afresh. Threads share it: a look-up is one look into a dict."""

    _all: ClassVar[weakref.WeakSet[Bounded]] = weakref.WeakSet()

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: dict[Any, Any] = {}
        self.get = self.kept.get
        Bounded._all.add(self)

    def put(self, key: Any, value: Any) -> None:
        if len(self.kept) >= self.most:
            self.kept.clear()
        self.kept[key] = value

    def clear(self) -> None:
        self.kept.clear()

    def __len__(self) -> int:
        return len(self.kept)


def forget_choices() -> None:
    """Forgets every plan that was kept for the next call, since the next choice may be another."""
    for each in list(Bounded._all):
        each.clear()
