"""How long a plan will take, before it runs: what this machine's memory and matrix units allow, and how near the kernel comes to that.

The machine's rates are measured once per process, in a fraction of a second. How near each kernel comes is known from recorded runs:
`shares.json` is made from them by `make docs`.
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

from baracuda_kernels.bench.problems import bytes_moved
from baracuda_kernels.core.descriptor import element_of
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.plan import Plan

__all__ = ["Prediction", "predict"]

_COPIED = {DeviceKind.CPU: 1 << 25, DeviceKind.CUDA: 1 << 28}  # bytes, more than caches hold
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
    """For contiguous operands that are in no cache."""
    descriptor, device = plan.descriptor, plan.device
    moved, flops = bytes_moved(type(plan), descriptor), plan.cases.flops(descriptor)
    floor = moved / _copy_rate(device)
    if plan.cases.on_matrix_units and device.kind is DeviceKind.CUDA:
        floor = max(floor, flops / _product_rate(device, element_of(descriptor)))
    recorded = _shares().get(str(device.kind), {}).get(plan.kernel.name, [])
    nearest = min(recorded, key=lambda each: _distance(each["problem"], descriptor.plain()), default=None)
    return Prediction(moved, flops, floor, None if nearest is None else nearest["share"])


@functools.cache
def _shares() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By kind of device and kernel: problems, and the share that was reached."""
    text = resources.files("baracuda_kernels.bench").joinpath("shares.json").read_text(encoding="utf-8")
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


@functools.cache
def _copy_rate(device: Device) -> float:
    """Bytes per second, read and written bytes both counted."""
    import torch

    size = _COPIED[device.kind]
    source, target = (torch.ones(size, dtype=torch.uint8, device=str(device)) for _ in range(2))
    return 2 * size / _shortest(lambda: target.copy_(source), device)


@functools.cache
def _product_rate(device: Device, element: ElementKind) -> float:
    """Operations per second of a large matrix product."""
    import torch

    from baracuda_kernels.interop.torch_views import DTYPES

    shape = (_PRODUCT_EXTENT, _PRODUCT_EXTENT)
    left, right = (torch.rand(shape, device=str(device)).to(DTYPES[element]) for _ in range(2))
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
