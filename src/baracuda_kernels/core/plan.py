"""Selection and launch, once for all ops."""

from __future__ import annotations

import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

from baracuda_kernels.core import notice, race, recording, registry
from baracuda_kernels.core.args import Access, Args
from baracuda_kernels.core.cases import Cases
from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import Error, KernelInternal, Unsupported, WorkspaceTooSmall, rejection, typed
from baracuda_kernels.core.explanation import Explanation
from baracuda_kernels.core.kernel import Bind, Candidate, CompilesWhenBound, Kernel, Launch, candidates
from baracuda_kernels.core.layout import Layout, may_share_memory
from baracuda_kernels.core.preference import Effort, PlanPreference
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import EpilogueKind, KernelSku, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.core.workspace import ALIGNMENT, Workspace

__all__ = ["Plan", "Verdict"]

D = TypeVar("D", bound=Descriptor)
A = TypeVar("A", bound=Args)

_Unfit = dict[str, tuple[Reason, ...]]
"""Candidates of a race that cannot run on the device, and why."""

_NO_WORKSPACE = Workspace.none()
_MOST_LAYOUTS = 1024  # combinations a plan remembers before it starts afresh


class Verdict:
    """Whether a plan can run a set of args: true, or every reason why not."""

    __slots__ = ("reasons", "subject")

    def __init__(self, subject: str, reasons: Iterable[Reason]) -> None:
        self.subject = subject
        self.reasons = tuple(reasons)

    def __bool__(self) -> bool:
        return not self.reasons

    def raise_if_rejected(self) -> None:
        """Raises the typed error that `run` would raise, with every reason."""
        if self.reasons:
            raise rejection(self.subject, self.reasons)

    def __repr__(self) -> str:
        return f"Verdict({'accepted' if self else '; '.join(map(str, self.reasons))})"


class Plan(Generic[D, A]):
    """A selected kernel: immutable, reusable, safe to share between threads.

    A subclass declares its op: `category`, `op` (the name of the descriptor's kind field, or the kind itself), `kernels` in the
    order in which they are tried, a `reference` in NumPy float64 that takes the descriptor and the inputs by name and returns the
    outputs in order, and the `cases` it is tried on. Everything else is here.
    """

    category: ClassVar[OpCategory]
    op: ClassVar[str | Enum]
    aux_element: ClassVar[str | None] = None
    kernels: ClassVar[tuple[Kernel, ...]]
    reference: ClassVar[Callable[..., Any]]
    cases: ClassVar[Cases[Any]]
    descriptor_type: ClassVar[type[Descriptor]]
    args_type: ClassVar[type[Args]]

    descriptor: D  # what it computes

    def __init_subclass__(cls) -> None:
        for base in getattr(cls, "__orig_bases__", ()):
            if typing.get_origin(base) is Plan:
                cls.descriptor_type, cls.args_type = typing.get_args(base)
        registry.register(cls)

    # --- select ---------------------------------------------------------------------------------------------------------------

    @classmethod
    def select(cls, stream: Stream, descriptor: D, preference: PlanPreference | None = None) -> Self:
        """Checks the problem, chooses a kernel and compiles it. Raises `Unsupported`, with every candidate's reasons, if there is none."""
        return cls._select(cls.kernels, stream, descriptor, preference)

    @classmethod
    def force(cls, name: str, stream: Stream, descriptor: D, preference: PlanPreference | None = None) -> Self:
        """Like `select`, with the kernel of that name as the only candidate: for tests, comparisons and bug reports."""
        only = tuple(kernel for kernel in cls.kernels if kernel.name == name)
        if not only:
            known = " or ".join(kernel.name for kernel in cls.kernels)
            raise rejection(f"{cls.__name__}.force", [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "name", name, known)])
        # Who names a kernel takes its precision as it is.
        return cls._select(only, stream, descriptor, PlanPreference(allow_tf32=True) if preference is None else preference)

    @classmethod
    def _select(cls, kernels: tuple[Kernel, ...], stream: Stream, descriptor: D, preference: PlanPreference | None) -> Self:
        preference = PlanPreference() if preference is None else preference
        with LOADING:
            against, choices = cls._choices(kernels, stream, descriptor, preference)
            if preference.effort is Effort.MEASURE:
                plans, unfit, seconds = cls._measured(choices, stream, descriptor, preference)
            else:
                plans, unfit, seconds = {}, {}, race.loaded_times(cls, descriptor, stream.device)
            chosen = race.fastest([choice for choice in choices if choice.name not in unfit], seconds)
            plan = plans[chosen] if chosen in plans else cls._prepared(chosen, stream, descriptor, preference)
        plan.seconds = seconds.get(chosen.name)
        rejected = {kernel.name: reasons for kernel, reasons in against.items() if reasons}
        rejected |= {
            choice.name: (_lost(choice, chosen, seconds),)
            for choice in choices
            if choice is not chosen and (choice.tile is None or choice.name in seconds)
        }
        rejected |= unfit
        plan.rejected = MappingProxyType(rejected)
        for watching in recording.active:
            watching.note_selection(plan)
        return plan

    @classmethod
    def compile_candidates(cls, stream: Stream, descriptor: D, preference: PlanPreference) -> None:
        """Compiles all candidates of a race for this problem; compiled code is kept on disk, where other processes find it."""
        _, choices = cls._choices(cls.kernels, stream, descriptor, preference)
        cls._all_prepared(choices, stream, descriptor, preference)

    @classmethod
    def candidate_names(cls, stream: Stream, descriptor: D, preference: PlanPreference) -> list[str]:
        """The names of the candidates of a race for this problem."""
        _, choices = cls._choices(cls.kernels, stream, descriptor, preference)
        return [choice.name for choice in choices]

    @classmethod
    def _choices(
        cls, kernels: tuple[Kernel, ...], stream: Stream, descriptor: D, preference: PlanPreference
    ) -> tuple[dict[Kernel, tuple[Reason, ...]], list[Candidate]]:
        """The reasons against each kernel, and the candidates that are left."""
        cls._check_selection(stream, descriptor, preference)
        against = {kernel: tuple(kernel.reasons_against(descriptor, stream.device, preference)) for kernel in kernels}
        able = [kernel for kernel in kernels if not against[kernel]]
        if not able:
            refused = {kernel.name: reasons for kernel, reasons in against.items()}
            everything = [reason for reasons in refused.values() for reason in reasons]
            raise Unsupported(f"{cls.__name__} for {descriptor} on {stream.device}", everything, refused)
        return against, candidates(able, descriptor, preference)

    @classmethod
    def _check_selection(cls, stream: object, descriptor: object, preference: object) -> None:
        wanted = (
            ("stream", stream, Stream),
            ("descriptor", descriptor, cls.descriptor_type),
            ("preference", preference, PlanPreference),
        )
        reasons = [
            Reason(ReasonCode.WRONG_TYPE, name, type(value).__name__, f"a {kind.__name__}")
            for name, value, kind in wanted
            if not isinstance(value, kind)
        ]
        if reasons:
            raise rejection(f"{cls.__name__}.select", reasons)

    @classmethod
    def _measured(
        cls, choices: list[Candidate], stream: Stream, descriptor: D, preference: PlanPreference
    ) -> tuple[dict[Candidate, Self], _Unfit, dict[str, float]]:
        """Plans that were prepared on the way, candidates that cannot run here, and the seconds of the others: as remembered if
        all are, so that none but the fastest is ever compiled, else raced now, all together."""
        known = race.remembered_times(cls, descriptor, stream.device, choices)
        plans, unfit = cls._all_prepared([choice for choice in choices if choice.name not in known], stream, descriptor, preference)
        if not plans:
            return plans, unfit, known
        others, also_unfit = cls._all_prepared(
            [choice for choice in choices if choice.name in known], stream, descriptor, preference
        )
        plans, unfit = plans | others, unfit | also_unfit
        return plans, unfit, race.times(cls, plans, stream)

    @classmethod
    def _all_prepared(
        cls, choices: Iterable[Candidate], stream: Stream, descriptor: D, preference: PlanPreference
    ) -> tuple[dict[Candidate, Self], _Unfit]:
        """Prepares all candidates for a race; a tile that is not a default may not fit this device, and is left out then."""
        plans: dict[Candidate, Self] = {}
        unfit: _Unfit = {}
        for choice in choices:
            try:
                plans[choice] = cls._prepared(choice, stream, descriptor, preference)
            except (KernelInternal, Unsupported) as cause:
                if choice.tile is None:
                    raise
                unfit[choice.name] = (Reason(ReasonCode.CANNOT_MEASURE, choice.name, str(cause), "a tile that fits this device"),)
        return plans, unfit

    @classmethod
    def _prepared(cls, choice: Candidate, stream: Stream, descriptor: D, preference: PlanPreference) -> Self:
        plan, kernel = cls.__new__(cls), choice.kernel
        plan.descriptor, plan.kernel, plan.tile = descriptor, kernel, choice.tile
        plan.preference, plan.device = preference, stream.device
        plan.rejected, plan.seconds = MappingProxyType({}), None
        plan._stream = stream
        plan._workspace_size = kernel.workspace(descriptor)
        plan._launches = {}
        plan._pairs = cls._overlap_pairs()
        with notice.about(cls, descriptor), typed(f"{cls.__name__}: {kernel.name} could not be prepared for {descriptor}"):
            plan._bind = kernel.prepare(cls.__module__.rpartition(".")[0], descriptor, stream.device, choice.tile)
            plan._get_ready()
        plan._sku = KernelSku(
            category=cls.category,
            op=getattr(descriptor, cls.op) if isinstance(cls.op, str) else cls.op,
            element=element_of(descriptor),
            aux_element=getattr(descriptor, cls.aux_element) if cls.aux_element else None,
            layout=kernel.layout,
            epilogue=EpilogueKind.NONE,
            arch=stream.device.arch(),
            backend=kernel.backend,
            precision_guarantee=choice.guarantee(descriptor),
            name=kernel.name,
        )
        return plan

    def _get_ready(self) -> None:
        """Binds contiguous operands, with and without the optional ones, and has kernels that compile per layout do it now."""
        if self.device.kind is DeviceKind.CPU:
            return
        for with_optional in (True, False):
            layouts = tuple(
                operand.contiguous_layout(self.descriptor, self.device)
                if operand.is_given(self.descriptor, with_optional)
                else None
                for operand in self.args_type.OPERANDS
            )
            if layouts not in self._launches:
                launch = self._launches[layouts] = self._bind(layouts)
                if isinstance(launch, CompilesWhenBound):
                    launch.get_ready()

    # --- what the plan tells -----------------------------------------------------------------------------------------------------

    kernel: Kernel  # the one that was chosen
    tile: Any  # None where it is the kernel's own rule's
    seconds: float | None  # of one run, where it was measured
    preference: PlanPreference  # that it was selected with
    device: Device  # that it runs on
    rejected: Mapping[str, tuple[Reason, ...]]  # every other candidate, with its reasons
    _stream: Stream
    _sku: KernelSku
    _workspace_size: int
    _bind: Bind
    _launches: dict[tuple[Layout | None, ...], Launch]
    _pairs: tuple[tuple[int, int, bool], ...]

    @property
    def sku(self) -> KernelSku:
        """The identity of the kernel that was chosen."""
        return self._sku

    @property
    def precision_guarantee(self) -> PrecisionGuarantee:
        """What the chosen kernel guarantees for this problem."""
        return self._sku.precision_guarantee

    @property
    def workspace_size(self) -> int:
        """Bytes that `run` needs."""
        return self._workspace_size

    def explain(self, with_times: bool = True) -> Explanation:
        """Why this kernel, its guarantees and its cost; `with_times` measures a copy of as many bytes."""
        return Explanation.of(self, with_times)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.descriptor}, {self._sku.name} on {self.device})"

    # --- checking ----------------------------------------------------------------------------------------------------------------

    def can_implement(self, args: A) -> Verdict:
        """Checks one set of args against the plan, finds every reason, changes nothing."""
        if not isinstance(args, self.args_type):
            return Verdict(self._subject, [Reason(ReasonCode.WRONG_TYPE, "args", type(args).__name__, self.args_type.__name__)])
        reasons = list(self._reasons_against_layouts(args.layouts))
        reasons += self._reasons_against_overlap(args)
        return Verdict(self._subject, reasons)

    @property
    def _subject(self) -> str:
        return f"{type(self).__name__} ({self._sku.name})"

    def _reasons_against_layouts(self, layouts: tuple[Layout | None, ...]) -> Iterator[Reason]:
        for operand, layout in zip(self.args_type.OPERANDS, layouts, strict=True):
            yield from operand.reasons_against(self.descriptor, layout, self.device)
            if layout is not None:
                yield from self.kernel.reasons_against_layout(operand.name, layout)

    @classmethod
    def _overlap_pairs(cls) -> tuple[tuple[int, int, bool], ...]:
        """Which operands must not overlap: (written, other, whether they may be exactly the same)."""
        operands = cls.args_type.OPERANDS
        return tuple(
            (i, j, other.name in written.may_be)
            for i, written in enumerate(operands)
            for j, other in enumerate(operands)
            if written.writes and i != j and not (other.writes and j < i)
        )

    def _reasons_against_overlap(self, args: Args) -> list[Reason]:
        reasons = []
        addresses, layouts = args.addresses, args.layouts
        for i, j, may_be_same in self._pairs:
            first, second = layouts[i], layouts[j]
            if first is None or second is None:
                continue
            at, other = addresses[i], addresses[j]
            if at + first.low >= other + second.high or other + second.low >= at + first.high:
                continue
            if at == other and may_be_same and _same_view(first, second):
                continue
            if may_share_memory(at, first, other, second):
                written, partner = self.args_type.OPERANDS[i], self.args_type.OPERANDS[j]
                wanted = f"memory of its own, or exactly {' or '.join(written.may_be)}" if written.may_be else "memory of its own"
                reasons.append(Reason(ReasonCode.ALIAS, written.name, f"memory that {partner.name} uses", wanted))
        return reasons

    # --- running -----------------------------------------------------------------------------------------------------------------

    def run(self, stream: Stream, workspace: Workspace, args: A) -> None:
        """Launches into the caller's memory. A rejected set of args raises, and nothing has been written."""
        try:
            ready = args.ready
        except AttributeError:  # what is no set of args is refused by `admit`
            ready = None
        launch = ready[1] if ready is not None and ready[0] is self else self.admit(args)
        if stream is not self._stream:
            self.check_stream(stream)
        if self._workspace_size:
            self._check_workspace(workspace, args)
        elif workspace is not _NO_WORKSPACE and not isinstance(workspace, Workspace):
            self._refuse(Reason(ReasonCode.WRONG_TYPE, "workspace", type(workspace).__name__, "a Workspace"))
        try:
            (self.noted(launch) if recording.active else launch)(args.addresses, workspace.address, stream)
        except Error:
            raise
        except Exception as cause:
            raise self.failure(cause) from cause

    def admit(self, args: A) -> Launch:
        """The launch for these args, checked. Results of checks are cached by layout."""
        launch = self._launches.get(args.layouts) if isinstance(args, self.args_type) else None
        if launch is None or self._reasons_against_overlap(args):
            self.can_implement(args).raise_if_rejected()
        if launch is None:
            launch = self._bound(args.layouts)
        args.ready = (self, launch)
        return launch

    def launch_for(self, layouts: tuple[Layout | None, ...]) -> Launch:
        """The launch for operands of these layouts, checked, whose results lie in memory of their own."""
        launch = self._launches.get(layouts)
        if launch is None:
            Verdict(self._subject, self._reasons_against_layouts(layouts)).raise_if_rejected()
            launch = self._bound(layouts)
        return launch

    def noted(self, launch: Launch) -> Launch:
        """The launch, noted by all recordings that are under way."""

        def run(addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
            watchers, failed, start = recording.active, 1, time.perf_counter_ns()
            try:
                launch(addresses, workspace, stream)
                failed = 0
            finally:
                spent = time.perf_counter_ns() - start
                for watcher in watchers:
                    watcher.note_run(self, spent, failed)

        return run

    def failure(self, cause: Exception) -> KernelInternal:
        """What is raised for a launch that raised `cause`."""
        return KernelInternal(f"{type(self).__name__}: {self._sku.name} failed for {self.descriptor}: {cause}")

    def check_stream(self, stream: object) -> None:
        """Raises for what is no stream of the plan's device."""
        if not isinstance(stream, Stream):
            self._refuse(Reason(ReasonCode.WRONG_TYPE, "stream", type(stream).__name__, "a Stream"))
        elif stream.device != self.device:
            self._refuse(Reason(ReasonCode.DEVICE, "stream", stream.device, self.device))

    def _bound(self, layouts: tuple[Layout | None, ...]) -> Launch:
        if len(self._launches) >= _MOST_LAYOUTS:
            self._launches.clear()
        failed = f"{type(self).__name__}: {self._sku.name} could not be bound for {self.descriptor}"
        with LOADING, notice.about(type(self), self.descriptor), typed(failed):
            launch = self._launches[layouts] = self._bind(layouts)
        return launch

    def _refuse(self, *reasons: Reason) -> None:
        raise rejection(type(self).__name__, reasons)

    def _check_workspace(self, workspace: object, args: Args) -> None:
        if not isinstance(workspace, Workspace):
            self._refuse(Reason(ReasonCode.WRONG_TYPE, "workspace", type(workspace).__name__, "a Workspace"))
            return
        if workspace.size < self._workspace_size or workspace.view is None:
            raise WorkspaceTooSmall(self._workspace_size, workspace.size, f"{type(self).__name__} workspace")
        view = workspace.view
        reasons = []
        if view.device != self.device:
            reasons.append(Reason(ReasonCode.DEVICE, "workspace", view.device, self.device))
        if view.address % ALIGNMENT:
            reasons.append(Reason(ReasonCode.MISALIGNED, "workspace", hex(view.address), f"a multiple of {ALIGNMENT} bytes"))
        for operand, address, layout in zip(self.args_type.OPERANDS, args.addresses, args.layouts, strict=True):
            if layout is not None and may_share_memory(view.address, view.layout, address, layout):
                reasons.append(Reason(ReasonCode.ALIAS, "workspace", f"memory that {operand.name} uses", "memory of its own"))
        if reasons:
            self._refuse(*reasons)

    @classmethod
    def outputs(cls) -> tuple[str, ...]:
        """The names of the operands that hold results."""
        return tuple(operand.name for operand in cls.args_type.OPERANDS if operand.access is Access.WRITE)


def _lost(choice: Candidate, winner: Candidate, seconds: Mapping[str, float]) -> Reason:
    """Why a candidate that could have run was not chosen."""
    if choice.name in seconds and winner.name in seconds:
        got, best = (f"{seconds[name] * 1e6:.1f} µs" for name in (choice.name, winner.name))
        if seconds[choice.name] > seconds[winner.name]:
            return Reason(ReasonCode.SLOWER, choice.name, got, f"{winner.name}'s {best}")
        return Reason(ReasonCode.NOT_CLEARLY_FASTER, choice.name, got, f"well below {winner.name}'s {best}")
    return Reason(ReasonCode.LATER_IN_ORDER, choice.name, f"after {winner.name}", winner.name)


def _same_view(a: Layout, b: Layout) -> bool:
    """The same places in the same order; the stride of an axis of extent 1 means nothing."""
    return a is b or (
        a.shape == b.shape
        and a.element is b.element
        and all(s == t for s, t, extent in zip(a.stride, b.stride, a.shape, strict=True) if extent > 1)
    )
