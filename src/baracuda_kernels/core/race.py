"""Timing the candidates of a plan against each other, once per problem and machine.

They run in turns on scratch operands of the race's own making, so nothing of the caller's is touched. What is found is remembered for
the life of the process, and can be saved: the same problem then gets the same candidate, and so the same bits.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core import wisdom
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import aligned_bytes, encode
from baracuda_kernels.core.errors import Error, KernelInternal, Unsupported
from baracuda_kernels.core.kernel import Candidate
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.core.machine import machine_of
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.registry import op_name
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut
from baracuda_kernels.core.workspace import Workspace

if TYPE_CHECKING:
    from baracuda_kernels.core.plan import Plan

_SECONDS_PER_CANDIDATE = 0.2
_FEWEST_ROUNDS, _MOST_ROUNDS = 3, 50
_DIFFERENT_VALUES = 1 << 20  # of an operand, after which they repeat: making them must not take longer than the race
_CYCLES_TO_QUEUE = 500_000  # of a GPU, about 0.3 ms: longer than the host takes to queue the launches of a plan
_CLEARLY = 0.97  # of the first candidate's time: what is within noise of it does not take its place


def fastest(choices: Sequence[Candidate], seconds: Mapping[str, float]) -> Candidate:
    """The candidate with the highest priority, unless it was timed and another was clearly faster."""
    first = choices[0]
    timed = [choice for choice in choices if choice.name in seconds]
    if first not in timed:
        return first
    best = min(timed, key=lambda choice: seconds[choice.name])
    return best if seconds[best.name] < _CLEARLY * seconds[first.name] else first


def loaded_times(plan: type[Plan[Any, Any]], descriptor: Descriptor, device: Device) -> dict[str, float]:
    """The times of this problem on this machine in the loaded wisdom."""
    return wisdom.loaded.times(op_name(plan), descriptor, machine_of(device)) if len(wisdom.loaded) else {}


def remembered_times(
    plan: type[Plan[Any, Any]], descriptor: Descriptor, device: Device, choices: Sequence[Candidate]
) -> dict[str, float]:
    """Known times of these candidates: from the loaded wisdom or from this process, whichever has more of them."""
    wanted, op, machine = {choice.name for choice in choices}, op_name(plan), machine_of(device)
    known = [source.times(op, descriptor, machine) for source in (wisdom.loaded, wisdom.measured)]
    return max(({name: seconds for name, seconds in each.items() if name in wanted} for each in known), key=len)


def times(plan: type[Plan[Any, Any]], plans: Mapping[Candidate, Plan[Any, Any]], stream: Stream) -> dict[str, float]:
    """Seconds of each candidate by name, measured now and remembered."""
    found = measure({choice.name: ready for choice, ready in plans.items()}, stream)
    wisdom.measured.learn(op_name(plan), next(iter(plans.values())).descriptor, machine_of(stream.device), found)
    return found


def measure(plans: Mapping[str, Plan[Any, Any]], stream: Stream) -> dict[str, float]:
    """The shortest time of each, over rounds in which all take turns."""
    some = next(iter(plans.values()))
    try:
        # Memory of the stream's own: were the race interrupted, it would not go to others before the launches are over.
        with stream.current():
            return _measured(plans, stream)
    except Error:
        raise
    except (MemoryError, RuntimeError) as cause:  # what NumPy, PyTorch and kernels raise where there is no room
        reason = Reason(ReasonCode.CANNOT_MEASURE, some.kernel.name, str(cause) or "too little memory", "effort=ESTIMATE")
        raise Unsupported(f"{type(some).__name__} for {some.descriptor}", [reason]) from cause
    except Exception as cause:
        raise KernelInternal(f"{type(some).__name__}: the candidates for {some.descriptor} could not be timed: {cause}") from cause


def _measured(plans: Mapping[str, Plan[Any, Any]], stream: Stream) -> dict[str, float]:
    some = next(iter(plans.values()))
    args = _random_args(some)
    size = max(plan.workspace_size for plan in plans.values())
    workspace = Workspace.borrowed(_room(size, some.device)) if size else Workspace.none()
    best, spent, rounds = dict.fromkeys(plans, math.inf), 0.0, 0
    # Straight to the launches: a race is no run of the caller's, and is not recorded as one.
    launches = {
        name: functools.partial(plan.admit(args), args.addresses, workspace.address, stream) for name, plan in plans.items()
    }
    for launch in launches.values():  # what happens once only is not timed
        launch()
    while rounds < _FEWEST_ROUNDS or (spent < _SECONDS_PER_CANDIDATE * len(plans) and rounds < _MOST_ROUNDS):
        for name, launch in launches.items():
            seconds = _seconds(launch, stream)
            best[name], spent = min(best[name], seconds), spent + seconds
        rounds += 1
    return best


def _seconds(launch: Callable[[], None], stream: Stream) -> float:
    if stream.device.kind is DeviceKind.CUDA:
        return _device_seconds(launch, stream)
    start = time.perf_counter()
    launch()
    return time.perf_counter() - start


def _device_seconds(launch: Callable[[], None], stream: Stream) -> float:
    """Between two events on the stream. The device first waits until all is queued, so that the host's part is not counted."""
    import torch

    cuda: Any = torch.cuda  # partly without types
    index, queue = stream.device.index, stream.queue()
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    cuda.synchronize(index)
    with cuda.stream(queue):
        cuda._sleep(_CYCLES_TO_QUEUE)
    start.record(queue)
    launch()
    end.record(queue)
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def _random_args(plan: Plan[Any, Any]) -> Any:
    import numpy

    rng = numpy.random.default_rng(0)
    return plan.args_type(
        **{
            operand.name: _random_operand(rng, operand.shapes(plan.descriptor)[0], operand.element(plan.descriptor), plan.device)
            for operand in plan.args_type.OPERANDS
            if operand.presence(plan.descriptor) is not False
        }
    )


def _random_operand(rng: Any, shape: tuple[int, ...], element: ElementKind, device: Device) -> TensorMut:
    """Values between 1/2 and 1, for any dtype: they run as fast as real data."""
    count = math.prod(shape)
    values = encode(rng.uniform(0.5, 1.0, min(count, _DIFFERENT_VALUES) or 1), element)
    return TensorMut.strided(_on(device, values, count * element.size), shape, row_major(shape), element=element)


def _room(size: int, device: Device) -> Any:
    import numpy

    return _on(device, numpy.zeros(1, numpy.uint8), size)


def _on(device: Device, pattern: Any, size: int) -> Any:
    """So many bytes of a repeated pattern."""
    if device.kind is DeviceKind.CPU:  # as PyTorch and JAX lay their arrays
        import numpy

        aligned = aligned_bytes(size)
        aligned[...] = numpy.resize(pattern, size)
        return aligned
    import torch

    return torch.from_numpy(pattern).to(str(device)).repeat(-(-size // len(pattern)))[:size]
