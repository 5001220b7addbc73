"""What a program selects and runs, written down: for bug reports, and for `tune` to learn from.

While nothing is being recorded a run pays for one look at an empty tuple.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.machine import machine_of
from baracuda_kernels.core.reason import Reason, ReasonCode

if TYPE_CHECKING:
    from baracuda_kernels.core.plan import Plan

__all__ = ["Recording", "active", "problems_in", "record"]

SCHEMA = "baracuda-kernels record 1"

active: tuple[Recording, ...] = ()  # those that are under way
_turn = threading.Lock()


@dataclass
class Entry:
    """One problem with the candidate that serves it."""

    plan: Plan[Any, Any]
    selected: int = 0
    runs: int = 0
    failed: int = 0
    nanoseconds: int = 0  # that the calls took on the host; on CUDA the launch, not the kernel


class Recording:
    """Every plan selected and run while it was under way, in any thread."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._by_plan: dict[int, Entry] = {}
        self._kept: list[Plan[Any, Any]] = []  # so that a plan's number is not given to another

    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def note_selection(self, plan: Plan[Any, Any]) -> None:
        with _turn:
            self._entry(plan).selected += 1

    def note_run(self, plan: Plan[Any, Any], nanoseconds: int, failed: bool) -> None:
        with _turn:
            entry = self._by_plan.get(id(plan)) or self._entry(plan)
            entry.runs += 1
            entry.failed += failed
            entry.nanoseconds += nanoseconds

    def _entry(self, plan: Plan[Any, Any]) -> Entry:
        key = (type(plan), plan.descriptor, plan.device, plan.sku, plan.tile)
        entry = self._by_plan[id(plan)] = self._entries.setdefault(key, Entry(plan))
        self._kept.append(plan)
        return entry

    def as_data(self) -> dict[str, Any]:
        """As JSON can hold it."""
        entries = self.entries()
        devices = dict.fromkeys(entry.plan.device for entry in entries)
        return {
            "schema": SCHEMA,
            "machines": {str(device): machine_of(device) for device in devices},
            "plans": [_as_data(entry) for entry in entries],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(self.as_data(), indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def record(path: str | os.PathLike[str] | None = None) -> Iterator[Recording]:
    """Records what is selected and run within, and writes it to `path` at the end, also if that is an error.

    with bk.record("run.json") as recording:
        train()
    """
    global active
    recording = Recording()
    with _turn:
        active = (*active, recording)
    try:
        yield recording
    finally:
        with _turn:
            active = tuple(other for other in active if other is not recording)
        if path is not None:
            recording.save(path)


def problems_in(path: str | os.PathLike[str]) -> list[tuple[str, Descriptor]]:
    """The op and descriptor of every plan in a record. Raises `InvalidProblem` where it is not one."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r}")
        listed = [(entry["op"], dict(entry["problem"])) for entry in content["plans"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as cause:
        raise InvalidProblem(
            str(path), [Reason(ReasonCode.WRONG_TYPE, str(path), cause, f"a file of schema {SCHEMA!r}")]
        ) from cause
    plans, problems = registry.plans(), []
    for op, values in listed:
        if op not in plans:
            raise InvalidProblem(str(path), [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "op", op, " or ".join(plans))])
        problems.append((op, plans[op].descriptor_type.of_plain(values)))
    return list(dict.fromkeys(problems))


def _as_data(entry: Entry) -> dict[str, Any]:
    plan = entry.plan
    return {
        "op": registry.op_name(type(plan)),
        "problem": plan.descriptor.plain(),
        "device": str(plan.device),
        "sku": {name: _text(value) for name, value in asdict(plan.sku).items()},
        "tile": None if plan.tile is None else str(plan.tile),
        "workspace_bytes": plan.workspace_size,
        "rejected": {name: [str(reason) for reason in reasons] for name, reasons in plan.rejected.items()},
        "selected": entry.selected,
        "runs": entry.runs,
        "failed": entry.failed,
        "host_seconds": entry.nanoseconds / 1e9,
    }


def _text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _text(each) for name, each in value.items()}
    return value.value if isinstance(value, Enum) else value
