"""Every kernel, forced, over elements × problems × layouts, in guarded memory, against the float64 reference."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.case import Case
from baracuda_kernels.check.memory import LAYOUTS
from baracuda_kernels.check.trial import mixed_layouts, partners, random_inputs, run_trial
from baracuda_kernels.core.kernel import Candidate

from conftest import DEVICE, KERNEL_IDS, KERNELS, PLANS, STREAM, corners, interprets_products, served_corners

FEW_LAYOUTS = ("gaps",)
SMALL = 20_000  # elements up to which every layout is tried
SMALL_PRODUCTS = 500  # the same, where matrix products are interpreted


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{kernel.name}-{case.descriptor}")
        for op, kernel in KERNELS
        for element in kernel.elements
        for case in corners(op, kernel, element)
    ]


def _layouts(case: Case, rng: numpy.random.Generator, everything: bool) -> tuple[Any, ...]:
    """Of what is only interpreted, each problem has a few of them in turn, unless everything is asked for."""
    is_small = case.largest_operand <= (SMALL_PRODUCTS if interprets_products(case.op, case.kernel.name) else SMALL)
    others = (*tuple(LAYOUTS)[1:], *(mixed_layouts(case.plan_type, rng) for _ in range(2))) if is_small else FEW_LAYOUTS
    if case.is_native or everything:
        return others
    first = 3 * case.number + list(case.kernel.elements).index(case.element)
    return tuple(others[(first + place) % len(others)] for place in range(min(3, len(others))))


@pytest.mark.parametrize("case", _cases())
def test_result(case: Case, rng: numpy.random.Generator, request: pytest.FixtureRequest) -> None:
    plan_type = case.plan_type
    try:
        plan = case.plan
    except bk.Unsupported as refusal:
        assert refusal.candidates[case.kernel.name], "a refusal names its reasons"
        return
    inputs = random_inputs(plan_type, case.descriptor, rng)
    everything = request.config.getoption("--slow")
    assert run_trial(plan, inputs).errors, "every kernel takes contiguous operands"
    for layout in _layouts(case, rng, everything):
        trial = run_trial(plan, inputs, layout)
        assert trial.errors or {reason.code for reason in trial.declined} == {bk.ReasonCode.LAYOUT}, trial.declined
    for operand in plan_type.args_type.OPERANDS:
        for partner in partners(operand, plan_type, case.descriptor):
            assert run_trial(plan, inputs, in_place=(operand.name, partner)).errors
            if case.is_native or everything:
                run_trial(plan, inputs, "gaps", in_place=(operand.name, partner))


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=[kernel.name for _, kernel in KERNELS])
def test_every_kernel_is_reached(op: str, kernel: Any) -> None:
    """A kernel that serves none of the problems above, in any of its elements, would be tested by nothing."""
    for element in kernel.elements:
        assert served_corners(op, kernel, element), f"{kernel.name} is reached by no problem in {element}"


def test_every_kernel_here_is_tested() -> None:
    """What this machine cannot run is tested elsewhere; what it can run is in the list above."""
    listed = {kernel.name for _, kernel in KERNELS}
    for plan in PLANS.values():
        for kernel in plan.kernels:
            assert kernel.name in listed or list(kernel.reasons_against_machine(DEVICE))


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_other_tiles_are_right_too(op: str, kernel: Any, rng: numpy.random.Generator) -> None:
    """What a race may choose: the same results, with a guarantee that does not speak of batches."""
    every = 32 if interprets_products(op, kernel.name) else 4
    for element in kernel.elements:
        for descriptor in [case.descriptor for case in served_corners(op, kernel, element)][::every]:
            for tile in kernel.other_tiles(descriptor):
                choice = Candidate(kernel, tile)
                plan = PLANS[op]._prepared(choice, STREAM, descriptor, bk.PlanPreference())
                assert plan.tile == tile and not plan.precision_guarantee.batch_invariant and str(tile) in choice.name
                for layout in ("contiguous", "gaps"):
                    run_trial(plan, random_inputs(PLANS[op], descriptor, rng), layout)
