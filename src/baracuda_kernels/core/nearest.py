"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["no_such"]

_MOST_LISTED = 12  # more than that nobody reads


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest name and all others, or, where these are many, with the nearest ones."""
    names = list(known)
    few = len(names) <= _MOST_LISTED
    nearest = difflib.get_close_matches(name.lower(), names, n=1 if few else 3)
    others = f"{', '.join(nearest[:-1])} or " if nearest[1:] else ""
    hint = f" Did you mean {others}{nearest[-1]}?" if nearest else ""
    listed = f" The {kind}s are: {', '.join(names)}." if few else ""
    return f"There is no {kind} {name!r} here.{hint}{listed}"
