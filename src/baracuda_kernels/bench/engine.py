"""One row of the bench: check, then time ours, the copy floor, the other kernels and the peers in the same rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from baracuda_kernels.bench.correct import Comparison, compare
from baracuda_kernels.bench.problems import Problem, describe, poison
from baracuda_kernels.core import registry
from baracuda_kernels.core.cost.copies import COPIES, copies
from baracuda_kernels.core.cost.layouts import Layouts, describe_layouts
from baracuda_kernels.core.cost.timing import Times, clock_of, interleaved
from baracuda_kernels.core.cost.traffic import bytes_moved
from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, KernelInternal, Unsupported
from baracuda_kernels.core.kernel import Candidate
from baracuda_kernels.core.peers import PeerUnavailable, peers_of
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import Effort, PlanPreference
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.workspace import Workspace


class Task(NamedTuple):
    """A problem to time."""

    op: str
    plan: type[Plan[Any, Any]]
    descriptor: Descriptor
    layouts: Layouts = MappingProxyType({})

    def __str__(self) -> str:
        lying = describe_layouts(self.layouts)
        return f"{describe(self.descriptor)}{lying and ', '}{lying}"


CPU = Device.cpu()
PRODUCT = "torch.matmul"  # of as many operations, in the problem's element
FLOORS = (*COPIES, PRODUCT)
MEASURED = "measured choice"  # what a race chooses


@dataclass(frozen=True)
class Settings:
    rounds: int = 9
    device: Device = CPU
    without: frozenset[str] = frozenset()  # names of peers to leave out
    other_kernels: bool = True
    measured: bool = False  # whether what a race chooses is timed too
    checked: bool = True  # whether results are compared with the reference first


@dataclass
class BenchRow:
    """One problem. A kernel in `wrong` has no time; if that is the chosen one, nothing is timed."""

    op: str
    problem: str
    descriptor: dict[str, Any]
    bytes: int
    flops: int
    kernel: str | None = None
    errors: list[Comparison] = field(default_factory=list)
    times: dict[str, Times] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    layouts: dict[str, str] = field(default_factory=dict)  # of inputs that do not lie row by row

    @property
    def ours(self) -> Times | None:
        return self.times.get(self.kernel) if self.kernel else None

    @property
    def floor(self) -> Times | None:
        """The faster of the copies, or the matrix product where that takes longer."""
        copies = [self.times[name] for name in COPIES if name in self.times]
        products = [self.times[name] for name in (PRODUCT,) if name in self.times]
        fastest = min(copies, key=_median, default=None)
        return fastest and max([fastest, *products], key=_median)

    @property
    def share_of_floor(self) -> float | None:
        """Floor / ours: 1 at the speed of the floor, less if slower."""
        return self.floor.median / self.ours.median if self.floor and self.ours else None

    def times_faster_than(self, contender: str) -> float | None:
        """The contender's time divided by ours."""
        return self.times[contender].median / self.ours.median if self.ours and contender in self.times else None

    def others(self) -> list[str]:
        """Every contender but ours and the floor."""
        return [name for name in self.times if name not in (*FLOORS, self.kernel)]

    def worst(self) -> Comparison | None:
        """The output nearest to its bound."""
        return max(self.errors, key=lambda comparison: comparison.error / (comparison.bound or 1.0), default=None)


def showcase(ops: list[str], per_element: int | None = None, kind: DeviceKind = DeviceKind.CPU) -> Iterator[Task]:
    """The problems to time: all showcase problems of the ops, or a few of each op and dtype, the first and others spread evenly."""
    plans = registry.plans()
    for op in ops:
        by_element: dict[ElementKind, list[Descriptor]] = {}
        cases = plans[op].cases
        for descriptor in cases.showcase() if kind is DeviceKind.CPU else cases.cuda_showcase():
            by_element.setdefault(element_of(descriptor), []).append(descriptor)
        for descriptors in by_element.values():
            for descriptor in descriptors if per_element is None else _spread(descriptors, per_element):
                for layouts in cases.showcase_layouts(descriptor) if per_element is None else ({},):
                    yield Task(op, plans[op], descriptor, layouts)


def varied(ops: list[str], field_and_values: str, kind: DeviceKind = DeviceKind.CPU) -> Iterator[Task]:
    """The first showcase problem of each op, with each of the values ("seq_len=1024,4096") of one field."""
    name, _, values = field_and_values.partition("=")
    for op in ops:
        first = next(showcase([op], 1, kind))
        for value in values.split(","):
            yield first._replace(descriptor=replace(first.descriptor, **{name: int(value)}))


def of_every_kind(ops: list[str], device: Device) -> Iterator[Task]:
    """The first showcase problem of each op and dtype, for every kind of the op."""
    for first in showcase(ops, 1, device.kind):
        given = {each.name: getattr(first.descriptor, each.name) for each in fields(first.descriptor)}
        given.pop("parameters", None)  # which belong to a kind
        for kind in type(given["kind"]) if "kind" in given else ():
            with contextlib.suppress(Error):  # of a kind that does not have the element
                descriptor = first.plan.cases.from_options(given | {"kind": kind})
                if any(not [*kernel.reasons_against(descriptor, device, PlanPreference())] for kernel in first.plan.kernels):
                    yield first._replace(descriptor=descriptor)
        if "kind" not in given:
            yield first


def _spread(items: list[Descriptor], count: int) -> list[Descriptor]:
    """`count` of them, the first and the last included."""
    last = len(items) - 1
    return [items[at] for at in sorted({at * last // max(1, count - 1) for at in range(count)})]


def measure(task: Task, settings: Settings) -> BenchRow:
    op, plan, descriptor, layouts = task
    moved, flops = bytes_moved(plan, descriptor, layouts), plan.cases.flops(descriptor)
    row = BenchRow(op, str(task), descriptor.plain(), moved, flops, layouts=dict(layouts))
    try:
        chosen = plan.select(Stream.on(settings.device), descriptor)
    except Unsupported as refusal:
        row.notes.append(str(refusal))
        return row
    except KernelInternal as failure:
        row.wrong["select"] = str(failure)
        return row
    row.kernel = chosen.kernel.name
    problem = Problem(plan, descriptor, device=settings.device, layouts=layouts)
    expected = problem.expected() if settings.checked else None
    if not settings.checked:
        row.notes.append("not compared with the reference")

    ours: dict[str, Callable[[], object]] = {}
    plans = {selected.kernel.name: selected for selected in [chosen, *(_other_kernels(chosen) if settings.other_kernels else ())]}
    if settings.measured:
        plans[MEASURED] = plan.select(Stream.on(settings.device), descriptor, PlanPreference(effort=Effort.MEASURE))
        row.notes.append(f"{MEASURED}: {Candidate(plans[MEASURED].kernel, plans[MEASURED].tile).name}")
    for name, selected in plans.items():
        try:
            ours[name], comparisons = _run_and_compare(selected, problem, expected)
        except KernelInternal as failure:
            row.wrong[name] = str(failure)
            continue
        row.errors = comparisons if selected is chosen else row.errors
        past_bound = [str(comparison) for comparison in comparisons if not comparison.is_right]
        if past_bound:
            del ours[name]
            row.wrong[name] = "; ".join(past_bound)
    del expected
    if row.kernel in row.wrong:
        return row

    product, operations = _product(flops, plan, descriptor, settings.device)
    contenders = copies(row.bytes, settings.device) | product | ours | _ready_peers(problem, settings, row.notes)
    row.times = interleaved(contenders, settings.rounds, clock_of(settings.device))
    if PRODUCT in row.times:
        row.times[PRODUCT] = row.times[PRODUCT].scaled(flops / operations)
    return row


def workspace_for(plan: Plan[Any, Any]) -> Workspace:
    import torch

    size = plan.workspace_size
    return Workspace.borrowed(torch.empty(size, dtype=torch.uint8, device=str(plan.device))) if size else Workspace.none()


def _run_and_compare(
    plan: Plan[Any, Any], problem: Problem, expected: dict[str, Any] | None
) -> tuple[Callable[[], object], list[Comparison]]:
    """The launch to time, and how near its result is to the reference."""
    for output in problem.outputs().values():
        poison(output)
    stream, workspace, args = Stream.on(plan.device), workspace_for(plan), plan.args_type(**problem.operands)
    plan.run(stream, workspace, args)
    comparisons = [] if expected is None else compare(plan, problem.outputs(), expected)
    return lambda: plan.run(stream, workspace, args), comparisons


def _other_kernels(chosen: Plan[Any, Any]) -> Iterator[Plan[Any, Any]]:
    """Every other kernel that can serve the same problem."""
    for kernel in chosen.kernels:
        if kernel is not chosen.kernel:
            with contextlib.suppress(Unsupported):
                yield type(chosen).force(kernel.name, Stream.on(chosen.device), chosen.descriptor)


def _product(
    flops: int, plan: type[Plan[Any, Any]], descriptor: Any, device: Device
) -> tuple[dict[str, Callable[[], object]], int]:
    """A square matrix product of about as many operations, for ops that are made of such products, and its operations."""
    if not plan.cases.on_matrix_units or device.kind is not DeviceKind.CUDA:
        return {}, 1
    import torch

    from baracuda_kernels.targets.aten import DTYPES

    # Large enough that the tensor cores are busy; the time is scaled.
    extent = max(4096, round((flops / 2) ** (1 / 3) / 256) * 256)
    dtype = DTYPES[element_of(descriptor)]
    # Normal numbers: a device multiplies those between 0 and 1 faster, since fewer of their bits change.
    left, right = (torch.randn(extent, extent, device=str(device), dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    return {PRODUCT: lambda: torch.matmul(left, right, out=out)}, 2 * extent**3


def _median(times: Times) -> float:
    return times.median


def _ready_peers(problem: Problem, settings: Settings, notes: list[str]) -> dict[str, Callable[[], object]]:
    """The peers that could be set up; a note for each that could not."""
    ready = {}
    for name, call in peers_of(problem.plan, problem.descriptor, problem.operands):
        if name in settings.without:
            continue
        try:
            call()
        except (PeerUnavailable, RuntimeError, TypeError) as why:  # PyTorch's words for what it does not have
            notes.append(f"{name}: {why}")
        else:
            ready[name] = call
    if not ready:
        notes.append("no peers took part")
    return ready
