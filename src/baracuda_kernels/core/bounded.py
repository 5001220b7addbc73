"""Bounded caches."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

__all__ = ["Bounded", "Once", "forget_choices"]

T = TypeVar("T")


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


class Once(Generic[T]):
    """A property that is computed when it is first asked for. `functools.cached_property` has a lock in Python 3.11, one for all instances,
    which the child of a fork could find taken."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, of: Any, kind: type | None = None) -> T:
        found = self.compute(of)
        vars(of)[self.name] = found  # which Python finds first from now on
        return found


def forget_choices() -> None:
    """Clears every cache of plans, since the next choice may differ."""
    for each in list(Bounded._all):
        each.clear()
