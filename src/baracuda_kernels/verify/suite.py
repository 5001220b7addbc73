"""Every kernel of this machine, forced, and every promise it makes: what is checked, and what came of it."""

from __future__ import annotations

import datetime
import json
import math
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, is_interpreted
from baracuda_kernels.core.machine import cores, machine_of, versions
from baracuda_kernels.core.nearest import no_such
from baracuda_kernels.verify.case import Case, Depth, all_cases
from baracuda_kernels.verify.promises import BINS, PROMISES, Errors, Promise
from baracuda_kernels.verify.trial import AnyPlan

SCHEMA = 1
_PACKAGES = ("baracuda-kernels", "torch", "triton", "numba", "numpy")


class WrongQuestion(Exception):
    """There is nothing here by that name."""


@dataclass(frozen=True)
class Question:
    """What to verify; None is everything."""

    plans: tuple[type[AnyPlan], ...]
    device: Device
    depth: Depth = Depth.USUAL
    kernel: str | None = None
    element: ElementKind | None = None
    check: str | None = None
    case: int | None = None


class VerifyTask(NamedTuple):
    case: Case
    promise: Promise


@dataclass
class Result:
    """One promise on one problem."""

    op: str
    kernel: str
    element: str
    check: str
    case: int
    problem: Any  # the descriptor
    command: str  # that does just this again
    says: list[str] = field(default_factory=list)  # what did not hold
    errors: list[Errors] = field(default_factory=list)
    findings: int = 0
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        return not self.says

    def only(self, output: str) -> Result:
        return replace(self, errors=[errors for errors in self.errors if errors.output == output])


def tasks(question: Question) -> list[VerifyTask]:
    """The checks to run, in the order of the registry, grouped by problem. Raises `WrongQuestion` if there are none."""
    if question.check not in (None, *PROMISES):
        raise WrongQuestion(no_such("check", str(question.check), PROMISES))
    found = [task for plan, kernel in _kernels(question) for task in _tasks_of(plan, kernel, question)]
    if not found:
        raise WrongQuestion(_nothing_left(question))
    return found


def _kernels(question: Question) -> list[tuple[type[AnyPlan], Kernel]]:
    """The kernels that the question asks about and that can run on this machine."""
    if absent := question.device.reasons_absent():
        raise WrongQuestion(f"{absent[0]}.")
    every = [(plan, kernel) for plan in question.plans for kernel in plan.kernels]
    names = [kernel.name for _, kernel in every]
    if question.kernel is not None and question.kernel not in names:
        raise WrongQuestion(no_such("kernel", question.kernel, names))
    wanted = [(plan, kernel) for plan, kernel in every if question.kernel in (None, kernel.name)]
    if question.kernel is not None and (against := list(wanted[0][1].reasons_against_machine(question.device))):
        raise WrongQuestion(f"{question.kernel} cannot run: {against[0]}.")
    return [(plan, kernel) for plan, kernel in wanted if not list(kernel.reasons_against_machine(question.device))]


def _nothing_left(question: Question) -> str:
    asked = {"element": question.element, "check": question.check, "case": question.case}
    given = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
    return (
        f"No kernel on {question.device} makes that promise there: {given}." if given else f"No kernel runs on {question.device}."
    )


def _tasks_of(plan: type[AnyPlan], kernel: Kernel, question: Question) -> Iterator[VerifyTask]:
    for element in kernel.elements:
        if question.element in (None, element):
            cases = all_cases(plan, kernel, element, question.device, question.depth)
            chosen = [task for promise in PROMISES.values() for task in _chosen(promise, cases, question)]
            yield from sorted(chosen, key=lambda task: task.case.number)


def _chosen(promise: Promise, cases: list[Case], question: Question) -> list[VerifyTask]:
    count = promise.counts[question.depth]
    if question.check is not None:
        if question.check != promise.name:
            return []
        count = count or promise.counts[Depth.FULL]  # what is asked for by name is done at any depth
    if not count:
        return []
    made = [case for case in cases if promise.is_made(case)]
    if question.case is not None:
        return [VerifyTask(case, promise) for case in made if case.number == question.case]
    return [VerifyTask(case, promise) for case in promise.pick(made, count)]


def answer(task: VerifyTask) -> Result:
    """Whatever a kernel raises is a promise not kept."""
    case, promise = task
    result = Result(
        case.op, case.kernel.name, case.element.value, promise.name, case.number, case.descriptor, command(case, promise.name)
    )
    start = time.perf_counter()
    try:
        for finding in promise.check(case):
            result.findings += 1
            result.errors += [] if finding.errors is None else [finding.errors]
            result.says += [] if finding.held else [finding.says]
    except Exception as problem:
        result.says.append(f"{type(problem).__name__}: {problem}")
    result.seconds = time.perf_counter() - start
    return result


def parts(question: Question) -> list[Question]:
    """The same question about one kernel in one element each. Raises `WrongQuestion` where nothing is left."""
    asked = dict.fromkeys((case.plan_type, case.kernel.name, case.element) for case, _ in tasks(question))
    return [replace(question, plans=(plan,), kernel=kernel, element=element) for plan, kernel, element in asked]


def answer_all(question: Question) -> list[Result]:
    return [answer(task) for task in tasks(question)]


def command(case: Case, check: str) -> str:
    """The one that checks this again, and nothing else."""
    interpreted = "TRITON_INTERPRET=1 " if case.device.kind is DeviceKind.CPU and is_interpreted() else ""
    device = "" if case.device.kind is DeviceKind.CPU else f" --device {case.device.kind}"
    depth = "" if case.depth is Depth.USUAL else f" --{case.depth.value}"
    what = f"--kernel {case.kernel.name} --element {case.element} --check {check} --case {case.number}"
    return f"{interpreted}baracuda-kernels verify {case.op}{device}{depth} {what}"


# --- summed up ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One kernel in one element."""

    op: str
    kernel: str
    element: str
    results: tuple[Result, ...]

    def verdict(self, check: str) -> bool | None:
        """Whether it held wherever it was checked; None where it was not."""
        verdicts = [result.held for result in self.results if result.check == check]
        return all(verdicts) if verdicts else None

    @property
    def errors(self) -> list[Errors]:
        return [errors for result in self.results for errors in result.errors]

    def by_output(self) -> dict[str, Line]:
        """The same with the errors of one output each."""
        names = dict.fromkeys(errors.output for errors in self.errors)
        return {name: replace(self, results=tuple(result.only(name) for result in self.results)) for name in names}

    @property
    def closest(self) -> Errors | None:
        """The error that comes closest to its bound."""
        return max(self.errors, key=lambda errors: share_of_bound(errors), default=None)

    @property
    def worst_ulp(self) -> float:
        return max((errors.worst_ulp for errors in self.errors), default=0.0)

    @property
    def rms_ulp(self) -> float:
        """Over all elements of all outputs."""
        sizes = [sum(errors.histogram) for errors in self.errors]
        squares = sum(size * errors.rms_ulp**2 for size, errors in zip(sizes, self.errors, strict=True))
        return math.sqrt(squares / max(sum(sizes), 1))

    @property
    def histogram(self) -> list[int]:
        return [sum(counts) for counts in zip(*(errors.histogram for errors in self.errors), strict=True)]


def share_of_bound(errors: Errors) -> float:
    """Past 1 it is too large; of a bound of zero any error is."""
    return errors.relative / errors.bound if errors.bound else math.inf if errors.relative else 0.0


def lines(results: Iterable[Result]) -> list[Line]:
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.op, result.kernel, result.element), []).append(result)
    return [Line(*key, tuple(group)) for key, group in groups.items()]


def as_record(results: Iterable[Result], device: Device, depth: Depth) -> dict[str, Any]:
    """The whole run as plain data. Names no machine but by its processor."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": machine_of(device)["device"],
        "cores": cores(),
        "versions": {"python": platform.python_version()} | versions(_PACKAGES),
        "depth": depth.value,
        "bins": BINS,
        "results": [_plain(result) for result in results],
    }


def _plain(result: Result) -> dict[str, Any]:
    errors = [
        {name: str(value) if value in (math.inf, math.nan) else value for name, value in asdict(each).items()}
        for each in result.errors
    ]
    named = {name: getattr(result, name) for name in ("op", "kernel", "element", "check", "case", "held", "says", "findings")}
    return named | {
        "problem": str(result.problem),
        "errors": errors,
        "seconds": round(result.seconds, 3),
        "command": result.command,
    }


def write(record: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
