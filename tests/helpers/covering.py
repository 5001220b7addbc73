"""Which of many combinations are tried: all of them would be too many. The same ones every time."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from typing import Any

Values = set[tuple[str, Hashable]]


def values_of(problem: Any) -> Values:
    """The fields of a descriptor, each with its value."""
    return {(field.name, getattr(problem, field.name)) for field in fields(problem)}


def one_of_each(problems: Sequence[Values], turn: int = 0) -> list[int]:
    """Places of a few problems in which every value occurs that any has; in another turn others, as far as there are others."""
    missing, chosen = Values().union(*problems), []
    for place in _scattered(len(problems), turn):
        if missing & problems[place]:
            missing -= problems[place]
            chosen.append(place)
    return sorted(chosen)


def by_pairs(problems: Sequence[Values], ways: Sequence[Any], admits: Callable[[int, Any], bool]) -> list[list[Any]]:
    """For each problem some of the ways in which it can be tried, so that every value meets every way."""
    tried: list[list[Any]] = [[] for _ in problems]
    for turn, way in enumerate(ways):
        admitted = [place for place in range(len(problems)) if admits(place, way)]
        for number in one_of_each([problems[place] for place in admitted], turn):
            tried[admitted[number]].append(way)
    return tried


def in_turn(problems: Sequence[Values], ways: Sequence[Any], admits: Callable[[int, Any], bool]) -> list[list[Any]]:
    """The same with every way in one problem, in another one each as far as there are others."""
    tried: list[list[Any]] = [[] for _ in problems]
    for turn, way in enumerate(ways):
        admitted = [place for place in range(len(problems)) if admits(place, way)]
        if admitted:
            tried[admitted[_scattered(len(admitted), turn)[0]]].append(way)
    return tried


def _scattered(count: int, turn: int) -> list[int]:
    """All places, neighbours far from each other, so that few of them meet many values; begun at another one in each turn."""
    step = next(step for step in range(max(1, round(0.618 * count)), 2 * count + 2) if math.gcd(step, count) == 1 or count < 2)
    return [(turn + number) * step % count for number in range(count)]
