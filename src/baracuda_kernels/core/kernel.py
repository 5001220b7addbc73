"""Kernel records: what each kernel supports, with which guarantee and workspace. Capabilities are data; the bodies are elsewhere."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.device import CudaProfile, Device, DeviceKind
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.preference import Determinism, PlanPreference
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, LayoutSku, MathPrecision, PrecisionGuarantee
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.turns import LOADING, imported

__all__ = [
    "Bind",
    "Candidate",
    "CompilesForViews",
    "CompilesWhenBound",
    "Kernel",
    "Launch",
    "Limit",
    "at_most",
    "candidates",
    "cublas_order",
    "exact_order",
    "matrix_units",
    "rank_at_most",
]

Launch = Callable[[tuple[int, ...], int, Stream], None]
"""Runs on checked operands: `launch(addresses of the operands, address of the workspace, stream)`."""

Bind = Callable[[tuple[Layout | None, ...]], Launch]
"""Called once for each new combination of operand layouts; works out the geometry and returns the launch."""


@runtime_checkable
class CompilesWhenBound(Protocol):
    """A launch whose machine code depends on the layouts, and can be compiled before the first run."""

    def get_ready(self) -> None: ...


@runtime_checkable
class CompilesForViews(Protocol):
    """A launch whose machine code depends on the alignment of its operands as well."""

    def get_ready_for(self, offsets: Sequence[int]) -> None:
        """Compiles for views that begin so many bytes after the start of an allocation."""


Limit = Callable[[Descriptor], Iterator[Reason]]

_PACKAGES = {BackendKind.NUMBA: ("numba",), BackendKind.TRITON: ("triton", "torch"), BackendKind.ATEN: ("torch",)}
_DEVICES = {BackendKind.NUMBA: DeviceKind.CPU, BackendKind.TRITON: DeviceKind.CUDA, BackendKind.ATEN: DeviceKind.CPU}
_OLDEST_FOR_TRITON = (8, 0)
_SHARED_EVERYWHERE = 48 * 1024  # bytes that a block can have on every device


@functools.cache
def missing_packages(backend: BackendKind) -> tuple[str, ...]:
    return tuple(name for name in _PACKAGES[backend] if importlib.util.find_spec(name) is None)


def is_interpreted() -> bool:
    """Whether Triton's kernels are interpreted in this process, as TRITON_INTERPRET=1 asks."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def _no_workspace(descriptor: Any) -> int:
    return 0


def _no_others(descriptor: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Kernel:
    """One candidate of a plan.

    `entry` is "module:function" beside the op's declaration, imported only when the kernel is selected; the function takes the
    descriptor (a Triton kernel's also the device), compiles what it needs and returns a `Bind`.
    """

    name: str
    backend: BackendKind
    entry: str
    guarantee: Callable[[Any], PrecisionGuarantee]
    elements: tuple[ElementKind, ...] = FLOATS
    limits: tuple[Limit, ...] = ()
    workspace: Callable[[Any], int] = _no_workspace
    layout: LayoutSku = LayoutSku.STRIDED
    on: DeviceKind | None = None  # by default where the backend is at home
    shared_bytes: int = _SHARED_EVERYWHERE  # the most that a block of it uses, on CUDA
    other_tiles: Callable[[Any], Sequence[Any]] = _no_others  # beside its own rule's, for a problem; worth measuring

    @property
    def device(self) -> DeviceKind:
        return _DEVICES[self.backend] if self.on is None else self.on

    def runs_on(self, kind: DeviceKind) -> bool:
        """In Triton's interpreter, kernels written for CUDA run on the CPU's memory."""
        return kind is self.device or (kind is DeviceKind.CPU and self.backend is BackendKind.TRITON and is_interpreted())

    def reasons_against(self, descriptor: Descriptor, device: Device, preference: PlanPreference) -> Iterator[Reason]:
        """Every reason why this kernel cannot run this problem on this machine under this preference."""
        yield from self.reasons_against_machine(device)
        if preference.prefer_backend not in (None, self.backend):
            yield Reason(ReasonCode.NOT_PREFERRED, self.name, self.backend, preference.prefer_backend)
        unserved = list(self.reasons_against_problem(descriptor))
        # Workspace and guarantee are functions of problems that the kernel serves.
        yield from unserved or self._reasons_against_promises(descriptor, preference)

    def reasons_against_problem(self, descriptor: Descriptor) -> Iterator[Reason]:
        """Every reason why it supports this problem on no machine."""
        if element_of(descriptor) not in self.elements:
            yield Reason(ReasonCode.ELEMENT_NOT_SERVED, self.name, element_of(descriptor), " or ".join(map(str, self.elements)))
        for limit in self.limits:
            yield from limit(descriptor)

    def _reasons_against_promises(self, descriptor: Descriptor, preference: PlanPreference) -> Iterator[Reason]:
        needed, allowed = self.workspace(descriptor), preference.max_workspace_bytes
        if allowed is not None and needed > allowed:
            yield Reason(ReasonCode.WORKSPACE_LIMIT, self.name, f"{needed} bytes", f"at most {allowed} bytes")
        guarantee = self.guarantee(descriptor)
        if preference.determinism is Determinism.RUN_TO_RUN and not guarantee.deterministic:
            yield Reason(ReasonCode.NOT_DETERMINISTIC, self.name, "deterministic=False", "the same bits every run")
        if preference.batch_invariant and not guarantee.batch_invariant:
            wanted = "bits of a row that do not depend on the other rows"
            yield Reason(ReasonCode.NOT_BATCH_INVARIANT, self.name, "batch_invariant=False", wanted)
        if guarantee.math_precision is MathPrecision.TF32 and not preference.allow_tf32:
            yield Reason(ReasonCode.REDUCED_PRECISION, self.name, "products in TF32", "products in f32, or allow_tf32")

    def reasons_against_machine(self, device: Device) -> Iterator[Reason]:
        absent = device.reasons_absent()
        yield from absent
        if not self.runs_on(device.kind):
            yield Reason(ReasonCode.OTHER_DEVICE, self.name, device, self.device)
        elif device.kind is DeviceKind.CUDA and not absent:
            yield from self.reasons_against_profile(device.profile())
        for package in missing_packages(self.backend):
            yield Reason(ReasonCode.BACKEND_MISSING, self.name, f"no package {package}", f"pip install {package}")

    def reasons_against_profile(self, profile: CudaProfile) -> Iterator[Reason]:
        """What a CUDA device lacks for this kernel."""
        if self.backend is BackendKind.TRITON and profile.capability < _OLDEST_FOR_TRITON:
            got, wanted = (f"compute capability {major}.{minor}" for major, minor in (profile.capability, _OLDEST_FOR_TRITON))
            yield Reason(ReasonCode.ARCHITECTURE, self.name, got, f"at least {wanted}")
        if self.shared_bytes > profile.shared_bytes:
            yield Reason(ReasonCode.SHARED_MEMORY, self.name, f"{profile.shared_bytes} bytes", f"{self.shared_bytes} bytes")

    def reasons_against_layout(self, name: str, layout: Layout) -> Iterator[Reason]:
        """What this kernel requires of an operand's layout beyond what the op does."""
        if self.layout is LayoutSku.CONTIGUOUS and not layout.is_contiguous:
            got = f"shape {layout.shape} with stride {layout.stride}"
            yield Reason(ReasonCode.LAYOUT, name, got, f"a contiguous array, for {self.name}")

    def prepare(self, package: str, descriptor: Descriptor, device: Device, tile: Any = None) -> Bind:
        """Imports and compiles. `package` is where the op is declared; `tile` is one of `other_tiles`."""
        module, _, function = self.entry.partition(":")
        given = (descriptor, device) if self.backend is BackendKind.TRITON else (descriptor,)
        with LOADING:
            entry = getattr(imported(f"{package}.{module}".lstrip(".")), function)
            bind: Bind = entry(*given) if tile is None else entry(*given, tile)
        return bind


class Candidate(NamedTuple):
    """A kernel with its default tile, or with another."""

    kernel: Kernel
    tile: Any = None

    @property
    def name(self) -> str:
        return self.kernel.name if self.tile is None else f"{self.kernel.name} {self.tile}"

    def guarantee(self, descriptor: Descriptor) -> PrecisionGuarantee:
        """The kernel's guarantee; a tile chosen by timing is not batch-invariant, since it may differ between batch sizes."""
        promised = self.kernel.guarantee(descriptor)
        return promised if self.tile is None else replace(promised, batch_invariant=False)


def candidates(kernels: Iterable[Kernel], descriptor: Descriptor, preference: PlanPreference) -> list[Candidate]:
    """In order of priority, each kernel's default tile before its others."""
    return [
        Candidate(kernel, tile)
        for kernel in kernels
        for tile in (None, *(() if preference.batch_invariant else kernel.other_tiles(descriptor)))
    ]


# --- rules that kernels are declared with ----------------------------------------------------------------------------------


def at_most(attribute: str, bound: int) -> Limit:
    """A limit: a number of the descriptor is at most so large."""

    def limit(descriptor: Descriptor) -> Iterator[Reason]:
        value = getattr(descriptor, attribute)
        if value > bound:
            yield Reason(ReasonCode.LIMIT, attribute, value, f"at most {bound}")

    return limit


def rank_at_most(attribute: str, bound: int) -> Limit:
    def limit(descriptor: Descriptor) -> Iterator[Reason]:
        rank = len(getattr(descriptor, attribute))
        if rank > bound:
            yield Reason(ReasonCode.LIMIT, attribute, f"rank {rank}", f"a rank of at most {bound}")

    return limit


def exact_order(descriptor: Descriptor) -> PrecisionGuarantee:
    """The guarantee of a kernel that sums in one fixed order per row: f64 in f64, everything narrower in f32."""
    accumulator = element_of(descriptor).accumulator
    return PrecisionGuarantee(MathPrecision(accumulator.value), accumulator, True, True, True)


def cublas_order(descriptor: Descriptor) -> PrecisionGuarantee:
    """The guarantee of cuBLAS's products: its choice of kernel, and so the order of sums, depends on the whole problem."""
    return replace(exact_order(descriptor), batch_invariant=False)


def matrix_units(descriptor: Descriptor) -> PrecisionGuarantee:
    """The guarantee of a kernel that multiplies on the tensor cores: operands in the problem's element, sums in f32 or f64.

    How much of a problem one program takes depends on all of it, and with it the order of sums.
    """
    element = element_of(descriptor)
    return PrecisionGuarantee(MathPrecision(element.value), element.accumulator, True, True, batch_invariant=False)
