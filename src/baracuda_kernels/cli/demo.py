"""`baracuda-kernels demo`: every op of the library on this machine, checked against its reference and timed beside PyTorch."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

from rich.markup import escape
from rich.table import Table

from baracuda_kernels.bench import report
from baracuda_kernels.bench.command import measured
from baracuda_kernels.bench.engine import Row, Settings, showcase
from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, GIVEN, JAX
from baracuda_kernels.check.ahead import compile_ahead
from baracuda_kernels.core import registry
from baracuda_kernels.core.machine import cores, cpu_name


def add_to(commands: Any) -> None:
    parser = commands.add_parser("demo", help="every op, checked and timed, in one table", description=__doc__)
    parser.add_argument("--problems", type=int, default=1, metavar="N", help="showcase problems per op and dtype (default 1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """1 if any result is wrong."""
    out = report.console()
    out.print(f"{cpu_name()}, {cores()} cores. First use of a kernel compiles it, once for this machine.", markup=False)
    settings = Settings(rounds=5, without=frozenset({COMPILED, JAX}), other_kernels=False)
    tasks = list(showcase(list(registry.plans()), options.problems))
    compile_ahead([(task.plan, task.descriptor) for task in tasks], settings.device, cores(), out)
    rows = [row for row in measured(tasks, [], settings, out) if isinstance(row, Row)]
    out.print(demo_table(rows))
    for line in report.remarks(rows):
        out.print(line, style="red" if line.startswith("WRONG") else None, markup=False)
    right = sum(row.ours is not None for row in rows)
    out.print(f"{right} of {len(rows)} results within the error bound of their dtype.")
    return int(any(row.wrong for row in rows))


def demo_table(rows: list[Row]) -> Table:
    result = report.table()
    result.caption = "vs PyTorch: how many times faster than PyTorch allocating its result, and writing into given memory"
    result.caption_justify = "left"
    for heading in ("op and problem", "kernel"):
        result.add_column(heading, overflow="fold")
    report.add_numbers(result, "error", "ms", "of copy\nfloor", "vs\nPyTorch", "given\nmemory")
    for op, group in itertools.groupby(rows, key=lambda row: row.op):
        result.add_row(f"[bold]{op}[/]")
        for row in group:
            result.add_row(f" {escape(row.problem)}", row.kernel or "none", *_numbers(row), style="red" if row.wrong else None)
        result.add_section()
    return result


def _numbers(row: Row) -> list[str]:
    worst = row.worst()
    error = f"{worst.error:.0e}" if worst else ""
    if row.ours is None:
        return [error, "WRONG" if row.wrong else ""]
    ratios = [report.times_faster(row.times_faster_than(name)) for name in (ALLOCATING, GIVEN)]
    return [error, report.milliseconds(row.ours.median), report.share(row.share_of_floor), *ratios]
