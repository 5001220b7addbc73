"""The performance tables, from the runs recorded in bench/results/."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from baracuda_kernels.bench.problems import field_types
from baracuda_kernels.bench.report import machine, markdown, milliseconds, recorded_peers, share, times_faster
from baracuda_kernels.core import registry
from baracuda_kernels.core.cost.traffic import bytes_moved
from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN
from generator.tables import code, table

NO_RESULTS = "No run has been recorded yet: `make bench` measures this machine.\n"

FLOORS = ("copy floor, ms", "ours, ms", "share of the floor")
RATIOS = ("into given memory", "allocating")
HEADINGS = ("op", "problem", *FLOORS, *itertools.chain.from_iterable((f"× faster, {kind}", f"than, {kind}") for kind in RATIOS))
NUMBERS = (*FLOORS, *(f"× faster, {kind}" for kind in RATIOS))

# Peers that write into given memory, as a plan does; all others allocate their results.
INTO_GIVEN = (GIVEN, COMPILED, "Liger, in place")
PARTS = ("bare products", "PyTorch, step by step, 1/16 of the steps")  # peers that do only a part of the work

DETAILS = re.compile(r" (norm_axes_mask|eps|base|axis|dt|rms) \S+| has_gamma| indices")  # of a problem, left out in the README

# The README's rows, wins and losses: the device, the op and its element.
TELLING = (
    ("cpu", "softmax", "bf16"),
    ("cpu", "scan", "f32"),
    ("cuda", "rms_norm", "bf16"),
    ("cuda", "rope", "bf16"),
    ("cuda", "softmax", "bf16"),
    ("cuda", "ssd_chunk_scan", "bf16"),
)

Record = dict[str, Any]


def records(results: Path) -> list[Record]:
    """All recorded runs, the oldest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    return sorted(found, key=lambda record: str(record["date"]))


def long(runs: list[Record]) -> str:
    """Every row. Each record is one run: only times within one are comparable."""
    return "\n".join(map(markdown, runs)) or NO_RESULTS


def short(runs: list[Record]) -> str:
    """A few rows of each op, each compared with the fastest peers of the same run: one that writes into given memory, one that allocates."""
    lines = []
    for place, of_place in itertools.groupby(sorted(runs, key=machine), key=machine):
        chosen = sorted(representative(list(of_place)), key=lambda pair: str(pair[1]["op"]))
        lines += [f"Measured on {place}.", *_remarks(chosen), "", *table(HEADINGS, map(_cells, chosen), right=NUMBERS), ""]
    return "\n".join(lines) or NO_RESULTS


def telling(runs: list[Record]) -> str:
    """The README's rows. On the CPU the peer writes into given memory too; on CUDA, where allocating takes the device no time, it is the fastest."""
    chosen = {
        (_device(run), row["op"], row["descriptor"]["element"]): (run, row)
        for _, of_place in itertools.groupby(sorted(runs, key=machine), key=machine)
        for run, row in representative(list(of_place))
    }
    rows = []
    for place in TELLING:
        run, row = chosen[place]
        into_given, allocating = _by_kind(recorded_peers(row))
        kinds = {"into given memory": into_given}
        if place[0] == "cuda":
            kinds["allocates"] = allocating
        ratio, peer, kind = min((ratio, _name(peer), kind) for kind, peers in kinds.items() for peer, ratio in peers.items())
        where = run["gpu"] if "gpu" in run else f"{run['cpu'].partition('@')[0].strip()}, {run['cores']} cores"
        problem = DETAILS.sub("", row["problem"])
        rows.append((code(row["op"]), problem, where, share(row["share_of_floor"]), times_faster(ratio), f"{peer} ({kind})"))
    headings = ("op", "problem", "on", "of the copy's speed", "times faster", "than")
    return "\n".join([*table(headings, rows, right=headings[3:5]), ""])


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
    compared = itertools.chain.from_iterable(map(_fastest, _by_kind(recorded_peers(row))))
    return row["op"], row["problem"], milliseconds(row["floor"]["median"]), ours, share(row["share_of_floor"]), *compared


def _by_kind(peers: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Peers that do the whole work: those that write into given memory, and those that allocate."""
    whole = {name: ratio for name, ratio in peers.items() if name not in PARTS}
    given = {name: ratio for name, ratio in whole.items() if name in INTO_GIVEN}
    return given, {name: ratio for name, ratio in whole.items() if name not in given}


def _fastest(peers: dict[str, float]) -> tuple[str, str]:
    peer = min(peers, key=peers.__getitem__, default="")
    return times_faster(peers.get(peer)), _name(peer)


def _name(peer: str) -> str:
    """Without what the column, or the word behind it, says of all peers of the kind."""
    return ALLOCATING if peer == GIVEN else peer


def _remarks(chosen: list[tuple[Record, Any]]) -> list[str]:
    """What is to be said about a run, with the ops it holds for."""
    remarks: dict[str, list[str]] = {}
    for run, row in chosen:
        if "remark" in run:
            remarks.setdefault(run["remark"], []).append(row["op"])
    return [f"{', '.join(dict.fromkeys(named))}: {remark}" for remark, named in remarks.items()]
