"""Markdown tables, and where they go."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """The lines of a table, without the columns that say nothing."""
    rows = list(rows)
    kept = [column for column in range(len(headings)) if any(row[column] for row in rows)]
    lines = [[headings[column] for column in kept], ["---:" if headings[column] in right else "---" for column in kept]]
    lines += [[row[column].replace("|", "\\|") for column in kept] for row in rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def code(text: object) -> str:
    return f"`{text}`"


def between(text: str, name: str, content: str) -> str:
    """What stands between the markers of this name is replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    result, places = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{content}\n{end}", text, flags=re.DOTALL)
    if places != 1:
        raise ValueError(f"wanted one place between {begin} and {end}, found {places}")
    return result
