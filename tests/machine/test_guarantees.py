"""What each kernel's guarantee says, line by line: repeats, threads, processes, batches."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.sku import MathPrecision
from baracuda_kernels.verify.case import Case, Depth, all_cases
from baracuda_kernels.verify.memory import LAYOUTS
from baracuda_kernels.verify.promises import PROMISES, fullest
from baracuda_kernels.verify.trial import random_inputs, run_trial

import conftest
from conftest import DEVICE, KERNEL_IDS, KERNELS, NATIVE, PLANS, STREAM, interprets_products, served_corners
from covering import one_of_each, values_of


def _cases(op: str, kernel: Any, every: int = 1) -> list[Case]:
    """Some of the corners that the kernel serves, in each of its elements; unless everything is asked for, no more than needed for every
    shape, kind and element to occur."""
    cases = [case for element in kernel.elements for case in served_corners(op, kernel, element)]
    if not conftest.SLOW:
        return [cases[place] for place in one_of_each([values_of(case.descriptor) for case in cases])]
    every *= 8 if interprets_products(op, kernel.name) else 1
    return [case for element in kernel.elements for case in served_corners(op, kernel, element)[::every]]


def _broken(promise: str, cases: list[Case]) -> list[str]:
    """What did not hold; the promise has to be made somewhere."""
    made = [case for case in cases if PROMISES[promise].is_made(case)]
    step = 3 if conftest.SLOW else max(1, len(made) // 2)  # what is interpreted takes long
    made = [case for number, case in enumerate(made) if case.is_native or number % step == 0]
    findings = [(case, finding) for case in made for finding in PROMISES[promise].check(case)]
    assert findings
    return [f"{case.descriptor}: {finding.says}" for case, finding in findings if not finding.held]


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_same_bits_over_repeats_and_threads(op: str, kernel: Any) -> None:
    assert _broken("repeats", _cases(op, kernel, every=2)) == []


STABLE = [
    (op, kernel) for op, kernel in NATIVE if any(case.guarantee.bit_stable_on_same_hardware for case in _cases(op, kernel, every=5))
]


@pytest.mark.parametrize(("op", "kernel"), STABLE, ids=[kernel.name for _, kernel in STABLE])
def test_same_bits_in_another_process(op: str, kernel: Any) -> None:
    assert _broken("processes", _cases(op, kernel, every=5)) == []


INVARIANT = [(op, kernel) for op, kernel in KERNELS if any(PROMISES["batch"].is_made(case) for case in _cases(op, kernel))]


@pytest.mark.parametrize(("op", "kernel"), INVARIANT, ids=[kernel.name for _, kernel in INVARIANT])
def test_a_part_of_the_batch_does_not_depend_on_the_rest(op: str, kernel: Any) -> None:
    assert _broken("batch", _cases(op, kernel)) == []


def test_every_op_says_what_its_batch_is() -> None:
    """Every op of which a kernel promises anything about it."""
    for op, plan in PLANS.items():
        corners = list(plan.cases.corners(bk.ElementKind.F32))
        if any(kernel.guarantee(descriptor).batch_invariant for kernel in plan.kernels for descriptor in corners):
            assert any(list(plan.cases.parts(descriptor)) for descriptor in corners), op


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_what_is_declared_to_be_refused_is(op: str, kernel: Any) -> None:
    for element in kernel.elements:
        cases = all_cases(PLANS[op], kernel, element, DEVICE, Depth.USUAL)
        assert _broken("rejections", fullest(cases, 1)) == []


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_guarantee_matches_the_element(op: str, kernel: Any) -> None:
    for case in _cases(op, kernel):
        plan = case.plan
        guarantee = plan.precision_guarantee
        element, accumulator = plan.descriptor.element, guarantee.accumulator
        own = MathPrecision(accumulator.value) if accumulator.is_float else MathPrecision.EXACT
        if element.is_float:  # a kernel may compute in more than it has to
            assert accumulator in (element.accumulator, bk.ElementKind.F64)
        # Only CUDA has matrix units, and they multiply halves as they are.
        assert guarantee.math_precision in {own, *_matrix_units(kernel, plan.descriptor)}
        assert plan.sku.precision_guarantee is guarantee


def _matrix_units(kernel: Any, descriptor: Any) -> set[MathPrecision]:
    if kernel.device is not DeviceKind.CUDA or not descriptor.element.is_float or descriptor.element.size > 4:
        return set()
    return {MathPrecision.TF32 if descriptor.element is bk.ElementKind.F32 else MathPrecision(descriptor.element.value)}


SOFTMAXES = [(op, kernel) for op, kernel in KERNELS if op.startswith("softmax")]


@pytest.mark.parametrize(("op", "kernel"), SOFTMAXES, ids=[kernel.name for _, kernel in SOFTMAXES])
@pytest.mark.parametrize(("shape", "axis"), [((37, 203), 1), ((203, 37), 0), ((5, 83, 37), 1), ((3, 9001), 1)])
def test_a_row_does_not_depend_on_its_batch(op: str, kernel: Any, shape: tuple[int, ...], axis: int) -> None:
    """Rows computed alone have the bits they have among the others; those of Numba's kernels in every layout."""
    whole = PLANS[op].descriptor_type(bk.SoftmaxKind.SOFTMAX, shape, axis, bk.ElementKind.F32)
    case = Case(PLANS[op], kernel, whole, DEVICE)
    if not PROMISES["batch"].is_made(case):
        assert not case.plan.sku.precision_guarantee.batch_invariant
        return
    assert _broken("batch", [case]) == []
    inputs, output = case.inputs(), PLANS[op].outputs()[0]
    together = run_trial(case.plan, inputs).operands[output].values
    for part in PLANS[op].cases.parts(whole) if kernel.backend is bk.BackendKind.NUMBA else []:
        alone = PLANS[op].force(kernel.name, STREAM, part.descriptor)
        single = {name: part.take(name, values) for name, values in inputs.items()}
        for layout in ("every_second", "backwards"):
            assert numpy.array_equal(run_trial(alone, single, layout).operands[output].values, part.take(output, together))


@pytest.mark.parametrize(("op", "kernel"), [pair for pair in SOFTMAXES if pair[1].backend is bk.BackendKind.NUMBA])
def test_bits_do_not_depend_on_the_layout(op: str, kernel: Any, rng: Any) -> None:
    """The canonical order of summation makes every path through the Numba kernels give the same bits."""
    for shape, axis in (((37, 203), 1), ((83, 41), 0), ((3, 83, 41), 1), ((2, 9001), 1)):
        for kind in (bk.SoftmaxKind.SOFTMAX, bk.SoftmaxKind.LOG_SOFTMAX):
            for element in kernel.elements:
                descriptor = PLANS[op].descriptor_type(kind, shape, axis, element)
                plan = PLANS[op].force(kernel.name, STREAM, descriptor)
                inputs = random_inputs(PLANS[op], descriptor, rng)
                layouts = [layout for layout in LAYOUTS if not layout.startswith("broadcast")]
                assert len({tuple(run_trial(plan, inputs, layout).bits.values()) for layout in layouts}) == 1
