"""What to tell who asks for something by a name that nothing has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["no_such"]


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest name, and all the others."""
    names = list(known)
    nearest = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    return f"There is no {kind} {name!r} here.{hint} The {kind}s are: {', '.join(names)}."
