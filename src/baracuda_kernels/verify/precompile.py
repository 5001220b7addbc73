"""Kernels compiled by several processes before anything is timed, so that nothing is compiled between measurements or beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from rich.console import Console
from rich.progress import track

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.errors import Error
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import Effort, PlanPreference
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.verify.processes import answers, answers_meanwhile

Problem = tuple[type[Plan[Any, Any]], Any]
DEFAULT = PlanPreference()


def compile_ahead(
    problems: Sequence[Problem], device: Device, jobs: int, console: Console, preference: PlanPreference = DEFAULT
) -> None:
    """What selecting these problems would compile. It is kept on disk, where this process finds it."""
    if jobs > 1 and len(problems) > 1:
        questions = [(plan, descriptor, device, preference) for plan, descriptor in problems]
        compiled = answers(_compile_one, questions, jobs)
        with contextlib.suppress(BrokenProcessPool):  # where one was killed, what is missing is compiled when it is selected
            for _ in track(
                compiled, "compiling", total=len(problems), console=console, transient=True, disable=not console.is_terminal
            ):
                pass


def compiled_meanwhile(problems: Sequence[Problem], device: Device, jobs: int) -> Iterator[int]:
    """The numbers of all problems, each when what selecting it compiles is on disk. Other processes compile while the caller works."""
    left = set(range(len(problems)))
    if jobs > 1 and len(problems) > 1:
        questions = [(plan, descriptor, device, DEFAULT) for plan, descriptor in problems]
        with contextlib.suppress(BrokenProcessPool):
            for number, _ in answers_meanwhile(_compile_one, questions, jobs):
                left.remove(number)
                yield number
    yield from sorted(left)  # they are compiled when they are selected


def _compile_one(question: tuple[type[Plan[Any, Any]], Any, Device, PlanPreference]) -> None:
    plan, descriptor, device, preference = question
    with contextlib.suppress(Error):  # whoever runs it says what is wrong
        compiling = plan.compile_candidates if preference.effort is Effort.MEASURE else plan.select
        compiling(Stream.on(device), descriptor, preference)
