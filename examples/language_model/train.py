"""Trains a small language model on this library's source twice, step by step in turns: with PyTorch's own ops, and with these.

Both runs start from the same weights and read the same text. At the end: the loss curves in one picture and how far they are
apart, the speed of both, and the kernels that ran.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import baracuda_kernels as bk
from data import Text
from model import BARACUDA, PYTORCH, LanguageModel, Ops, Sizes
from report import show

WARM_UP = 3  # steps in which kernels are compiled and memory is touched first; they count for the loss, not for the speed
LAYERS = ("mamba", "mamba", "mamba", "attention", "feed-forward")


@dataclass(frozen=True)
class Job:
    """What is trained, for how long, and where."""

    sizes: Sizes
    batch: int
    length: int  # tokens that the model sees at once
    steps: int
    device: str = "cpu"
    element: torch.dtype = torch.float32  # bfloat16: by autocast
    rate: float = 2e-3
    seed: int = 1

    @property
    def tokens(self) -> int:
        """Of one step."""
        return self.batch * self.length


JOBS = {
    "cpu": Job(Sizes(256, LAYERS), batch=8, length=256, steps=180),
    "cuda": Job(
        Sizes(1024, 2 * LAYERS, chunk=128), batch=16, length=1024, steps=150, device="cuda", element=torch.bfloat16, rate=1e-3
    ),
}
SHORT = 60  # steps, of a training that is to be over soon
ELEMENTS = {"f32": torch.float32, "bf16": torch.bfloat16}
QUICK = Job(Sizes(64, ("mamba", "attention", "feed-forward"), head=32, state=16, chunk=32), batch=4, length=64, steps=12, rate=4e-3)


@dataclass
class Run:
    """One of the two trainings."""

    ops: Ops
    job: Job
    alphabet: int
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(self.job.seed)
        self.model = LanguageModel(self.alphabet, self.job.sizes, self.ops).to(self.job.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.95), fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, self.job.rate, self.job.steps + 1, pct_start=0.1)

    def step(self, batch: torch.Tensor) -> None:
        start = self._now()
        with torch.autocast(self.job.device, torch.bfloat16, enabled=self.job.element == torch.bfloat16):
            scores = self.model(batch[:, :-1])
        loss = F.cross_entropy(scores.float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        self.losses.append(loss.item())
        self.seconds.append(self._now() - start)

    def _now(self) -> float:
        if self.job.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    @property
    def seconds_per_step(self) -> float:
        return statistics.median(self.seconds[WARM_UP:])

    @property
    def tokens_per_second(self) -> float:
        return self.job.tokens / self.seconds_per_step


@dataclass
class Outcome:
    pytorch: Run
    ours: Run
    recording: bk.Recording

    @property
    def times_faster(self) -> float:
        return self.pytorch.seconds_per_step / self.ours.seconds_per_step

    @property
    def apart(self) -> float:
        """The largest difference between the loss curves."""
        return max(abs(one - other) for one, other in zip(self.pytorch.losses, self.ours.losses, strict=True))


def train(job: Job, console: Console) -> Outcome:
    text = Text()
    pytorch, ours = (Run(ops, job, len(text.alphabet)) for ops in (PYTORCH, BARACUDA))
    ours.model.load_state_dict(pytorch.model.state_dict())
    turns = [pytorch, ours]
    columns = (TextColumn("step"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with bk.record() as recording, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=job.steps)
        for batch in text.batches(job.steps, job.batch, job.length, job.seed):
            for run in turns:
                run.step(batch.to(job.device))
            turns.reverse()  # who was first is second in the next step
            losses = ", ".join(f"{run.losses[-1]:.4f} {run.ops.name}" for run in (pytorch, ours))
            progress.update(task, advance=1, description=f"loss {losses}")
    return Outcome(pytorch, ours, recording)


def main(arguments: list[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(JOBS), default="cpu")
    parser.add_argument("--element", choices=list(ELEMENTS), help="bf16: by autocast, in both runs; by default on CUDA")
    parser.add_argument("--threads", type=int, help="of both runs on the CPU; by default one for each core")
    parser.add_argument("--steps", type=int, help="other than the job's own")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--short", action="store_true", help=f"{SHORT} steps of half as many tokens: less than a minute on two cores"
    )
    length.add_argument("--quick", action="store_true", help="a tiny model and a dozen steps")
    here = Path(__file__).resolve().parent
    parser.add_argument("--picture", type=Path, default=here / "out" / "loss.svg", help="where the loss curves go")
    options = parser.parse_args(arguments)
    job = replace(QUICK, device=options.device) if options.quick else JOBS[options.device]
    if options.short:
        job = replace(job, batch=job.batch // 2, steps=SHORT)
    steps = job.steps if options.steps is None else options.steps
    job = replace(job, steps=steps, element=ELEMENTS.get(options.element, job.element))
    if steps <= WARM_UP:
        parser.error(f"--steps: got {steps}, wanted more than {WARM_UP}")
    if job.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device: got cuda, wanted a device that PyTorch finds here")
    if options.threads is not None:
        if options.threads < 1:
            parser.error(f"--threads: got {options.threads}, wanted at least 1")
        bk.set_num_threads(options.threads)
        torch.set_num_threads(options.threads)
    console = Console(highlight=False)
    outcome = train(job, console)
    show(outcome, console, options.picture)
    return outcome


if __name__ == "__main__":
    main()
