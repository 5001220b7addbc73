"""How long a plan will take, before it runs: what this machine's memory and tensor cores allow, and how near the kernel comes to that.

A copy of as many bytes and the rate of matrix products are measured when they are first asked for, in a fraction of a second. How near each
kernel comes is known from recorded runs: `shares.json` is made from them by `make docs`.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from baracuda_kernels.core.cost.copies import copies
from baracuda_kernels.core.cost.timing import clock_of, interleaved
from baracuda_kernels.core.cost.traffic import bytes_moved
from baracuda_kernels.core.descriptor import element_of
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.plan import Plan

__all__ = ["Prediction", "predict"]

_MOST_COPIED = 1 << 29  # bytes, more than caches hold
_PRODUCT_EXTENT = 4096
_ROUNDS = 5
_UNLIKE = 8.0


@dataclass(frozen=True)
class Prediction:
    """Seconds; `share` is the part of the floor that the kernel reached on the most similar problem recorded, None if there is none."""

    bytes: int
    flops: int
    floor: float
    share: float | None

    @property
    def seconds(self) -> float | None:
        return None if self.share is None else self.floor / self.share


def predict(plan: Plan[Any, Any]) -> Prediction:
    """The predicted time, for contiguous operands that are in the caches that they fit."""
    descriptor, device = plan.descriptor, plan.device
    moved, flops = bytes_moved(type(plan), descriptor), plan.cases.flops(descriptor)
    floor = _copy_time(device, moved)
    if plan.cases.on_matrix_units and device.kind is DeviceKind.CUDA:
        floor = max(floor, flops / _product_rate(device, element_of(descriptor)))
    recorded = _shares().get(str(device.kind), {}).get(plan.kernel.name, [])
    nearest = min(recorded, key=lambda each: _distance(each["problem"], descriptor.plain()), default=None)
    # A record may have it ahead of its copies, which were not the best there are. No kernel is expected to be ahead of the floor.
    return Prediction(moved, flops, floor, None if nearest is None else min(1.0, nearest["share"]))


@functools.cache
def _shares() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Recorded problems and the share of the floor that was reached, by kind of device and kernel."""
    text = resources.files("baracuda_kernels.core.cost").joinpath("shares.json").read_text(encoding="utf-8")
    shares: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(text)
    return shares


def _distance(one: Any, other: Any) -> float:
    """How unlike two problems are: doublings between numbers, and much for what cannot be compared."""
    if isinstance(one, dict) and isinstance(other, dict):
        return sum(_distance(one.get(name), value) for name, value in other.items())
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return sum(map(_distance, one, other))
    if _is_number(one) and _is_number(other):
        return abs(math.log2((abs(one) + 1) / (abs(other) + 1)))
    return 0.0 if one == other else _UNLIKE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@functools.lru_cache(maxsize=256)
def _copy_time(device: Device, moved: int) -> float:
    """The time of the fastest copy of so many bytes, repeated in the same memory; extrapolated in proportion beyond the caches."""
    size = min(moved, _MOST_COPIED)
    times = interleaved(copies(size, device), _ROUNDS, clock_of(device))
    return min(each.minimum for each in times.values()) * moved / max(1, size)


@functools.cache
def _product_rate(device: Device, element: ElementKind) -> float:
    """Operations per second of a large matrix product."""
    import torch

    shape = (_PRODUCT_EXTENT, _PRODUCT_EXTENT)
    left, right = (torch.rand(shape, device=str(device)).to(getattr(torch, element.framework_name)) for _ in range(2))
    out = torch.empty_like(left)
    return 2 * _PRODUCT_EXTENT**3 / _shortest(lambda: torch.matmul(left, right, out=out), device)


def _shortest(work: Callable[[], object], device: Device) -> float:
    import torch

    def wait() -> None:
        if device.kind is DeviceKind.CUDA:
            torch.cuda.synchronize(device.index)

    best = float("inf")
    for _ in range(_ROUNDS):
        wait()
        start = time.perf_counter()
        work()
        wait()
        best = min(best, time.perf_counter() - start)
    return best
