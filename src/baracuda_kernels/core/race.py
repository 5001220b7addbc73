"""Timing the candidates of a plan against each other, once per problem and device.

Each candidate runs on scratch operands of its own making, so nothing of the caller's is touched. The winner is remembered
for the life of the process: the same problem then gets the same kernel, and so the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import encode
from baracuda_kernels.core.errors import Unsupported
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut
from baracuda_kernels.core.workspace import Workspace

if TYPE_CHECKING:
    from baracuda_kernels.core.kernel import Kernel
    from baracuda_kernels.core.plan import Plan

_SECONDS_PER_CANDIDATE = 0.2
_MOST_RUNS = 50
_remembered: dict[tuple[type, Descriptor, Device, str], float] = {}


def fastest(plans: Mapping[Kernel, Plan[Any, Any]], stream: Stream) -> tuple[Kernel, dict[Kernel, tuple[Reason, ...]]]:
    """The quickest of the prepared plans, and for each of the others the time that lost."""
    times = {kernel: _time_of(plan, stream) for kernel, plan in plans.items()}
    best = min(times, key=times.__getitem__)
    lost: dict[Kernel, tuple[Reason, ...]] = {
        kernel: (Reason(ReasonCode.SLOWER, kernel.name, f"{seconds * 1e6:.1f} µs", f"{best.name}'s {times[best] * 1e6:.1f} µs"),)
        for kernel, seconds in times.items()
        if kernel is not best
    }
    return best, lost


def _time_of(plan: Plan[Any, Any], stream: Stream) -> float:
    key = (type(plan), plan.descriptor, plan.device, plan.kernel.name)
    if key not in _remembered:
        _remembered[key] = _measure(plan, stream)
    return _remembered[key]


def _measure(plan: Plan[Any, Any], stream: Stream) -> float:
    import numpy

    rng = numpy.random.default_rng(0)
    try:
        operands = {
            operand.name: _random_operand(rng, operand.shapes(plan.descriptor)[0], operand.element(plan.descriptor), plan.device)
            for operand in plan.args_type.OPERANDS
            if operand.presence(plan.descriptor) is not False
        }
        room = _on(plan.device, numpy.zeros(plan.workspace_size, numpy.uint8)) if plan.workspace_size else None
        workspace = Workspace.none() if room is None else Workspace.borrowed(room)
    except (MemoryError, RuntimeError):  # what NumPy and PyTorch raise where there is no room
        reason = Reason(ReasonCode.CANNOT_MEASURE, plan.kernel.name, "too little memory for scratch operands", "effort=ESTIMATE")
        raise Unsupported(f"{type(plan).__name__} for {plan.descriptor}", [reason]) from None
    args = plan.args_type(**operands)
    best, spent, runs = math.inf, 0.0, 0
    while runs < 3 or (spent < _SECONDS_PER_CANDIDATE and runs < _MOST_RUNS):
        seconds = _seconds(plan, stream, workspace, args)
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
    return best


def _seconds(plan: Plan[Any, Any], stream: Stream, workspace: Workspace, args: Any) -> float:
    if plan.device.kind is DeviceKind.CUDA:
        import torch

        torch.cuda.synchronize(plan.device.index)
        start = time.perf_counter()
        plan.run(stream, workspace, args)
        torch.cuda.synchronize(plan.device.index)
    else:
        start = time.perf_counter()
        plan.run(stream, workspace, args)
    return time.perf_counter() - start


def _random_operand(rng: Any, shape: tuple[int, ...], element: ElementKind, device: Device) -> TensorMut:
    """Values between 1/2 and 1, whatever the element: nothing that runs faster or slower than real data."""
    values = _on(device, encode(rng.uniform(0.5, 1.0, shape), element))
    return TensorMut.strided(values, shape, row_major(shape), element=element)


def _on(device: Device, array: Any) -> Any:
    if device.kind is DeviceKind.CPU:
        return array
    import torch

    return torch.from_numpy(array).to(str(device))
