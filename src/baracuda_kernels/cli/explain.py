"""`baracuda-kernels explain OP`: which kernel runs a problem, its guarantees, and why not the others."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from baracuda_kernels.bench.report import console
from baracuda_kernels.cli.fields import add_field_options, given_fields
from baracuda_kernels.cli.names import UnknownOp, named
from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import InvalidProblem, InvalidWisdom, Unsupported
from baracuda_kernels.core.explanation import Explanation
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import Determinism, Effort, PlanPreference
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.registry import op_name
from baracuda_kernels.core.sku import BackendKind
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.wisdom import load_wisdom

_MEANINGS = {
    "deterministic": "the same bits in every run of a process",
    "bit_stable_on_same_hardware": "the same bits in another process on the same machine",
    "batch_invariant": "the bits of a row do not depend on how many others there are",
}


def add_to(commands: Any) -> None:
    parser = commands.add_parser("explain", help="which kernel runs a problem, and why not the others", description=__doc__)
    parser.add_argument("op", metavar="OP", help="such as softmax_backward or gelu; `explain OP --help` lists its options")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="such as --shape 64,1024 --dtype bf16")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    complaints = console(stderr=True)
    try:
        asked = named(options.op)
        plan = asked.plan
        question = _parser(options.op, plan).parse_args(options.options)
        descriptor = asked.problem(given_fields(question, plan.descriptor_type))
        preference = _preference(question)
        if question.wisdom is not None:
            load_wisdom(question.wisdom)
    except (UnknownOp, InvalidProblem, InvalidWisdom) as mistake:
        complaints.print(str(mistake), markup=False, soft_wrap=True)
        return 2
    stream = Stream.on(Device(question.device))
    try:
        explanation = (chosen := plan.select(stream, descriptor, preference)).explain(not question.no_times)
        if question.json:
            print(json.dumps(explanation.as_data(), indent=1))
        else:
            _show_chosen(chosen, explanation)
    except Unsupported as refusal:
        if question.json:
            candidates = {name: [str(reason) for reason in reasons] for name, reasons in refusal.candidates.items()}
            print(
                json.dumps({"op": op_name(plan), "problem": descriptor.plain(), "kernel": None, "rejected": candidates}, indent=1)
            )
        else:
            _show_refusal(plan, descriptor, stream, refusal)
        return 1
    return 0


def _parser(op: str, plan: type[Plan[Any, Any]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"baracuda-kernels explain {op}", description=plan.__doc__)
    add_field_options(parser, plan.descriptor_type)
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CPU, help="default: cpu")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.add_argument("--no-times", action="store_true", help="nothing that depends on how fast this machine is")
    parser.add_argument("--wisdom", type=Path, help="times measured before, as `tune` writes them")
    group = parser.add_argument_group("preferences")
    group.add_argument("--backend", type=str.lower, choices=[kind.value for kind in BackendKind], help="only this backend")
    group.add_argument("--max-workspace", type=int, metavar="BYTES", help="only kernels that need no more workspace than this")
    group.add_argument("--deterministic", action="store_true", help="no kernel whose bits vary from run to run")
    group.add_argument("--batch-invariant", action="store_true", help="no kernel whose bits depend on the batch")
    group.add_argument("--allow-tf32", action="store_true", help="products of f32 may be taken in TF32")
    group.add_argument("--measure", action="store_true", help="race the candidates instead of taking the first")
    return parser


def _preference(question: argparse.Namespace) -> PlanPreference:
    return PlanPreference(
        prefer_backend=BackendKind(question.backend) if question.backend else None,
        max_workspace_bytes=question.max_workspace,
        determinism=Determinism.RUN_TO_RUN if question.deterministic else Determinism.NOT_REQUIRED,
        batch_invariant=question.batch_invariant,
        allow_tf32=question.allow_tf32,
        effort=Effort.MEASURE if question.measure else Effort.ESTIMATE,
    )


def _show_chosen(plan: Plan[Any, Any], explanation: Explanation) -> None:
    guarantee = plan.precision_guarantee
    lines = _problem(type(plan), plan.descriptor)
    lines.add_row("device", f"{plan.device} ({plan.sku.arch.value})")
    lines.add_row("kernel", f"[bold green]{plan.sku.name}[/]{'' if plan.tile is None else f' {escape(str(plan.tile))}'}")
    lines.add_row("sku", str(plan.sku))
    lines.add_row("layouts", plan.sku.layout.value)
    lines.add_row("workspace", f"{plan.workspace_size} bytes")
    for name, text in explanation.costs().items():
        lines.add_row(name, text)
    lines.add_row("guarantee", f"math in {guarantee.math_precision.value}, sums in {guarantee.accumulator}")
    for field, meaning in _MEANINGS.items():
        lines.add_row(
            "", f"{field.removesuffix('_on_same_hardware').replace('_', '-')}: {_yes_or_no(getattr(guarantee, field), meaning)}"
        )
    out = console()
    out.print(lines)
    if plan.rejected:
        out.print("\n[bold]Not chosen[/]")
        _show_reasons(plan.rejected)


def _yes_or_no(kept: bool, meaning: str) -> str:
    return f"yes, {meaning}" if kept else "no"


def _show_refusal(plan: type[Plan[Any, Any]], descriptor: Descriptor, stream: Stream, refusal: Unsupported) -> None:
    lines = _problem(plan, descriptor)
    lines.add_row("device", str(stream.device))
    lines.add_row("kernel", "[bold red]none: no kernel serves this problem here[/]")
    out = console()
    out.print(lines)
    out.print("\n[bold]Candidates[/]")
    _show_reasons(refusal.candidates or {"": refusal.reasons})


def _problem(plan: type[Plan[Any, Any]], descriptor: Descriptor) -> Table:
    """The first lines: the op, its fields and its operands."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("op", f"{op_name(plan)}: {escape((plan.__doc__ or '').strip())}")
    for number, field in enumerate(fields(descriptor)):
        value = getattr(descriptor, field.name)
        grid.add_row("problem" if number == 0 else "", escape(f"{field.name} = {getattr(value, 'name', value)}"))
    for number, operand in enumerate(plan.args_type.OPERANDS):
        grid.add_row("operands" if number == 0 else "", escape(_operand(operand, descriptor)))
    return grid


def _operand(operand: Operand, descriptor: Descriptor) -> str:
    presence = {True: "", False: ", left out", None: ", optional"}[operand.presence(descriptor)]
    shapes = " or ".join(f"[{','.join(map(str, shape))}]" for shape in operand.shapes(descriptor))
    return f"{operand.name}: {operand.access.value} {operand.element(descriptor)}{shapes}{presence}, {operand.doc}"


def _show_reasons(candidates: Any) -> None:
    out = console()
    for name, reasons in candidates.items():
        out.print(Padding(Text(name), (0, 0, 0, 2)))
        for reason in reasons:
            out.print(Padding(Text(f"- {_reason(name, reason)}"), (0, 0, 0, 4)))


def _reason(name: str, reason: Reason) -> str:
    """The reason's text; under the candidate's own name it need not be said again."""
    return str(reason).removeprefix(f"{name} ")
