"""Contenders timed in turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core.device import Device, DeviceKind

_SHORTEST_SAMPLE = 200e-6  # seconds; quicker calls are timed many at a time
_MOST_REPEATS = 10_000
_IDLE = 0.02  # seconds until the threads of other libraries have stopped waiting for more work at full speed


@dataclass(frozen=True)
class Times:
    """Seconds per call, over the rounds of one run."""

    median: float
    minimum: float

    def scaled(self, factor: float) -> Times:
        return Times(self.median * factor, self.minimum * factor)


Clock = Callable[[Callable[[], object], int], float]
"""Seconds per call: `clock(call, repeats)`."""


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int, clock: Clock | None = None) -> dict[str, Times]:
    """Every contender once per round, in the given order, after a warm-up. By default the host's clock is read."""
    clock = host_seconds if clock is None else clock
    repeats = {name: _repeats(call, clock) for name, call in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in contenders.items():
                if clock is host_seconds:
                    time.sleep(_IDLE)
                call()  # untimed: the previous contender's cache lines go
                samples[name].append(clock(call, repeats[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Times(statistics.median(seconds), min(seconds)) for name, seconds in samples.items()}


def _repeats(call: Callable[[], object], clock: Clock) -> int:
    call()
    call()
    repeats = 1
    while repeats < _MOST_REPEATS and clock(call, repeats) * repeats < _SHORTEST_SAMPLE:
        repeats *= 4
    return repeats


def clock_of(device: Device) -> Clock:
    return host_seconds if device.kind is DeviceKind.CPU else cuda_seconds


def cuda_seconds(call: Callable[[], object], repeats: int) -> float:
    """Between two events on the current stream, so that queueing costs nothing as long as the device is the slower one."""
    import torch

    cuda: Any = torch.cuda
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / repeats


def host_seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
