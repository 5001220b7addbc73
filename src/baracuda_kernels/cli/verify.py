"""`baracuda-kernels verify`: does every kernel on this machine keep its guarantees?

baracuda-kernels verify                       every op: a few minutes; --quick takes about one, --full about half an hour
baracuda-kernels verify softmax rms_norm      these
baracuda-kernels verify softmax --kernel numba.softmax --element bf16 --check repeats --case 3
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from baracuda_kernels.bench.problems import describe
from baracuda_kernels.bench.report import add_numbers, console, table
from baracuda_kernels.cli.counts import count
from baracuda_kernels.cli.names import UnknownOp, named
from baracuda_kernels.cli.stopping import INTERRUPTED, terminated_is_interrupted
from baracuda_kernels.core import registry
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.machine import cores, cpu_name

MOST_JOBS = 8  # at a time, unless asked for: each holds a context of its own on the device

if TYPE_CHECKING:
    from baracuda_kernels.verify.suite import Line, Question, Result


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "verify",
        help="check the guarantees of every kernel on this machine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ops", nargs="*", metavar="OP", help="by default all; a function such as gelu stands for its plan")
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CPU, help="default: cpu")
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--quick", action="store_true", help="a few small problems")
    depth.add_argument("--full", action="store_true", help="every problem in every layout, many repeats, extreme numbers")
    parser.add_argument("--kernel", metavar="NAME", help="only this one, such as numba.softmax")
    parser.add_argument("--element", type=_element, metavar="NAME", help="only this one, such as bf16")
    parser.add_argument("--check", metavar="NAME", help="only this one, such as repeats")
    parser.add_argument("--case", type=int, metavar="N", help="only the problem with this index")
    parser.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="kernels at a time (default: 1 on the CPU, whose cores each uses; on CUDA one a core, up to 8)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every result")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the table and histograms of the errors")
    parser.set_defaults(run=run)


def _element(text: str) -> ElementKind:
    try:
        return ElementKind.of(text.lower())
    except ValueError as mistake:
        raise argparse.ArgumentTypeError(str(mistake)) from None


def run(options: argparse.Namespace) -> int:
    """1 if any promise was not kept, INTERRUPTED if not all were checked."""
    from baracuda_kernels.verify import report_html, suite  # what they need is not needed by the other commands
    from baracuda_kernels.verify.case import Depth

    complaints = console(stderr=True)
    depth = Depth.QUICK if options.quick else Depth.FULL if options.full else Depth.USUAL
    try:
        plans = tuple(dict.fromkeys(named(op).plan for op in options.ops)) or tuple(registry.plans().values())
        device = Device(options.device)
        question = suite.Question(plans, device, depth, options.kernel, options.element, options.check, options.case)
        questions = suite.parts(question)
    except (UnknownOp, suite.WrongQuestion) as mistake:
        complaints.print(str(mistake), markup=False, soft_wrap=True)
        return 2
    out = console()
    out.print(f"{cpu_name()}, {cores()} cores. First use of a kernel compiles it, once for this machine.", markup=False)
    jobs = options.jobs or (1 if device.kind is DeviceKind.CPU else min(cores(), MOST_JOBS))
    results = _answers(questions, jobs, complaints)
    lines = suite.lines(results)
    out.print(_table(lines))
    failed = [result for result in results if not result.held]
    for result in failed:
        _show_failure(result, out)
    kept = f"{len(results) - len(failed)} of {len(results)} promises kept"
    findings, seconds = sum(result.findings for result in results), sum(result.seconds for result in results)
    out.print(f"{kept} by {len({line.kernel for line in lines})} kernels: {findings} findings in {seconds:.0f} s.")
    record = suite.as_record(results, device, depth)
    if options.json:
        suite.write(record, options.json)
    if options.html:
        options.html.write_text(report_html.page(lines, record), encoding="utf-8")
    return INTERRUPTED if len(lines) < len(questions) else int(bool(failed))


def _answers(questions: list[Question], jobs: int, complaints: Console) -> list[Result]:
    """The results of all checks, or, if interrupted, of those done by then."""
    from baracuda_kernels.verify import suite
    from baracuda_kernels.verify.processes import answers

    results: list[Result] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=complaints, transient=True, disable=not complaints.is_terminal) as progress:
        names = [f"{question.kernel} {question.element}" for question in questions]
        bar = progress.add_task(names[0], total=len(questions))
        try:
            with terminated_is_interrupted():
                for number, found in enumerate(answers(suite.answer_all, questions, jobs), start=1):
                    results += found
                    progress.update(bar, advance=1, description=(*names, "")[number])
                    if not complaints.is_terminal:
                        kept = f"{sum(result.held for result in found)} of {len(found)} kept"
                        complaints.print(
                            f"{number} of {len(questions)}: {names[number - 1]}, {kept}", markup=False, highlight=False
                        )
        except KeyboardInterrupt:
            complaints.print(f"Stopped; checked were {len(suite.lines(results))} of {len(questions)}.", markup=False)
    return results


def _table(lines: list[Line]) -> Table:
    """A row for each kernel and element: the error that comes closest to its bound, and every check."""
    from baracuda_kernels.verify.promises import PROMISES

    shown = [check for check in PROMISES if check != "accuracy" and any(line.verdict(check) is not None for line in lines)]
    result = table()
    result.caption = "error: relative, of the output closest to its bound; ulp: of single elements; -: not promised, or not asked"
    result.caption_justify = "left"
    result.add_column("kernel")
    add_numbers(result, "error", "of its\nbound", "worst\nulp", "rms\nulp", *map(_heading, shown))
    op = None
    for line in lines:
        if line.op != op:
            result.add_section()
            result.add_row(f"[bold]{line.op}[/]")
            op = line.op
        short = line.kernel.replace(f".{line.op}", "", 1)
        result.add_row(f" {short} {line.element}", *_numbers(line), *(_cell(line.verdict(check)) for check in shown))
    return result


def _heading(check: str) -> str:
    """A heading, long words broken into two lines."""
    return check if len(check) <= 7 else f"{check[:-5]}-\n{check[-5:]}"


def _numbers(line: Line) -> list[str]:
    from baracuda_kernels.verify.suite import share_of_bound

    closest = line.closest
    if closest is None:
        return ["-"] * 4
    numbers = [f"{closest.relative:.1e}", f"{share_of_bound(closest):.0%}", _ulps(line.worst_ulp), _ulps(line.rms_ulp)]
    return numbers if line.verdict("accuracy") else [f"[red]{number}[/]" for number in (*numbers[:1], "FAILED", *numbers[2:])]


def _ulps(distance: float) -> str:
    return f"{distance:.2g}" if distance < 100 else f"{distance:.0f}" if distance < 10_000 else f"{distance:.0e}"


def _cell(verdict: bool | None) -> str:
    return {True: "[green]ok[/]", False: "[red]FAILED[/]", None: "-"}[verdict]


def _show_failure(result: Result, out: Console) -> None:
    out.print(f"FAILED {result.kernel} {result.check}, {describe(result.problem)}", style="red", markup=False, soft_wrap=True)
    for says in result.says[:3]:
        out.print(f"  {says}", markup=False, soft_wrap=True)
    if len(result.says) > 3:
        out.print(f"  and {len(result.says) - 3} more")
    out.print(f"  {result.command}", markup=False, soft_wrap=True)
