"""`baracuda-kernels demo`: every op of the library on this machine, checked against its reference and timed beside PyTorch."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import typing
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from baracuda_kernels.bench import report
from baracuda_kernels.bench.engine import BenchRow, Settings, Task, measure, showcase
from baracuda_kernels.cli.counts import count
from baracuda_kernels.core import registry
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.errors import Error
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.machine import cores, cpu_name
from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, JAX
from baracuda_kernels.verify.precompile import compiled_meanwhile

_MANY = 1024  # rows of which a quarter tells as much in a quarter of the time


def add_to(commands: Any) -> None:
    parser = commands.add_parser("demo", help="every op, checked and timed, in one table", description=__doc__)
    parser.add_argument("--all", action="store_true", help="each op for all its dtypes, at the sizes of the bench")
    parser.add_argument("--problems", type=count, metavar="N", help="the same with N problems per op and dtype")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """1 if any result is wrong."""
    out = report.console()
    out.print(f"{cpu_name()}, {cores()} cores. First use of a kernel compiles it, once for this machine.", markup=False)
    wants_all = options.all or options.problems is not None
    ops = list(registry.plans())
    tasks = list(showcase(ops, options.problems or 1)) if wants_all else list(_telling(ops))
    rows = _measured(tasks, Settings(5 if wants_all else 3, without=frozenset({COMPILED, JAX}), other_kernels=False), out)
    out.print(demo_table(rows))
    for line in report.remarks(rows):
        out.print(line, style="red" if line.startswith("WRONG") else None, markup=False)
    right = sum(row.ours is not None for row in rows)
    out.print(f"{right} of {len(rows)} results within the error bound of their dtype.")
    if not wants_all:
        every = len(list(showcase(ops)))
        out.print(
            f"Left out: {every - len(tasks)} of the bench's {every} problems, with other dtypes, kinds and sizes. "
            "`baracuda-kernels demo --all` shows every dtype, `make bench` everything.",
            markup=False,
        )
    return int(any(row.wrong for row in rows))


def _telling(ops: Iterable[str]) -> Iterator[Task]:
    """The first problem of each op, with fewer rows. One op of each family comes first, then the second ones, and so on."""
    first = [next(showcase([op], 1)) for op in ops]
    by_family: dict[str, list[Task]] = {}
    for task in first:
        by_family.setdefault(registry.family(task.plan), []).append(task._replace(descriptor=_smaller(task.descriptor)))
    for turn in itertools.zip_longest(*by_family.values()):
        yield from filter(None, turn)


def _smaller(descriptor: Descriptor) -> Descriptor:
    shapes = {name for name, kind in typing.get_type_hints(type(descriptor)).items() if kind == Shape}
    values = {name: getattr(descriptor, name) for name in shapes}
    cut = {name: (shape[0] // 4, *shape[1:]) for name, shape in values.items() if len(shape) > 1 and shape[0] >= _MANY}
    with contextlib.suppress(Error):  # where the op does not have it so
        return replace(descriptor, **cut)
    return descriptor


def _measured(tasks: list[Task], settings: Settings, out: Console) -> list[BenchRow]:
    """A row of each, in the order of the ops. Each is measured when it is compiled, and told at once."""
    rows: dict[int, BenchRow] = {}
    with Progress(
        BarColumn(20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    ) as bar:
        whole = bar.add_task("", total=len(tasks))
        for number in compiled_meanwhile([(task.plan, task.descriptor) for task in tasks], settings.device, cores()):
            row = rows[number] = measure(tasks[number], settings)
            bar.console.print(_told(row), markup=False, style="red" if row.wrong else "dim")
            bar.advance(whole)
    return sorted(rows.values(), key=lambda row: row.op)


def _told(row: BenchRow) -> str:
    if row.ours is None:
        return f"{row.op}: {'WRONG' if row.wrong else 'no kernel'}"
    ratio = report.times_faster(row.times_faster_than(GIVEN) or row.times_faster_than(ALLOCATING))
    return f"{row.op}: right, {report.milliseconds(row.ours.median)} ms{ratio and f', {ratio} as fast as PyTorch'}"


def demo_table(rows: list[BenchRow]) -> Table:
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


def _numbers(row: BenchRow) -> list[str]:
    worst = row.worst()
    error = f"{worst.error:.0e}" if worst else ""
    if row.ours is None:
        return [error, "WRONG" if row.wrong else ""]
    ratios = [report.times_faster(row.times_faster_than(name)) for name in (ALLOCATING, GIVEN)]
    return [error, report.milliseconds(row.ours.median), report.share(row.share_of_floor), *ratios]
