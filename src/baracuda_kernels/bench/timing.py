"""Contenders timed in turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SHORTEST_SAMPLE = 200e-6  # seconds; quicker calls are timed many at a time
_MOST_REPEATS = 10_000


@dataclass(frozen=True)
class Times:
    """Seconds per call, over the rounds of one run."""

    median: float
    minimum: float


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Every contender once per round, in the given order, after a warm-up."""
    repeats = {name: _repeats(call) for name, call in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in contenders.items():
                call()  # untimed: the previous contender's threads and cache lines go
                samples[name].append(_seconds(call, repeats[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Times(statistics.median(seconds), min(seconds)) for name, seconds in samples.items()}


def _repeats(call: Callable[[], object]) -> int:
    call()
    call()
    repeats = 1
    while repeats < _MOST_REPEATS and _seconds(call, repeats) * repeats < _SHORTEST_SAMPLE:
        repeats *= 4
    return repeats


def _seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
