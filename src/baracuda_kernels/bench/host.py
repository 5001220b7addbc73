"""What one call costs on the host: the plan, the function, the PyTorch operator, and PyTorch's own, on a tensor too small to matter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.bench.engine import Settings, workspace_for
from baracuda_kernels.bench.problems import Problem, describe, field_types
from baracuda_kernels.core import registry
from baracuda_kernels.core.cost.timing import Times, interleaved
from baracuda_kernels.core.descriptor import Descriptor, Shape
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.errors import InvalidProblem, KernelInternal, Unsupported
from baracuda_kernels.core.peers import ALLOCATING, GIVEN, PeerUnavailable, peers_of
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind
from baracuda_kernels.core.stream import Stream

ARGS_ONCE, ARGS_EACH_CALL, FUNCTION = "plan.run", "plan.run, new args", "function"
OPERATOR, RECORDED = "PyTorch operator", "PyTorch operator, recorded"  # without a gradient and with one


@dataclass
class HostRow:
    """What a call costs when there is next to nothing to compute."""

    op: str
    problem: str
    kernel: str
    times: dict[str, Times]


def measure_host(op: str, plan: type[Plan[Any, Any]], settings: Settings) -> HostRow | None:
    """None for an op that has no [4,8] problem."""
    shapes = [name for name, hint in field_types(plan.descriptor_type).items() if hint == Shape]
    if len(shapes) != 1:
        return None
    try:
        descriptor = plan.cases.from_options({shapes[0]: (4, 8)})
        chosen = plan.select(Stream.on(settings.device), descriptor)
    except (InvalidProblem, Unsupported, KernelInternal):
        return None
    problem = Problem(plan, descriptor, device=settings.device)
    stream, workspace, operands = Stream.on(settings.device), workspace_for(chosen), problem.operands
    args = plan.args_type(**operands)
    contenders: dict[str, Callable[[], object]] = {
        ARGS_ONCE: lambda: chosen.run(stream, workspace, args),
        ARGS_EACH_CALL: lambda: chosen.run(stream, workspace, plan.args_type(**operands)),
    }
    contenders |= _functions(op, descriptor, operands)
    for name, call in peers_of(plan, descriptor, operands):
        if name in (ALLOCATING, GIVEN):
            with contextlib.suppress(PeerUnavailable):
                call()
                contenders[name] = call
    if settings.device.kind is DeviceKind.CUDA:
        contenders |= _launches_to_compare(chosen, args, operands)
    with _one_torch_thread():
        times = interleaved(contenders, settings.rounds * 5)
    return HostRow(op, describe(descriptor), chosen.kernel.name, times)


def _functions(op: str, descriptor: Descriptor, operands: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """The op as a function and as a PyTorch operator, where its default options state this problem."""
    from baracuda_kernels.torch.operators import entry

    function = registry.functions().get(op)
    if function is None or any(option.is_required for option in function.options.values()):
        return {}
    named = {function.names.get(name, name): operand for name, operand in operands.items()}
    given: list[Any] = [named.get(name) for name in function.inputs]
    while given and given[-1] is None:  # what stands last and is left out may only be given by name
        given.pop()
    if function.select(*given).descriptor != descriptor:
        return {}
    operator = entry(op)
    calls: dict[str, Callable[[], object]] = {FUNCTION: lambda: function(*given), OPERATOR: lambda: operator(*given)}
    if function.gradient is not None:
        tracked = [array.detach().requires_grad_(array.is_floating_point()) for array in given]
        calls[RECORDED] = lambda: operator(*tracked)
    return calls


def _launches_to_compare(plan: Plan[Any, Any], args: Any, operands: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """What a launch costs elsewhere: PyTorch's simplest, and Triton's own dispatcher with the same kernel."""
    import torch

    x = next(iter(operands.values()))
    x = x if x.is_floating_point() else x.float()  # a condition has no exponential
    out = torch.empty_like(x)
    contenders: dict[str, Callable[[], object]] = {"torch.exp(out=)": lambda: torch.exp(x, out=out)}
    if plan.kernel.backend is BackendKind.TRITON and not plan.workspace_size:
        from baracuda_kernels.bench.triton_dispatch import through_triton

        contenders["Triton kernel[grid]"] = through_triton(plan, args, operands)
    return contenders


@contextlib.contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Runs PyTorch on one thread: waking a second one for 32 numbers takes milliseconds on a busy machine, which would be unfair."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
