"""Tables for people: on the terminal, and as Markdown from a recorded run."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from baracuda_kernels.bench.engine import BenchRow
from baracuda_kernels.bench.host import ARGS_EACH_CALL, ARGS_ONCE, HostRow
from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, JAX, LIGER
from baracuda_kernels.core.sku import BackendKind

USUAL_PEERS = (ALLOCATING, GIVEN, COMPILED, JAX, LIGER)  # of any op; others are particular to one

_UNBOUNDED = 10_000  # columns

_HEADINGS = {
    GIVEN: "PyTorch\ngiven", COMPILED: "torch.\ncompile", ARGS_ONCE: "plan.run", ARGS_EACH_CALL: "plan.run\nnew args"
}  # fmt: skip


def console(stderr: bool = False) -> Console:
    """As wide as the terminal; 100 columns where the output goes to a file."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return _Console(stderr=stderr, width=width, highlight=False)


class _Console(Console):
    """A table is as wide as its words and numbers at least, whatever the terminal: none of them is cut. Files get no spaces at line ends."""

    def print(self, *objects: Any, **options: Any) -> None:
        unbounded = self.options.update(width=_UNBOUNDED)
        tables = [each for each in objects if isinstance(each, Table)]
        before, needed = self.width, max((self.measure(each, options=unbounded).minimum for each in tables), default=0)
        if needed > before:
            self.width = needed
        if self.is_terminal:
            super().print(*objects, **options)
        else:
            with self.capture() as printed:
                super().print(*objects, **options)
            self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))
        if needed > before:
            self.width = before


LEGEND = (
    "floor: ms of a copy of as many bytes, or of a matrix product of as many operations where that takes longer; "
    "ours: ms of our kernel; share: floor / ours; ×: how many times faster ours is"
)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def times_faster(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.0f}×"


def share(of_floor: float | None) -> str:
    return "" if of_floor is None else f"{of_floor:.0%}"


def table(title: str | None = None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)


def add_numbers(to: Table, *headings: str) -> None:
    """Columns of numbers, which are not broken."""
    for heading in headings:
        to.add_column(heading, justify="right", no_wrap=True, min_width=max(map(len, heading.split("\n"))))


def bench_tables(rows: list[BenchRow]) -> Iterator[Table]:
    """One table per op and kernel: floor and ours in ms, our share of the floor, how many times faster than each of the others."""
    for (op, kernel), group in itertools.groupby(rows, key=lambda row: (row.op, row.kernel)):
        yield _bench_table(f"{op} by {kernel or 'no kernel'}", list(group))


def _bench_table(title: str, rows: list[BenchRow]) -> Table:
    others = list(dict.fromkeys(name for row in rows for name in row.others()))
    result = table(title)
    result.add_column("problem", overflow="fold")
    add_numbers(result, "floor", "ours", "share", *(_heading(name, rows[0].op) for name in others))
    for row in rows:
        if row.ours is None or row.floor is None:
            result.add_row(escape(row.problem), "", "WRONG" if row.wrong else "none", style="red")
            continue
        ratios = [times_faster(row.times_faster_than(name)) for name in others]
        floor, ours = milliseconds(row.floor.median), milliseconds(row.ours.median)
        result.add_row(escape(row.problem), floor, ours, share(row.share_of_floor), *ratios)
    return result


def _heading(contender: str, op: str) -> str:
    """A short name for a column: of a kernel, what tells it from the op's others."""
    return _HEADINGS.get(contender, contender.removesuffix(f".{op}"))


def host_table(rows: list[HostRow]) -> Table:
    contenders = list(dict.fromkeys(name for row in rows for name in row.times))
    result = table("host time of one call: µs, quickest sample, PyTorch on one thread")
    for heading in ("op", "problem"):
        result.add_column(heading, overflow="fold")
    add_numbers(result, *(_HEADINGS.get(name, name) for name in contenders))
    for row in rows:
        times = (f"{row.times[name].minimum * 1e6:.1f}" if name in row.times else "" for name in contenders)
        result.add_row(row.op, escape(row.problem), *times)
    return result


def remarks(rows: Iterable[BenchRow]) -> list[str]:
    """Every wrong kernel and every distinct note, a line each."""
    rows = list(rows)
    wrong = [
        f"WRONG {row.op}, {row.problem}: {kernel}: {error.splitlines()[0]}" for row in rows for kernel, error in row.wrong.items()
    ]
    return wrong + list(dict.fromkeys(f"{row.op}: {note}" for row in rows for note in row.notes))


def machine(record: dict[str, Any]) -> str:
    """On what a recorded run was measured."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "baracuda-kernels")
    where = f"{record['gpu']}, CUDA {record['cuda']}" if "gpu" in record else f"{record['cpu']}, {record['cores']} cores"
    return f"{where}; {versions}"


def recorded_peers(row: dict[str, Any]) -> dict[str, float]:
    """How many times faster a recorded row is than each peer; other kernels of the op are no peers."""
    ratios: dict[str, float] = row["times_faster_than"]
    ours = {"llvm", *(backend.value for backend in BackendKind)}
    return {name: ratio for name, ratio in ratios.items() if name.partition(".")[0] not in ours}


def markdown(record: dict[str, Any]) -> str:
    """A recorded run as Markdown tables. Taken from the record alone, so the same record gives the same text."""
    remark = f" {record['remark']}" if "remark" in record else ""
    lines = [f"Measured on {machine(record)}; {record['date'][:16]}.{remark}", ""]
    names = list(dict.fromkeys(name for row in record["rows"] for name in recorded_peers(row)))
    peers = [*(name for name in USUAL_PEERS if name in names), *(name for name in names if name not in USUAL_PEERS)]
    headings = ["op", "problem", "kernel", "copy floor, ms", "ours, ms", "share of the floor", *(f"vs {name}" for name in peers)]
    lines += ["| " + " | ".join(headings) + " |", "|" + " --- |" * 3 + " ---: |" * (len(headings) - 3)]
    for row in record["rows"]:
        if row["share_of_floor"] is None:
            continue
        cells = [row["op"], row["problem"], f"`{row['kernel']}`", milliseconds(row["floor"]["median"])]
        cells += [milliseconds(row["times"][row["kernel"]]["median"]), share(row["share_of_floor"])]
        cells += [times_faster(row["times_faster_than"].get(name)) for name in peers]
        lines.append("| " + " | ".join(cells) + " |")
    if record["host"]:
        contenders = list(dict.fromkeys(name for row in record["host"] for name in row["times"]))
        lines += ["", "Host time of one call on a small tensor, in µs, the quickest sample, PyTorch on one thread:", ""]
        lines += ["| op | problem | " + " | ".join(contenders) + " |", "| --- | --- |" + " ---: |" * len(contenders)]
        for row in record["host"]:
            times = [f"{row['times'][name]['minimum'] * 1e6:.1f}" if name in row["times"] else "" for name in contenders]
            lines.append("| " + " | ".join([row["op"], row["problem"], *times]) + " |")
    return "\n".join(lines) + "\n"
