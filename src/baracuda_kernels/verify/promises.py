"""What kernels promise, one function each: it takes a case and yields what it found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.core.errors import Unsupported
from baracuda_kernels.core.reason import ReasonCode
from baracuda_kernels.core.threads import get_num_threads, set_num_threads
from baracuda_kernels.verify.allocation import device_allocations, python_bytes, resident_bytes
from baracuda_kernels.verify.bounds import parts, ulps
from baracuda_kernels.verify.case import Case, Depth, Origin
from baracuda_kernels.verify.extremes import CHANGES, misplaced
from baracuda_kernels.verify.memory import LAYOUTS, NAN
from baracuda_kernels.verify.other_process import digest, digest_elsewhere
from baracuda_kernels.verify.trial import Trial, compared, launched, mixed_layouts, partners, reference_outputs
from baracuda_kernels.verify.wrong_operands import Situation, spoilings

SMALL = 20_000  # elements of the largest operand up to which every layout is tried
BINS = tuple(2.0**power for power in range(-4, 9))  # edges, in ulp, of the histogram of errors
PYTHON_BYTES = 16_384  # what a launch may spend on Python's own objects
RESIDENT_BYTES = 4 << 20  # how far a process may seem to grow without anybody's doing

_LAYOUTS = {
    Depth.QUICK: ("contiguous", "gaps"),
    Depth.USUAL: ("contiguous", "offset", "gaps", "backwards"),
    Depth.FULL: tuple(LAYOUTS),
}
_REPEATS = {Depth.QUICK: 3, Depth.USUAL: 4, Depth.FULL: 20}
_THREADS = (1, 2, 3)


@dataclass(frozen=True)
class Errors:
    """How far one output is from the float64 reference."""

    output: str
    element: str
    relative: float  # ‖result − reference‖₂ / ‖reference‖₂, the worst over all layouts
    bound: float  # what is allowed of it
    worst_ulp: float  # of a single element, of contiguous operands
    rms_ulp: float
    histogram: tuple[int, ...]  # elements whose error in ulp is at most the first edge, the next, ..., more than the last


@dataclass(frozen=True)
class Finding:
    held: bool
    says: str = ""
    errors: Errors | None = None


HELD = Finding(True)
Check = Callable[[Case], Iterator[Finding]]


# --- numbers and memory: one set of trials for both ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _trials(case: Case) -> tuple[tuple[str, Trial], ...]:
    """The case in some layouts and in place, each compared with the reference."""
    plan, inputs, rng = case.plan, case.inputs(), case.rng()
    cancels = case.origin is Origin.DRAWN
    if case.origin is Origin.LARGE:
        return (("layout contiguous", compared(plan, inputs)),)
    layouts: list[Any] = list(_LAYOUTS[case.depth if case.largest_operand <= SMALL else Depth.QUICK])
    layouts += [] if case.depth is Depth.QUICK else [mixed_layouts(case.plan_type, rng)]
    trials = [(f"layout {layout}", compared(plan, inputs, layout, may_cancel=cancels)) for layout in layouts]
    for operand in plan.args_type.OPERANDS:
        for partner in partners(operand, case.plan_type, case.descriptor):
            in_place = (operand.name, partner)
            trials.append((f"{operand.name} in place of {partner}", compared(plan, inputs, in_place=in_place, may_cancel=cancels)))
    return tuple(trials)


def accuracy(case: Case) -> Iterator[Finding]:
    """Every output is within the error bound of its element, in every layout the kernel takes."""
    contiguous, taken = _trials(case)[0][1], [(how, trial) for how, trial in _trials(case) if not trial.declined]
    if contiguous.declined:
        yield Finding(False, f"contiguous operands were refused: {contiguous.declined[0]}")
    for how, trial in _trials(case):
        if {reason.code for reason in trial.declined} - {ReasonCode.LAYOUT}:
            yield Finding(False, f"refused, {how}: {trial.declined[0]}")
    for name in contiguous.outputs:
        how, worst = max(taken, key=lambda pair: pair[1].errors[name] / max(pair[1].bounds[name], 1e-300))
        errors = _errors(name, contiguous, worst)
        held = errors.relative <= errors.bound
        says = "" if held else f"{name} has a relative error of {errors.relative:.3g}, allowed is {errors.bound:.3g}; {how}"
        yield Finding(held, says, errors)


def _errors(name: str, contiguous: Trial, worst: Trial) -> Errors:
    placed = contiguous.operands[name]
    distances = ulps(placed.values, contiguous.expected[name], placed.element) if placed.element.part.is_float else numpy.zeros(0)
    counts = numpy.bincount(numpy.searchsorted(BINS, distances), minlength=len(BINS) + 1)
    largest, mean = (float(distances.max()), float(numpy.mean(distances**2)) ** 0.5) if distances.size else (0.0, 0.0)
    return Errors(
        name, placed.element.value, worst.errors[name], worst.bounds[name], largest, mean, tuple(int(count) for count in counts)
    )


def memory(case: Case) -> Iterator[Finding]:
    """Nothing is written but outputs and workspace, all of every output is, and the workspace is as large as was said."""
    for how, trial in _trials(case):
        for trespass in trial.trespasses:
            yield Finding(False, f"{trespass}; {how}")
        for name in () if "in place" in how else trial.outputs:
            if unwritten := _unwritten(trial, name):
                yield Finding(False, f"{unwritten} elements of {name} were not written; {how}")
    complaint = Situation(case.plan).workspace_complaint()
    yield HELD if complaint is None else Finding(False, complaint)


def _unwritten(trial: Trial, name: str) -> int:
    """Elements that still hold the NaN that was there before, where a number should be."""
    placed = trial.operands[name]
    size = placed.element.part.size
    before = (placed.words.reshape(-1).view(numpy.uint8).reshape(-1, size) == NAN).all(axis=1)
    return int((before & numpy.isfinite(trial.expected[name]).reshape(-1)).sum()) if placed.element.part.is_float else 0


# --- bits ----------------------------------------------------------------------------------------------------------------------


def repeats(case: Case) -> Iterator[Finding]:
    """The same bits in every run; with any number of threads too, where the kernel is bit-stable."""
    plan, inputs, threads = case.plan, case.inputs(), get_num_threads()
    first = launched(plan, inputs)
    vary = case.guarantee.bit_stable_on_same_hardware and case.device.kind is DeviceKind.CPU
    try:
        for number in range(1, _REPEATS[case.depth]):
            count = _THREADS[number % len(_THREADS)] if vary else threads
            set_num_threads(count)
            says = _difference(first, launched(plan, inputs))
            yield Finding(False, f"run {number + 1} on {count} threads: {says}") if says else HELD
    finally:
        set_num_threads(threads)


def _difference(first: Trial, again: Trial) -> str:
    for name in first.outputs:
        differing = int((first.operands[name].words != again.operands[name].words).sum())
        if differing:
            return f"{differing} of {first.operands[name].words.size} elements of {name} have other bits than in the first run"
    return ""


def processes(case: Case) -> Iterator[Finding]:
    """The same bits in another process, with another number of threads."""
    here, there = digest(case), digest_elsewhere(case)
    yield HELD if here == there else Finding(False, f"another process has other bits: {there}, here {here}")


def batch(case: Case) -> Iterator[Finding]:
    """A part of the batch computed alone has the bits that it has among others."""
    inputs = case.inputs()
    together = launched(case.plan, inputs)
    for number, part in enumerate(case.plan_type.cases.parts(case.descriptor)):
        try:
            plan = case.plan_type.force(case.kernel.name, case.stream, part.descriptor)
        except Unsupported:
            continue
        alone = launched(plan, {name: part.take(name, values) for name, values in inputs.items()})
        for name in alone.outputs:
            wanted = part.take(name, together.operands[name].words)
            if wanted is not None:
                same = alone.operands[name].words.tobytes() == wanted.tobytes()
                yield HELD if same else Finding(False, f"{name} of part {number} has other bits alone than among the others")


# --- refusals, allocation, extremes --------------------------------------------------------------------------------------------


def rejections(case: Case) -> Iterator[Finding]:
    """Operands that are wrong in any way are refused with a typed error that names them, and nothing is written."""
    situation = Situation(case.plan)
    for spoiled in spoilings(situation):
        complaint = situation.complaint(spoiled)
        yield HELD if complaint is None else Finding(False, complaint)


def allocation(case: Case) -> Iterator[Finding]:
    """A run allocates no memory, except for Python's own small objects."""
    situation = Situation(case.plan)
    args, stream = situation.args(), case.stream

    def run() -> None:
        case.plan.run(stream, situation.workspace, args)

    run()  # what is made once, such as helper threads, is there from now on
    if case.device.kind is DeviceKind.CUDA:
        asked = device_allocations(run)
        yield Finding(False, f"PyTorch's allocator was asked {asked} times for memory on the device") if asked else HELD
        return
    for kind, grown, allowed in (("Python", python_bytes(run), PYTHON_BYTES), ("host", resident_bytes(run), RESIDENT_BYTES)):
        if grown is not None:
            yield Finding(False, f"{grown} bytes of {kind} memory, allowed are {allowed}") if grown > allowed else HELD


def _watches_memory(case: Case) -> bool:
    """A large problem takes a second: --quick tries one element of each kernel."""
    return case.is_native and (case.depth is not Depth.QUICK or case.element is case.kernel.elements[0])


def extremes(case: Case) -> Iterator[Finding]:
    """NaN and infinities are where the formula has them, for inputs with NaN, infinities, zeros, the largest and smallest numbers."""
    elements = {operand.name: operand.element(case.descriptor) for operand in case.plan_type.args_type.OPERANDS}
    inputs = case.inputs()
    # What an op draws in a particular way, such as saved results, is left as it is.
    free = [
        name for name in inputs if elements[name].is_float and name not in case.plan_type.cases.inputs(case.descriptor, case.rng())
    ]
    for kind in case.plan_type.cases.extremes:
        for name in free:
            changed = inputs | {name: rounded(CHANGES[kind](inputs[name], elements[name], case.rng()), elements[name])}
            trial = launched(case.plan, changed)
            with numpy.errstate(all="ignore"):
                expected = reference_outputs(case.plan, changed)
            for output, exact in zip(trial.outputs, expected, strict=True):
                placed = trial.operands[output]
                wrong = misplaced(parts(placed.values), parts(rounded(exact, placed.element)))
                yield Finding(False, f"{kind.value} in {name}: {wrong} in {output}") if wrong else HELD


# --- who makes which promise, and on how many problems it is checked ------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    check: Check
    counts: dict[Depth, int]  # of problems for each kernel and element
    pick: Callable[[list[Case], int], list[Case]]
    is_made: Callable[[Case], bool] = lambda case: True

    @property
    def name(self) -> str:
        return self.check.__name__

    @property
    def means(self) -> str:
        return (self.check.__doc__ or "").strip()


def spread(cases: list[Case], count: int) -> list[Case]:
    """So many, from the first to the last, in even steps."""
    within = [case for case in cases if _is_within_depth(case)]
    steps = (
        {number * (len(within) - 1) // max(count - 1, 1) for number in range(count)} if count < len(within) else range(len(within))
    )
    return [within[number] for number in sorted(steps)] if within else []


def _is_within_depth(case: Case) -> bool:
    if case.depth is Depth.FULL:
        return True
    return case.origin is Origin.CORNER and (case.depth is Depth.USUAL or (not case.is_empty and case.largest_operand <= SMALL))


def fullest(cases: list[Case], count: int) -> list[Case]:
    """Those with the most operands, of which none is tiny."""

    large = [case for case in cases if case.origin is Origin.CORNER and min(case.operand_bytes) > 8]
    return sorted(large, key=lambda case: (-len(case.operand_bytes), case.largest_operand))[:count]


def largest(cases: list[Case], count: int) -> list[Case]:
    return sorted((case for case in cases if case.origin is not Origin.DRAWN), key=lambda case: -case.largest_operand)[:count]


def _counts(quick: int, usual: int, full: int) -> dict[Depth, int]:
    return {Depth.QUICK: quick, Depth.USUAL: usual, Depth.FULL: full}


ALL = 1000
PROMISES = {
    promise.name: promise
    for promise in (
        Promise(accuracy, _counts(6, 16, ALL), spread),
        Promise(memory, _counts(6, 16, ALL), spread),
        Promise(repeats, _counts(3, 8, ALL), spread, lambda case: case.guarantee.deterministic),
        Promise(processes, _counts(2, 4, 24), spread, lambda case: case.guarantee.bit_stable_on_same_hardware),
        Promise(
            batch,
            _counts(2, 6, ALL),
            spread,
            lambda case: case.guarantee.batch_invariant and any(case.plan_type.cases.parts(case.descriptor)),
        ),
        Promise(allocation, _counts(1, 1, 2), largest, _watches_memory),
        Promise(rejections, _counts(1, 1, 3), fullest),
        Promise(extremes, _counts(0, 0, 8), spread, lambda case: not case.is_empty and case.origin is not Origin.LARGE),
    )
}
