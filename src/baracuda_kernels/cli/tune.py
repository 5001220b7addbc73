"""`tune`: races the candidates for some problems ahead of time, and keeps what was found as wisdom.

baracuda-kernels tune --out wisdom.json softmax --shape 64,1024             one problem
baracuda-kernels tune --out wisdom.json gelu                                the showcase problems of one op
baracuda-kernels tune --out wisdom.json --all                               the showcase problems of every op
baracuda-kernels tune --record run.json --out wisdom.json                   what a program has run: see `bk.record`
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.progress import track

from baracuda_kernels.bench.problems import describe
from baracuda_kernels.bench.report import add_numbers, console, table
from baracuda_kernels.cli.counts import count
from baracuda_kernels.cli.fields import add_field_options, given_fields
from baracuda_kernels.cli.names import UnknownOp, named
from baracuda_kernels.core import registry
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import Error, InvalidProblem, InvalidWisdom
from baracuda_kernels.core.machine import cores
from baracuda_kernels.core.preference import Effort, PlanPreference
from baracuda_kernels.core.recording import problems_in
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.wisdom import Wisdom, save_wisdom
from baracuda_kernels.verify.precompile import Problem, compile_ahead

MEASURE = PlanPreference(effort=Effort.MEASURE)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="race the candidates ahead of time and save the result",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--record", type=Path, help="the problems of this record")
    which.add_argument("--all", action="store_true", help="the showcase problems of every op: takes hours")
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CPU, help="default: cpu")
    parser.add_argument("--out", type=Path, default=Path("wisdom.json"), help="added to if it is there (default: wisdom.json)")
    parser.add_argument("--jobs", type=count, metavar="N", help="processes that compile, before the races (default: one a core)")
    parser.add_argument("op", nargs="?", metavar="OP", help="its showcase problems, or the one that the fields after it say")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="fields of the problem, as `explain` takes them")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    if sum((options.op is not None, options.record is not None, options.all)) != 1:
        options.parser.error("wanted one of these: an OP, --record FILE, or --all for the showcase problems of every op")
    complaints = console(stderr=True)
    stream = Stream.on(Device(options.device))
    try:
        if options.out.exists():
            Wisdom.read(options.out)  # what cannot be added to is said before hours are spent
        problems = list(_problems(options))
    except (UnknownOp, InvalidProblem, InvalidWisdom) as mistake:
        complaints.print(str(mistake), markup=False, soft_wrap=True)
        return 2
    if absent := stream.device.reasons_absent():
        complaints.print(str(absent[0]), markup=False)
        return 2
    races, alone, refused = _sorted_out(problems, stream)
    for why in refused:
        complaints.print(why, markup=False, soft_wrap=True)
    if alone:
        problem = "problem has" if len(alone) == 1 else "problems have"
        complaints.print(f"{len(alone)} {problem} one candidate only, nothing to race:", markup=False)
        for line in alone:
            complaints.print(f"  {line}", markup=False, soft_wrap=True)
    if races:
        refused += _race(races, stream, options)
    return int(bool(refused))


def _sorted_out(problems: list[Problem], stream: Stream) -> tuple[list[Problem], list[str], list[str]]:
    """Those with several candidates, and in words those with one only and those with none."""
    races, alone, refused = [], [], []
    for plan, descriptor in problems:
        try:
            names = plan.candidate_names(stream, descriptor, MEASURE)
        except Error as why:
            refused.append(str(why))
            continue
        if len(names) > 1:
            races.append((plan, descriptor))
        else:
            alone.append(f"{registry.op_name(plan)}, {describe(descriptor)}: {names[0]}")
    return races, alone, refused


def _race(problems: list[Problem], stream: Stream, options: argparse.Namespace) -> list[str]:
    """Shows and keeps what is fastest for each problem. Returns, in words, those that could not be raced."""
    complaints, out, found, refused = console(stderr=True), console(), table(), []
    compile_ahead(problems, stream.device, options.jobs or cores(), complaints, MEASURE)
    for heading in ("op", "problem", "fastest"):
        found.add_column(heading, overflow="fold")
    add_numbers(found, "µs", "others")
    for plan, descriptor in track(problems, "racing", console=complaints, transient=True, disable=not complaints.is_terminal):
        try:
            chosen = plan.select(stream, descriptor, MEASURE)
        except Error as why:
            complaints.print(str(why), markup=False, soft_wrap=True)
            refused.append(str(why))
            continue
        save_wisdom(options.out)  # after each, so that nothing is lost if the rest is not waited for
        name = chosen.sku.name if chosen.tile is None else f"{chosen.sku.name} {chosen.tile}"
        lost = [name for name, reasons in chosen.rejected.items() if any("measured" in str(reason) for reason in reasons)]
        seconds = "" if chosen.seconds is None else f"{chosen.seconds * 1e6:.1f}"
        found.add_row(registry.op_name(plan), describe(descriptor), name, seconds, str(len(lost)))
    out.print(found)
    if len(refused) < len(problems):
        out.print(f"written to {options.out}", markup=False, soft_wrap=True)
    return refused


def _problems(options: argparse.Namespace) -> Iterator[Problem]:
    if options.record is not None:
        plans = registry.plans()
        yield from ((plans[op], descriptor) for op, descriptor in problems_in(options.record))
        return
    if options.options:
        asked = named(options.op)
        parser = argparse.ArgumentParser(prog=f"baracuda-kernels tune {options.op}")
        add_field_options(parser, asked.plan.descriptor_type)
        yield asked.plan, asked.problem(given_fields(parser.parse_args(options.options), asked.plan.descriptor_type))
        return
    for asked in map(named, registry.plans() if options.all else (options.op,)):
        yield from ((asked.plan, problem) for problem in asked.showcase(options.device))
