"""A selection, explained: what was chosen, its guarantees, its cost, and why the others were not chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.json_values import plain
from baracuda_kernels.core.registry import op_name

if TYPE_CHECKING:
    from baracuda_kernels.core.plan import Plan

__all__ = ["Explanation", "bytes_in_words"]


@dataclass(frozen=True)
class Explanation:
    """The explanation of a plan, as data. Times are in seconds, None if not measured."""

    op: str
    problem: Mapping[str, Any]
    device: str
    arch: str
    kernel: str
    tile: str | None
    layouts: str
    guarantee: Mapping[str, Any]
    workspace_bytes: int
    moved_bytes: int | None
    operations: int | None
    floor_seconds: float | None
    predicted_seconds: float | None
    predicted_share: float | None  # of the floor
    measured_seconds: float | None
    rejected: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(plan: Plan[Any, Any], with_times: bool = True) -> Explanation:
        """`with_times` measures how long this machine takes to copy as many bytes."""
        prediction = None
        if with_times:
            from baracuda_kernels.core.cost.prediction import predict

            prediction = predict(plan)
        return Explanation(
            op=op_name(type(plan)),
            problem=plan.descriptor.plain(),
            device=str(plan.device),
            arch=plan.sku.arch.value,
            kernel=plan.sku.name,
            tile=None if plan.tile is None else str(plan.tile),
            layouts=plan.sku.layout.value,
            guarantee=plain(asdict(plan.precision_guarantee)),
            workspace_bytes=plan.workspace_size,
            moved_bytes=prediction.bytes if prediction else None,
            operations=prediction.flops if prediction else None,
            floor_seconds=prediction.floor if prediction else None,
            predicted_seconds=prediction.seconds if prediction else None,
            predicted_share=prediction.share if prediction else None,
            measured_seconds=plan.seconds,
            rejected={name: tuple(map(str, reasons)) for name, reasons in plan.rejected.items()},
        )

    def as_data(self) -> dict[str, Any]:
        """Plain data, which JSON can hold."""
        return asdict(self)

    def __str__(self) -> str:
        kept = [name.replace("_", "-") for name, value in self.guarantee.items() if value is True]
        lines = [
            f"{self.op} on {self.device} ({self.arch}): {self.kernel}{f' {self.tile}' if self.tile else ''}",
            f"  guarantee: math in {self.guarantee['math_precision']}, sums in {self.guarantee['accumulator']}; {', '.join(kept)}",
            f"  workspace: {self.workspace_bytes} bytes",
            *(f"  {name}: {text}" for name, text in self.costs().items()),
        ]
        for name, reasons in self.rejected.items():
            lines.append(f"  not {name}: {'; '.join(reason.removeprefix(f'{name} ') for reason in reasons)}")
        return "\n".join(lines)

    def costs(self) -> dict[str, str]:
        """The known costs, in words."""
        said = {}
        if self.floor_seconds is not None and self.moved_bytes is not None:
            said["floor"] = f"{_duration(self.floor_seconds)} for {bytes_in_words(self.moved_bytes)} here"
        if self.predicted_seconds is not None and self.predicted_share is not None:
            said["predicted"] = f"{_duration(self.predicted_seconds)}, {self.predicted_share:.0%} of the floor"
        if self.measured_seconds is not None:
            said["measured"] = f"{_duration(self.measured_seconds)}{self._beside_floor(self.measured_seconds)}"
        return said

    def _beside_floor(self, seconds: float) -> str:
        if not self.floor_seconds:
            return ""
        if seconds < self.floor_seconds:  # as ops can be that read more than they write: no share of what is no floor for them
            return ", less than a copy of as many bytes takes"
        return f", {self.floor_seconds / seconds:.0%} of the floor"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def bytes_in_words(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
