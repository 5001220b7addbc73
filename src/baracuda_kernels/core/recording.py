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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.json_values import plain
from baracuda_kernels.core.machine import machine_of
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.turns import Turn

if TYPE_CHECKING:
    from baracuda_kernels.core.plan import Plan

__all__ = ["Recording", "active", "problems_in", "record"]

SCHEMA = "baracuda-kernels record 1"

active: tuple[Recording, ...] = ()  # those that are under way
_turn = Turn()


@dataclass
class Entry:
    """One problem with the plan that was selected for it."""

    plan: Plan[Any, Any]
    selected: int = 0
    runs: int = 0
    failed: int = 0
    nanoseconds: int = 0  # that the calls took on the host; on CUDA the launch, not the kernel


class Recording:
    """Every plan selected and run during the recording, in any thread."""

    def __init__(self) -> None:
        self._selections: dict[Plan[Any, Any], int] = {}
        # Every thread counts for itself, so that none has to wait: runs, failures and nanoseconds by plan.
        self._own = threading.local()
        self._tallies: list[dict[Plan[Any, Any], list[int]]] = []

    def entries(self) -> list[Entry]:
        """The entries so far; equal plans are counted as one."""
        found: dict[tuple[Any, ...], Entry] = {}

        def entry(plan: Plan[Any, Any]) -> Entry:
            return found.setdefault((type(plan), plan.descriptor, plan.device, plan.sku, plan.tile), Entry(plan))

        with _turn:
            selections, tallies = dict(self._selections), [dict(tally) for tally in self._tallies]
        for plan, count in selections.items():
            entry(plan).selected += count
        for tally in tallies:
            for plan, (runs, failed, nanoseconds) in tally.items():
                each = entry(plan)
                each.runs, each.failed = each.runs + runs, each.failed + failed
                each.nanoseconds += nanoseconds
        return list(found.values())

    def note_selection(self, plan: Plan[Any, Any]) -> None:
        """Counts a plan that was selected."""
        with _turn:
            self._selections[plan] = self._selections.get(plan, 0) + 1

    def note_run(self, plan: Plan[Any, Any], nanoseconds: int, failed: int = 0) -> None:
        """Counts a run of a plan, with its time on the host."""
        try:
            tally = self._own.tally
        except AttributeError:
            tally = self._own.tally = {}
            with _turn:
                self._tallies.append(tally)
        counts = tally.get(plan)
        if counts is None:
            counts = tally[plan] = [0, 0, 0]
        counts[0] += 1
        counts[1] += failed
        counts[2] += nanoseconds

    def as_data(self) -> dict[str, Any]:
        """Plain data, which JSON can hold."""
        entries = self.entries()
        devices = dict.fromkeys(entry.plan.device for entry in entries)
        return {
            "schema": SCHEMA,
            "machines": {str(device): machine_of(device) for device in devices},
            "plans": [_as_data(entry) for entry in entries],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as JSON."""
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
        "sku": plain(asdict(plan.sku)),
        "tile": None if plan.tile is None else str(plan.tile),
        "workspace_bytes": plan.workspace_size,
        "rejected": {name: [str(reason) for reason in reasons] for name, reasons in plan.rejected.items()},
        "selected": entry.selected,
        "runs": entry.runs,
        "failed": entry.failed,
        "host_seconds": entry.nanoseconds / 1e9,
    }
