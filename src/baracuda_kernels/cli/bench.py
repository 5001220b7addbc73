"""`bench`: times every op of the registry on its showcase problems."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from baracuda_kernels.bench import record, report, roofline
from baracuda_kernels.bench.engine import BenchRow, Settings, Task, measure, of_every_kind, showcase, varied
from baracuda_kernels.bench.host import HostRow, measure_host
from baracuda_kernels.cli.counts import count
from baracuda_kernels.cli.fields import fields_of
from baracuda_kernels.cli.names import Named, UnknownOp, named
from baracuda_kernels.cli.stopping import INTERRUPTED, exit_status, terminated_is_interrupted
from baracuda_kernels.core import registry
from baracuda_kernels.core.args import Access
from baracuda_kernels.core.cost.layouts import LAYOUTS
from baracuda_kernels.core.cost.traffic import present_operands
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.machine import cores
from baracuda_kernels.core.nearest import no_such
from baracuda_kernels.core.peers import COMPILED, JAX
from baracuda_kernels.core.registry import op_name
from baracuda_kernels.verify.precompile import compile_ahead


def add_to(commands: Any) -> None:
    parser = commands.add_parser("bench", help="time every op beside a copy and its peers", description=__doc__)
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ops", nargs="*", metavar="OP", help="ops to time; all of them where none is named")
    parser.add_argument("--quick", action="store_true", help="the first showcase problem of each op and dtype, fewer rounds")
    parser.add_argument(
        "--every-kind", action="store_true", help="the first showcase problem of each op and dtype, of every kind of the op"
    )
    parser.add_argument(
        "--vary",
        action="append",
        metavar="FIELD=V1,V2,...",
        help="the first showcase problem of each op with these values of a whole-number field; can be given several times",
    )
    parser.add_argument(
        "--problem",
        action="append",
        metavar="FIELDS",
        help='of the one op named, such as "shape=64,1024 dtype=bf16"; can be given several times',
    )
    parser.add_argument(
        "--layout",
        action="append",
        metavar="INPUT=LAYOUT",
        help=f"layout of an input: {', '.join(LAYOUTS)}; can be given several times",
    )
    parser.add_argument("--picture", type=Path, help="a roofline of the run, as SVG")
    parser.add_argument("--rounds", type=int, help="how often each contender is timed (default 9, quick 3)")
    parser.add_argument("--measured", action="store_true", help="time what effort=MEASURE chooses too")
    parser.add_argument(
        "--unchecked", action="store_true", help="do not compare with the reference, which takes long for large problems"
    )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out; it takes long to set up")
    parser.add_argument(
        "--without", action="append", default=[], metavar="PEER", help="leave this one out; can be given several times"
    )
    parser.add_argument(
        "--device", choices=[kind.value for kind in DeviceKind], default="cpu", help="where to measure (default cpu)"
    )
    parser.add_argument(
        "--jobs", type=count, metavar="N", help="processes that compile, before anything is timed (default: one a core)"
    )
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--out", type=Path, help="the JSON file to write (default: bench/out/DATE.json)")


def run(options: argparse.Namespace) -> int:
    """0 if everything is right, 1 if any result is wrong, 2 if an op is unknown, 130 if interrupted. What is measured is kept, whatever happens next."""
    try:
        asked = [named(op) for op in options.ops or registry.plans()]
    except UnknownOp as mistake:
        report.console(stderr=True).print(str(mistake), markup=False, soft_wrap=True)
        return 2
    without = {*options.without, *([COMPILED] if options.no_compile else ())}
    kind = DeviceKind(options.device)
    without |= {JAX} if options.no_jax or kind is DeviceKind.CUDA else set()  # JAX would take most of the device's memory
    device = Device(kind)
    if absent := device.reasons_absent():
        report.console(stderr=True).print(str(absent[0]), markup=False)
        return 2
    settings = Settings(
        options.rounds or (3 if options.quick else 9),
        device,
        frozenset(without),
        measured=options.measured,
        checked=not options.unchecked,
    )
    console = report.console()

    try:
        tasks = [_laid_out(task, options.layout) for task in _tasks(asked, options, kind)]
    except (ValueError, TypeError) as mistake:
        report.console(stderr=True).print(str(mistake), markup=False, soft_wrap=True)
        return 2
    only_problems = options.vary or options.problem or options.every_kind  # and no host time
    ops = [] if only_problems else [op_name(each.plan) for each in asked if not each.fields]
    rows: list[BenchRow] = []
    host_rows: list[HostRow] = []
    try:
        with terminated_is_interrupted():
            compile_ahead([(task.plan, task.descriptor) for task in tasks], device, options.jobs or cores(), console)
            for each in measured(tasks, ops, settings, console):
                if isinstance(each, BenchRow):
                    rows.append(each)
                else:
                    host_rows.append(each)
    except KeyboardInterrupt:
        console.print(f"interrupted after {len(rows)} of {len(tasks)} problems", style="red")
        return INTERRUPTED
    finally:
        _report(rows, host_rows, options, settings, console)
    return int(any(row.wrong for row in rows))


def _report(
    rows: list[BenchRow], host_rows: list[HostRow], options: argparse.Namespace, settings: Settings, console: Console
) -> None:
    console.print(report.LEGEND, style="dim")
    for table in report.bench_tables(rows):
        console.print(table)
    if host_rows:
        console.print(report.host_table(host_rows))
    for line in report.remarks(rows):
        console.print(line, style="red" if line.startswith("WRONG") else None, markup=False)
    if options.picture is not None:
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        options.picture.write_text(roofline.svg(rows), encoding="utf-8")
        console.print(f"drawn to {options.picture}", markup=False)
    path = options.out or record.default_path()
    record.write(record.as_record(rows, host_rows, settings, survey=options.every_kind), path)
    console.print(f"written to {path}", markup=False)


def _tasks(asked: list[Named], options: argparse.Namespace, kind: DeviceKind) -> Iterator[Task]:
    ops, functions = [op_name(each.plan) for each in asked], [each for each in asked if each.fields]
    if functions and (options.vary or options.every_kind):
        raise ValueError(f"--vary and --every-kind want plans, such as {op_name(functions[0].plan)}, and got one of its functions")
    if options.vary:
        for field_and_values in options.vary:
            yield from varied(ops, field_and_values, kind)
    elif options.every_kind:
        yield from of_every_kind(ops, Device(kind))
    elif not options.problem:
        for op, each in zip(ops, asked, strict=True):
            if each.fields:
                yield from (Task(op, each.plan, problem) for problem in each.showcase(kind))
            else:
                yield from showcase([op], 1 if options.quick else None, kind)
    elif len(ops) != 1:
        raise ValueError(f"--problem wants one op, and there are {len(ops)}")
    else:
        for text in options.problem:
            yield Task(ops[0], asked[0].plan, asked[0].problem(fields_of(text, asked[0].plan.descriptor_type)))


def _laid_out(task: Task, asked: list[str] | None) -> Task:
    """The task with its inputs in the requested layouts."""
    if not asked:
        return task
    layouts = {name: layout for name, _, layout in (one.partition("=") for one in asked)}
    inputs = [operand.name for operand in present_operands(task.plan, task.descriptor) if operand.access is Access.READ]
    for name, layout in layouts.items():
        if name not in inputs:
            raise ValueError(no_such("input", name, inputs))
        if layout not in LAYOUTS:
            raise ValueError(no_such("layout", layout, LAYOUTS))
    return task._replace(layouts=layouts)


def measured(tasks: list[Task], ops: list[str], settings: Settings, console: Console) -> Iterator[BenchRow | HostRow]:
    """The tasks' rows one by one, then the host time of the ops, with a progress bar meanwhile."""
    plans = registry.plans()
    with Progress(
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        whole = bar.add_task("", total=len(tasks) + len(ops))
        for task in tasks:
            _say(bar, whole, f"{task.op}: {task}")
            yield measure(task, settings)
        for op in ops:
            _say(bar, whole, f"{op}: host time")
            yield from filter(None, [measure_host(op, plans[op], settings)])


def _say(bar: Progress, whole: TaskID, what: str) -> None:
    """Announces the next step: on the progress bar, or as a line if the output is not a terminal."""
    (task,) = bar.tasks
    bar.update(whole, description=what, completed=task.completed + bool(task.description))
    if bar.disable:
        bar.console.print(f"{what} ...", style="dim", markup=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m baracuda_kernels.bench", description=__doc__)
    add_arguments(parser)
    return exit_status(lambda: run(parser.parse_args(arguments)))
