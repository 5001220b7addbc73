"""The performance tables, from the runs recorded in bench/results/."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from baracuda_kernels.bench.problems import bytes_moved, field_types
from baracuda_kernels.bench.report import USUAL_PEERS, machine, markdown, milliseconds, recorded_peers, share, times_faster
from baracuda_kernels.core import registry
from generator.tables import table

NO_RESULTS = "No run has been recorded yet: `make bench` measures this machine.\n"

NUMBERS = ("copy floor, ms", "ours, ms", "share of the floor", "times faster")
HEADINGS = ("op", "problem", *NUMBERS, "than")

Record = dict[str, Any]


def records(results: Path) -> list[Record]:
    """All recorded runs, the oldest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    return sorted(found, key=lambda record: str(record["date"]))


def long(runs: list[Record]) -> str:
    """Every row. Each record is one run: only times within one are comparable."""
    return "\n".join(map(markdown, runs)) or NO_RESULTS


def short(runs: list[Record]) -> str:
    """A few rows of each op, each compared with the fastest of its peers in the same run."""
    lines = []
    for place, of_place in itertools.groupby(sorted(runs, key=machine), key=machine):
        chosen = sorted(representative(list(of_place)), key=lambda pair: str(pair[1]["op"]))
        lines += [f"Measured on {place}.", *_remarks(chosen), "", *table(HEADINGS, map(_cells, chosen), right=NUMBERS), ""]
    return "\n".join(lines) or NO_RESULTS


def representative(runs: list[Record]) -> Iterator[tuple[Record, Any]]:
    """Of each op's newest run the first row, which is the most telling of its showcase; of a forward the first of every element.

    A run that was not compared with the reference represents nothing, one of other problems than the showcase only what else there is not.
    """
    compared = [(row, run) for run in runs for row in run["rows"] if row["errors"]]
    newest = {row["op"]: run for row, run in compared}
    newest |= {row["op"]: run for row, run in compared if row["descriptor"] == _most_telling(row["op"], _device(run))}
    for op, run in newest.items():
        rows = [row for row in run["rows"] if row["op"] == op and row["share_of_floor"] is not None]
        first_of_element = {row["descriptor"]["element"]: row for row in reversed(rows)}
        for row in rows:
            if row is rows[0] or (not op.endswith("_backward") and row is first_of_element[row["descriptor"]["element"]]):
                yield run, row


@functools.cache
def _most_telling(op: str, device: str) -> Any:
    """The problem that comes first in an op's showcase on such a device, as records have it."""
    cases = registry.plans()[op].cases
    shown = cases.showcase() if device == "cpu" else cases.cuda_showcase()
    return next((json.loads(json.dumps(descriptor.plain())) for descriptor in shown), None)


def newest_rows(runs: Iterable[Record]) -> list[Any]:
    """Of every problem that has a floor the row of the last run, in the order in which they were first measured."""
    found = {}
    for run in runs:
        for row in run["rows"]:
            if row["share_of_floor"] is not None:
                found[row["op"], json.dumps([row["descriptor"], row.get("layouts")])] = row
    return list(found.values())


def _device(run: Record) -> str:
    return str(run.get("device", "cpu"))


def shares(runs: list[Record]) -> str:
    """By kind of device and kernel, the share of the floor of every problem, as JSON: what `explain` predicts from."""
    found: dict[str, dict[str, list[Any]]] = {}
    for device, of_device in itertools.groupby(sorted(runs, key=_device), key=_device):
        for row in newest_rows(of_device):
            if not row.get("layouts"):
                seen = {"problem": row["descriptor"], "share": float(f"{row['share_of_floor'] * _moved_of(row):.3g}")}
                found.setdefault(device, {}).setdefault(row["kernel"], []).append(seen)
    lines = [
        f' "{device}": {{\n'
        + ",\n".join(f'  "{kernel}": [\n{_each(seen)}\n  ]' for kernel, seen in sorted(kernels.items()))
        + "\n }"
        for device, kernels in sorted(found.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _moved_of(row: Any) -> float:
    """The part that has to move of the bytes whose copy was the floor: older runs count inputs that no result depends on."""
    plan = registry.plans()[row["op"]]
    today = field_types(plan.descriptor_type)
    problem = plan.descriptor_type.of_plain({name: value for name, value in row["descriptor"].items() if name in today})
    return bytes_moved(plan, problem) / row["bytes"]


def _each(seen: list[Any]) -> str:
    return ",\n".join(f"   {json.dumps(each)}" for each in seen)


def _cells(chosen: tuple[Record, Any]) -> tuple[str, ...]:
    _, row = chosen
    ours = milliseconds(row["times"][row["kernel"]]["median"])
    ratio, peer = _fastest(recorded_peers(row))
    return row["op"], row["problem"], milliseconds(row["floor"]["median"]), ours, share(row["share_of_floor"]), ratio, peer


def _fastest(peers: dict[str, float]) -> tuple[str, str]:
    """Of the usual peers. One that is particular to an op may do a part of its work only; the first of those does all of it."""
    usual = {name: peers[name] for name in USUAL_PEERS if name in peers}
    peer = min(usual, key=usual.__getitem__) if usual else next(iter(peers), "")
    return times_faster(peers.get(peer)), peer


def _remarks(chosen: list[tuple[Record, Any]]) -> list[str]:
    """What is to be said about a run, with the ops it holds for."""
    remarks: dict[str, list[str]] = {}
    for run, row in chosen:
        if "remark" in run:
            remarks.setdefault(run["remark"], []).append(row["op"])
    return [f"{', '.join(dict.fromkeys(named))}: {remark}" for remark, named in remarks.items()]
