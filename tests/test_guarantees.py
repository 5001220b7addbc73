"""What each kernel's guarantee says, line by line: repeats, threads, processes, batches."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.memory import LAYOUTS
from baracuda_kernels.check.trial import random_inputs, run_trial
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.sku import MathPrecision

from conftest import DEVICE, KERNEL_IDS, KERNELS, PLANS, STREAM, served_corners


def _plans(op: str, kernel: Any, every: int = 1) -> list[Any]:
    plans = []
    for element in kernel.elements:
        for descriptor in served_corners(op, kernel, element)[::every]:
            plans.append(PLANS[op].force(kernel.name, STREAM, descriptor))
    return plans


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_same_bits_over_repeats_and_threads(op: str, kernel: Any, rng: numpy.random.Generator, threads: Any) -> None:
    compared = 0
    for plan in _plans(op, kernel, every=2):
        if not plan.precision_guarantee.deterministic:
            continue
        inputs = random_inputs(PLANS[op], plan.descriptor, rng)
        seen = set()
        for count in (1, 2, 3, 2):
            threads(count)
            seen.add(tuple(run_trial(plan, inputs).bits.values()))
        assert len(seen) == 1, plan
        compared += 1
    assert compared


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_guarantee_matches_the_element(op: str, kernel: Any) -> None:
    for plan in _plans(op, kernel):
        guarantee = plan.precision_guarantee
        wide = plan.descriptor.element is bk.ElementKind.F64
        assert guarantee.accumulator is (bk.ElementKind.F64 if wide else bk.ElementKind.F32)
        # Only CUDA has matrix units, and they multiply halves as they are.
        assert guarantee.math_precision in {MathPrecision(guarantee.accumulator.value), *_matrix_units(kernel, plan.descriptor)}
        assert plan.sku.precision_guarantee is guarantee


def _matrix_units(kernel: Any, descriptor: Any) -> set[MathPrecision]:
    if kernel.device is not DeviceKind.CUDA or descriptor.element.size > 4:
        return set()
    return {MathPrecision.TF32 if descriptor.element is bk.ElementKind.F32 else MathPrecision(descriptor.element.value)}


SOFTMAXES = [(op, kernel) for op, kernel in KERNELS if op.startswith("softmax")]


@pytest.mark.parametrize(("op", "kernel"), SOFTMAXES, ids=[kernel.name for _, kernel in SOFTMAXES])
@pytest.mark.parametrize(("shape", "axis"), [((37, 203), 1), ((203, 37), 0), ((5, 83, 37), 1), ((3, 9001), 1)])
def test_a_row_does_not_depend_on_its_batch(op: str, kernel: Any, shape: tuple[int, ...], axis: int, rng: Any) -> None:
    """Rows computed alone have the bits they have among the others; those of Numba's kernels in every layout."""
    whole = PLANS[op].descriptor_type(bk.SoftmaxKind.SOFTMAX, shape, axis, bk.ElementKind.F32)
    plan = PLANS[op].force(kernel.name, STREAM, whole)
    if not plan.precision_guarantee.batch_invariant:
        assert not plan.sku.precision_guarantee.batch_invariant
        return
    inputs = random_inputs(PLANS[op], whole, rng)
    output = PLANS[op].outputs()[0]
    together = numpy.moveaxis(run_trial(plan, inputs).operands[output].values, axis, -1).reshape(-1, shape[axis])
    alone = PLANS[op].force(kernel.name, STREAM, replace(whole, input_shape=(shape[axis],), softmax_axis=0))
    rows = {name: numpy.moveaxis(values, axis, -1).reshape(-1, shape[axis]) for name, values in inputs.items()}
    for number in (0, 1, len(together) // 2, len(together) - 1):
        single = {name: values[number] for name, values in rows.items()}
        layouts = ("contiguous", "every_second", "backwards") if kernel.backend is bk.BackendKind.NUMBA else ("contiguous",)
        for layout in layouts:
            assert numpy.array_equal(run_trial(alone, single, layout).operands[output].values, together[number])


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


PROGRAM = """
import hashlib, numpy, sys
import baracuda_kernels as bk
from baracuda_kernels.check.trial import random_inputs, run_trial
from baracuda_kernels.core import registry
digest = hashlib.sha256()
stream = bk.Stream.cuda() if sys.argv[1] == "cuda" else bk.Stream.cpu()
for name, plan_type in registry.plans().items():
    for kernel in plan_type.kernels:
        for element in kernel.elements:
            for number, descriptor in enumerate(plan_type.cases.corners(element)):
                if number % 5 or list(kernel.reasons_against(descriptor, stream.device, bk.PlanPreference())):
                    continue
                plan = plan_type.force(kernel.name, stream, descriptor)
                if plan.precision_guarantee.bit_stable_on_same_hardware:
                    trial = run_trial(plan, random_inputs(plan_type, descriptor, numpy.random.default_rng(number)))
                    for bits in trial.bits.values():
                        digest.update(bits)
print(digest.hexdigest())
"""


def test_same_bits_in_another_process() -> None:
    def run(count: str) -> str:
        import os

        environment = os.environ | {"BARACUDA_NUM_THREADS": count, "OMP_NUM_THREADS": count, "TRITON_INTERPRET": "0"}
        program = [sys.executable, "-c", PROGRAM, DEVICE.kind.value]
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout

    first = run("1")
    assert len(first.strip()) == 64
    assert run("2") == first
