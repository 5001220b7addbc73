"""Every kernel, forced, over elements × problems × layouts, in guarded memory, against the float64 reference."""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core.kernel import Candidate, Kernel
from baracuda_kernels.verify.case import Case
from baracuda_kernels.verify.memory import LAYOUTS
from baracuda_kernels.verify.trial import mixed_layouts, partners, random_inputs, run_trial

import conftest
from conftest import DEVICE, KERNELS, PLANS, STREAM, corners, interprets_products, served_corners
from covering import by_pairs, in_turn, one_of_each, values_of
from refusals import CONTIGUOUS_ALONE, PROBLEMS, is_known, is_refused_as_known, reasons_against

SMALL = 20_000  # elements up to which every layout is tried
CONTIGUOUS, GAPS = ("contiguous", False), ("gaps", False)
# A layout and whether the first output that may be an input is that one; "mixed" is another for each operand, drawn at random.
WAYS = (*((layout, False) for layout in (*tuple(LAYOUTS)[1:], "mixed", "mixed again")), ("contiguous", True), ("gaps", True))


def _in_place(case: Case) -> list[tuple[str, str]]:
    """The outputs that may be inputs here, with these."""
    operands = case.plan_type.args_type.OPERANDS
    return [(each.name, partner) for each in operands for partner in partners(each, case.plan_type, case.descriptor)]


def _admits(case: Case, way: tuple[str, bool]) -> bool:
    return bool(_in_place(case)) if way[1] else case.largest_operand <= SMALL or way == GAPS


def _tried(op: str, kernel: Kernel) -> list[tuple[Case, list[Any]]]:
    """Every corner in every element with contiguous operands, and by pairs the other ways: each element, each shape, each kind in each.

    What is only interpreted takes long: unless everything is asked for, problems in which every shape, kind and element occurs.
    """
    cases = [case for element in kernel.elements for case in served_corners(op, kernel, element)]
    values = [values_of(case.descriptor) for case in cases]
    if conftest.SLOW or kernel.device is DEVICE.kind:
        ways = by_pairs(values, WAYS, lambda place, way: _admits(cases[place], way))
    else:
        cases = [cases[place] for place in one_of_each(values)]
        ways = in_turn(values[: len(cases)], WAYS, lambda place, way: _admits(cases[place], way))
    return [(case, [CONTIGUOUS, *each]) for case, each in zip(cases, ways, strict=True)]


def _cases() -> list[Any]:
    return [
        pytest.param(case, ways, id=f"{kernel.name}-{case.descriptor}")
        for op, kernel in KERNELS
        for case, ways in _tried(op, kernel)
    ]


@pytest.mark.parametrize(("case", "ways"), _cases())
def test_result(case: Case, ways: list[tuple[str, bool]], rng: numpy.random.Generator) -> None:
    plan_type, plan = case.plan_type, case.plan
    inputs = random_inputs(plan_type, case.descriptor, rng)
    for layout, in_place in ways:
        used = mixed_layouts(plan_type, rng) if layout.startswith("mixed") else layout
        for pair in _in_place(case) if in_place else [None]:
            trial = run_trial(plan, inputs, used, in_place=pair)
            assert trial.errors or layout != "contiguous", "every kernel takes contiguous operands"
            assert is_refused_as_known(case.kernel, trial), (used, pair)


def test_what_is_refused_is_known() -> None:
    """Kernels of other machines are asked too: what they serve is declared."""
    kernels = [(plan, kernel) for plan in PLANS.values() for kernel in plan.kernels]
    found = {
        kernel.name: Counter(
            (reason.where, element)
            for element in kernel.elements
            for problem in plan.cases.corners(element)
            for reason in reasons_against(kernel, problem)
        )
        for plan, kernel in kernels
    }
    assert {name: reasons for name, reasons in found.items() if reasons} == PROBLEMS
    assert {kernel.name for _, kernel in kernels if kernel.layout is bk.LayoutSku.CONTIGUOUS} == CONTIGUOUS_ALONE


REFUSING = [(op, kernel) for op, kernel in KERNELS if kernel.name in PROBLEMS]


@pytest.mark.parametrize(("op", "kernel"), REFUSING, ids=[kernel.name for _, kernel in REFUSING])
def test_a_refusal_names_its_reasons(op: str, kernel: Any) -> None:
    refused = [
        case for element in kernel.elements for case in corners(op, kernel, element) if reasons_against(kernel, case.descriptor)
    ]
    assert refused
    for case in refused:
        with pytest.raises(bk.Unsupported) as refusal:
            _ = case.plan
        assert is_known(kernel, case.element, refusal.value.candidates[kernel.name])


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=[kernel.name for _, kernel in KERNELS])
def test_every_kernel_is_reached(op: str, kernel: Any) -> None:
    """A kernel that serves none of the problems above, in any of its elements, would be tested by nothing."""
    for element in kernel.elements:
        assert served_corners(op, kernel, element), f"{kernel.name} is reached by no problem in {element}"


def test_every_kernel_here_is_tested() -> None:
    """Those that are at home on this device; on the CPU those for CUDA too, where they can be interpreted."""
    at_home = {kernel.name for plan in PLANS.values() for kernel in plan.kernels if kernel.device is DEVICE.kind}
    interpreted = {kernel.name for plan in PLANS.values() for kernel in plan.kernels if kernel.backend is bk.BackendKind.TRITON}
    on_cpu = DEVICE.kind is bk.DeviceKind.CPU and importlib.util.find_spec("triton") is not None
    assert {kernel.name for _, kernel in KERNELS} == at_home | (interpreted if on_cpu else set())


NO_OTHER_TILES = Kernel.__dataclass_fields__["other_tiles"].default
TILED = [(op, kernel) for op, kernel in KERNELS if kernel.other_tiles is not NO_OTHER_TILES]


@pytest.mark.parametrize(("op", "kernel"), TILED, ids=[kernel.name for _, kernel in TILED])
def test_other_tiles_are_right_too(op: str, kernel: Any, rng: numpy.random.Generator) -> None:
    """What a race may choose: the same results, with a guarantee that does not speak of batches."""
    tried = set()
    for element in kernel.elements:
        cases = served_corners(op, kernel, element)
        layouts: tuple[str, ...] = ("contiguous", "gaps")
        if interprets_products(op, kernel.name):  # one problem, of several tiles; the very largest would take a minute
            cases, layouts = sorted(cases, key=lambda case: case.largest_operand)[-2:-1], layouts[1:]
        else:
            cases = cases[::4]
        for case in cases:
            for tile in kernel.other_tiles(case.descriptor):
                choice = Candidate(kernel, tile)
                plan = PLANS[op]._prepared(choice, STREAM, case.descriptor, bk.PlanPreference())
                assert plan.tile == tile and not plan.precision_guarantee.batch_invariant and str(tile) in choice.name
                for layout in layouts:
                    assert run_trial(plan, random_inputs(PLANS[op], case.descriptor, rng), layout).errors
                tried.add(tile)
    assert tried
