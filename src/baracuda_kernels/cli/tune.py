"""`tune`: races the candidates for some problems ahead of time, and keeps what was found as wisdom.

baracuda-kernels tune --out wisdom.json                                     the showcase problems of every op
baracuda-kernels tune --out wisdom.json softmax --shape 64,1024             one problem
baracuda-kernels tune --record run.json --out wisdom.json                   what a program has run: see `bk.record`
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.progress import track

from baracuda_kernels.bench.problems import describe
from baracuda_kernels.bench.report import console, table
from baracuda_kernels.check.ahead import Problem, compile_ahead
from baracuda_kernels.cli.counts import count
from baracuda_kernels.cli.fields import add_field_options, given_fields
from baracuda_kernels.cli.names import UnknownOp, plan_named
from baracuda_kernels.core import registry
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import Error, InvalidProblem, InvalidWisdom
from baracuda_kernels.core.machine import cores
from baracuda_kernels.core.preference import Effort, PlanPreference
from baracuda_kernels.core.recording import problems_in
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.wisdom import Wisdom, save_wisdom

MEASURE = PlanPreference(effort=Effort.MEASURE)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="race the candidates ahead of time, and keep what was found",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", type=Path, help="the problems of this record")
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CPU, help="default: cpu")
    parser.add_argument("--out", type=Path, default=Path("wisdom.json"), help="added to if it is there (default: wisdom.json)")
    parser.add_argument("--jobs", type=count, metavar="N", help="processes that compile, before the races (default: one a core)")
    parser.add_argument("op", nargs="?", metavar="OP", help="by default all")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="fields of the problem, as `explain` takes them")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
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
    compile_ahead(problems, stream.device, options.jobs or cores(), complaints, MEASURE)
    out, found = console(), table()
    for heading in ("op", "problem", "fastest", "µs", "others"):
        found.add_column(heading)
    refused = 0
    for plan, descriptor in track(problems, "racing", console=complaints, transient=True):
        try:
            chosen = plan.select(stream, descriptor, MEASURE)
        except Error as why:
            complaints.print(str(why), markup=False, soft_wrap=True)
            refused += 1
            continue
        save_wisdom(options.out)  # after each, so that nothing is lost if the rest is not waited for
        name = chosen.sku.name if chosen.tile is None else f"{chosen.sku.name} {chosen.tile}"
        lost = [name for name, reasons in chosen.rejected.items() if any("measured" in str(reason) for reason in reasons)]
        seconds = "" if chosen.seconds is None else f"{chosen.seconds * 1e6:.1f}"
        found.add_row(registry.op_name(plan), describe(descriptor), name, seconds, str(len(lost)))
    out.print(found)
    out.print(f"written to {options.out}", markup=False)
    return int(refused > 0)


def _problems(options: argparse.Namespace) -> Iterator[Problem]:
    plans = registry.plans()
    if options.record is not None:
        yield from ((plans[op], descriptor) for op, descriptor in problems_in(options.record))
        return
    for plan in plans.values() if options.op is None else (plan_named(options.op),):
        if options.options:
            parser = argparse.ArgumentParser(prog=f"baracuda-kernels tune {registry.op_name(plan)}")
            add_field_options(parser, plan.descriptor_type)
            given = given_fields(parser.parse_args(options.options), plan.descriptor_type)
            yield plan, plan.cases.from_options(given)
        else:
            cases = plan.cases
            yield from (
                (plan, problem) for problem in (cases.showcase() if options.device is DeviceKind.CPU else cases.cuda_showcase())
            )
