"""Every kernel, forced, over elements × problems × layouts, in guarded memory, against the float64 reference."""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.case import Case
from baracuda_kernels.check.memory import LAYOUTS
from baracuda_kernels.check.trial import mixed_layouts, partners, random_inputs, run_trial
from baracuda_kernels.core.kernel import Candidate, Kernel

from conftest import DEVICE, KERNELS, PLANS, STREAM, corners, interprets_products, served_corners
from refusals import CONTIGUOUS_ALONE, PROBLEMS, is_known, is_refused_as_known, reasons_against

FEW_LAYOUTS = ("gaps",)
SMALL = 20_000  # elements up to which every layout is tried
SMALL_PRODUCTS = 500  # the same, where matrix products are interpreted


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{kernel.name}-{case.descriptor}")
        for op, kernel in KERNELS
        for element in kernel.elements
        for case in served_corners(op, kernel, element)
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
    plan_type, plan = case.plan_type, case.plan
    inputs = random_inputs(plan_type, case.descriptor, rng)
    everything = request.config.getoption("--slow")
    assert run_trial(plan, inputs).errors, "every kernel takes contiguous operands"
    for layout in _layouts(case, rng, everything):
        assert is_refused_as_known(case.kernel, run_trial(plan, inputs, layout)), layout
    for operand in plan_type.args_type.OPERANDS:
        for partner in partners(operand, plan_type, case.descriptor):
            assert run_trial(plan, inputs, in_place=(operand.name, partner)).errors
            if case.is_native or everything:
                assert is_refused_as_known(case.kernel, run_trial(plan, inputs, "gaps", in_place=(operand.name, partner)))


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
