"""`accuracy`: how far elementwise ops are from the exact results, over millions of operands.

baracuda-kernels accuracy                         every unary op of floats: f32 over ten million operands, f16 and bf16 over all 65,536
baracuda-kernels accuracy exp gelu --element bf16
baracuda-kernels accuracy --device cuda --jobs 8 --json run.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.progress import track

from baracuda_kernels.bench.report import add_numbers, console, table
from baracuda_kernels.cli.counts import count
from baracuda_kernels.cli.stopping import INTERRUPTED, terminated_is_interrupted
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.nearest import no_such

ELEMENTS = (ElementKind.F32, ElementKind.F16, ElementKind.BF16)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "accuracy",
        help="measure the errors of elementwise ops",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ops", nargs="*", metavar="OP", help="by default all unary ops of floats")
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CPU, help="default: cpu")
    parser.add_argument("--element", type=ElementKind, choices=ELEMENTS, help="by default each of them")
    parser.add_argument("--count", type=count, default=10_000_000, help="operands in f32 (default: 10 million)")
    parser.add_argument("--jobs", type=count, default=1, help="ops at a time (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every result")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """1 if any op is further off than it may be."""
    from baracuda_kernels.verify import accuracy
    from baracuda_kernels.verify.processes import answers

    complaints, device, known = console(stderr=True), Device(options.device), accuracy.measured_ops()
    mistakes = [no_such("op", name, known) for name in options.ops if name not in known]
    mistakes += [str(reason) for reason in device.reasons_absent()]
    if mistakes:
        complaints.print(mistakes[0], markup=False, soft_wrap=True)
        return 2
    elements = ELEMENTS if options.element is None else (options.element,)
    questions = [
        accuracy.AccuracyQuestion(op, element, device, options.count) for op in options.ops or known for element in elements
    ]
    every = answers(accuracy.measure, questions, options.jobs)
    found: list[accuracy.Measured] = []
    try:
        with terminated_is_interrupted():
            hidden = not complaints.is_terminal
            for each in track(every, "measuring", total=len(questions), console=complaints, transient=True, disable=hidden):
                found.append(each)  # one by one: what was found before an interruption is kept
    except KeyboardInterrupt:
        complaints.print(f"Stopped; measured were {len(found)} of {len(questions)}.", markup=False)
    out, shown = console(), table()
    for heading in ("op", "element"):
        shown.add_column(heading, no_wrap=True)
    add_numbers(shown, "operands", "worst ulp", "at", "misplaced")
    for each in found:
        style = None if each.holds else "red"
        shown.add_row(
            each.op, each.element, f"{each.count:,}", f"{each.ulp:.2f}", f"{each.at:.9g}", str(each.misplaced or ""), style=style
        )
    out.print(shown)
    held = sum(each.holds for each in found)
    out.print(f"{held} of {len(found)} within their bounds: 4 ulp in f32, 1 of the nearest in f16 and bf16.")
    if options.json:
        options.json.write_text(accuracy.as_json(found, device), encoding="utf-8")
    return INTERRUPTED if len(found) < len(questions) else int(held < len(found))
