"""What a training is told about afterwards: speeds, how far the loss curves are apart, kernels, the picture."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from curves import Curve, svg

if TYPE_CHECKING:
    from train import Outcome


def show(outcome: Outcome, console: Console, picture: Path) -> None:
    console.print(_speeds(outcome))
    console.print(f"{outcome.times_faster:.2f} times as fast. The loss curves are at most {outcome.apart:.1e} apart.\n")
    console.print(_kernels(outcome))
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(_picture(outcome), encoding="utf-8")
    console.print(f"The picture of both, loss and speed: {picture}", soft_wrap=True)


def _table(title: str, *numbers: str) -> Table:
    result = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    result.add_column("")
    for heading in numbers:
        result.add_column(heading, justify="right")
    return result


def _speeds(outcome: Outcome) -> Table:
    table = _table("Ops by", "ms per step", "tokens per second", "loss at the end")
    for run in (outcome.pytorch, outcome.ours):
        numbers = f"{1e3 * run.seconds_per_step:.1f}", f"{run.tokens_per_second:,.0f}", f"{run.losses[-1]:.4f}"
        table.add_row(run.ops.name, *numbers)
    return table


def _kernels(outcome: Outcome) -> Table:
    table = _table("Kernels that ran", "runs per step", "host ms per step")
    runs: dict[str, int] = defaultdict(int)
    nanoseconds: dict[str, int] = defaultdict(int)
    for entry in outcome.recording.entries():
        name = entry.plan.sku.name
        runs[name] += entry.runs
        nanoseconds[name] += entry.nanoseconds
    steps = outcome.ours.job.steps
    for name, count in sorted(runs.items()):
        table.add_row(name, f"{count / steps:g}", f"{nanoseconds[name] / steps / 1e6:.2f}")
    return table


def _picture(outcome: Outcome) -> str:
    job = outcome.ours.job
    looks = ((outcome.pytorch, "#e0912f", 5.0), (outcome.ours, "#3b6fd4", 1.5))
    curves = [
        Curve(f"{run.ops.name}: {run.tokens_per_second:,.0f} tokens per second", run.losses, colour, width)
        for run, colour, width in looks
    ]
    (machine,) = outcome.recording.as_data()["machines"].values()
    place = ", ".join(f"{name} {machine[name]}" for name in ("device", "threads", "torch", "numba", "triton") if name in machine)
    parameters = sum(parameter.numel() for parameter in outcome.ours.model.parameters())
    title = f"Training {parameters / 1e6:.1f} million parameters on {job.tokens:,} characters a step: loss"
    return svg(title, f"At most {outcome.apart:.1e} apart; {place}", curves)
