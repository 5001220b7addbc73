"""Launching: in any thread, on the same args again, without allocating, with special numbers."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import plan as plan_module
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.verify.bounds import relative_error
from baracuda_kernels.verify.trial import launched, random_inputs, run_trial

from conftest import DEVICE, KERNELS, NATIVE, PLANS, STREAM, interprets_products, served_corners
from refusals import is_known, reasons_against

CPU, NONE = bk.Stream.cpu(), bk.Workspace.none()
BOTH = (bk.SoftmaxKind.SOFTMAX, bk.SoftmaxKind.LOG_SOFTMAX)


QUICK = [(op, kernel) for op, kernel in KERNELS if not interprets_products(op, kernel.name)]


def _element(kernel: Any, usual: bk.ElementKind) -> bk.ElementKind:
    return usual if usual in kernel.elements else kernel.elements[0]


@pytest.mark.parametrize(("op", "kernel"), QUICK, ids=[kernel.name for _, kernel in QUICK])
def test_one_plan_in_many_threads(op: str, kernel: Any, rng: numpy.random.Generator) -> None:
    """Eight threads share each plan, each with operands of its own, small and large at once."""
    cases = served_corners(op, kernel, _element(kernel, bk.ElementKind.F32))
    assert cases
    for case in cases[::4] if kernel.device is DEVICE.kind else cases[:1]:  # what is interpreted, threads take in turns
        plan = case.plan
        inputs = [random_inputs(PLANS[op], case.descriptor, rng) for _ in range(8)]
        alone = [launched(plan, each).bits for each in inputs]
        start = threading.Barrier(8)

        def repeat(each: dict[str, Any], plan: Any = plan, start: Any = start) -> list[Any]:
            start.wait()
            return [launched(plan, each).bits for _ in range(3)]

        with ThreadPoolExecutor(8) as pool:
            for bits, expected in zip(pool.map(repeat, inputs), alone, strict=True):
                assert bits == [expected] * 3


def test_large_problems_from_many_threads_at_once(rng: numpy.random.Generator) -> None:
    """Problems that each want all threads: helpers are shared, nobody waits for ever, nothing is mixed up."""
    descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (2048, 1024), 1, bk.ElementKind.F32)
    plan = bk.SoftmaxPlan.select(CPU, descriptor)
    inputs = [torch.from_numpy(rng.standard_normal((2048, 1024), dtype=numpy.float32)) for _ in range(6)]
    outputs = [torch.full_like(x, torch.nan) for x in inputs]
    expected = [torch.empty_like(x) for x in inputs]
    for x, y in zip(inputs, expected, strict=True):
        plan.run(CPU, NONE, bk.SoftmaxArgs(x=x, y=y))

    def work(pair: Any) -> None:
        for _ in range(5):
            plan.run(CPU, NONE, bk.SoftmaxArgs(x=pair[0], y=pair[1]))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, zip(inputs, outputs, strict=True)))
    for y, wanted in zip(outputs, expected, strict=True):
        assert torch.equal(y, wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (2048, 1024), 1, bk.ElementKind.F32)
    plan = bk.SoftmaxPlan.select(CPU, descriptor)
    x, y = numpy.ones((2048, 1024), numpy.float32), numpy.zeros((2048, 1024), numpy.float32)
    plan.run(CPU, NONE, bk.SoftmaxArgs(x=x, y=y))
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            y[...] = 0
            plan.run(CPU, NONE, bk.SoftmaxArgs(x=x, y=y))
            is_right = numpy.allclose(y, 1 / 1024)
        finally:
            os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="the host's memory; a CUDA device's is watched in test_cuda")
@pytest.mark.parametrize(("op", "kernel"), NATIVE, ids=[kernel.name for _, kernel in NATIVE])
def test_run_allocates_nothing_that_grows_with_the_problem(op: str, kernel: Any) -> None:
    """Host memory that Python or NumPy hand out during `run` stays within a few KB, and PyTorch's allocator is not asked."""
    runs = []
    for case in served_corners(op, kernel, _element(kernel, bk.ElementKind.BF16))[::4]:
        plan, descriptor = case.plan, case.descriptor
        tensors = {
            operand.name: torch.zeros(operand.shapes(descriptor)[0], dtype=DTYPES[operand.element(descriptor)])
            for operand in PLANS[op].args_type.OPERANDS
            if operand.presence(descriptor) is not False
        }
        args = PLANS[op].args_type(**tensors)
        lent = bk.Workspace.borrowed(torch.zeros(plan.workspace_size + 1, dtype=torch.uint8))
        plan.run(CPU, lent, args)
        runs.append((plan, lent, args))
    assert runs
    gc.collect()
    peaks = []
    tracemalloc.start()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for plan, lent, args in runs:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            plan.run(CPU, lent, args)
            peaks.append((tracemalloc.get_traced_memory()[1] - before, plan))
    tracemalloc.stop()
    assert [(peak, plan) for peak, plan in peaks if peak >= 16_384] == []
    grabbed = sum(max(event.cpu_memory_usage, 0) for event in profile.key_averages())
    assert grabbed <= 4096, (kernel.name, grabbed)


def test_args_can_be_used_again_and_by_another_plan() -> None:
    x, y = torch.randn(4, 8), torch.empty(4, 8)
    args = bk.SoftmaxArgs(x=x, y=y)
    plans = [
        bk.SoftmaxPlan.select(CPU, bk.SoftmaxDescriptor(kind, (4, 8), axis, bk.ElementKind.F32)) for kind in BOTH for axis in (0, 1)
    ]
    for _ in range(2):
        for plan in plans:
            plan.run(CPU, NONE, args)
            reference = torch.softmax if plan.descriptor.kind is bk.SoftmaxKind.SOFTMAX else torch.log_softmax
            assert torch.allclose(y, reference(x, plan.descriptor.softmax_axis), atol=1e-6)


def test_what_a_plan_remembers_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(plan_module, "_MOST_LAYOUTS", 4)
    plan = bk.SoftmaxPlan.select(CPU, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (2, 3), 1, bk.ElementKind.F32))
    for pitch in range(3, 30):
        x, y = torch.randn(2, pitch)[:, :3], torch.empty(2, 3)
        plan.run(CPU, NONE, bk.SoftmaxArgs(x=x, y=y))
        assert torch.allclose(y, torch.softmax(x, 1))
        assert len(plan._launches) <= 4


SPECIAL = {
    "all -inf": [-numpy.inf] * 5,
    "one +inf": [0.0, 1.0, numpy.inf, 2.0, -1.0],
    "two +inf": [numpy.inf, 1.0, numpy.inf, 2.0, -1.0],
    "a NaN": [0.0, numpy.nan, 1.0, 2.0, 3.0],
    "NaN first": [numpy.nan, 1.0, 1.0, 2.0, 3.0],
    "some -inf": [-numpy.inf, 1.0, -numpy.inf, 2.0, 3.0],
    "far apart": [-3e4, 3e4, 0.0, -6e4, 1.0],
    "equal": [7.0] * 5,
    "zeros of both signs": [0.0, -0.0, 0.0, -0.0, 0.0],
}


@pytest.mark.parametrize(
    ("op", "kernel"), [pair for pair in KERNELS if pair[0] == "softmax"], ids=lambda value: getattr(value, "name", "")
)
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("repeat", [1, 9, 1000])
def test_special_numbers_stay_in_their_row(op: str, kernel: Any, kind: bk.SoftmaxKind, repeat: int) -> None:
    """Each special row between ordinary ones, along either axis: IEEE of the formula, and the neighbours unharmed."""
    ordinary = numpy.linspace(-2.0, 2.0, 5 * repeat)
    rows = numpy.array([row for special in SPECIAL.values() for row in (ordinary, numpy.resize(special, 5 * repeat))])
    served = 0
    for element in kernel.elements:
        for axis, values in ((1, rows), (0, rows.T)):
            descriptor = bk.SoftmaxDescriptor(kind, values.shape, axis, element)
            if reasons := reasons_against(kernel, descriptor):
                assert is_known(kernel, element, reasons)
                continue
            trial = run_trial(bk.SoftmaxPlan.force(kernel.name, STREAM, descriptor), {"x": rounded(values, element)})
            results, wanted = (numpy.moveaxis(each, axis, -1) for each in (trial.operands["y"].values, trial.expected["y"]))
            # Row by row: some have so large numbers that beside them the errors of all others would be nothing.
            for result, exact in zip(results, wanted, strict=True):
                allowed = max(trial.bounds["y"], 2.5 * relative_error(rounded(exact, element), exact))
                assert relative_error(result, exact) <= allowed
            served += 1
    assert served


def test_nan_gradients_stay_in_their_row(rng: numpy.random.Generator) -> None:
    for kind in BOTH:
        for axis in (0, 1):
            descriptor = bk.SoftmaxBackwardDescriptor(kind, (37, 37), axis, bk.ElementKind.F32)
            plan = bk.SoftmaxBackwardPlan.select(CPU, descriptor)
            inputs = random_inputs(bk.SoftmaxBackwardPlan, descriptor, rng)
            inputs["dy"][(3, 5) if axis == 1 else (5, 3)] = numpy.nan
            trial = run_trial(plan, inputs)
            lines = numpy.isnan(trial.operands["dx"].values).any(axis=axis)
            assert lines.tolist() == [line == 3 for line in range(37)]


def test_log_softmax_backward_takes_any_y(rng: numpy.random.Generator) -> None:
    """The formula holds for a y that no forward would have saved, large and positive too."""
    for element in (bk.ElementKind.F32, bk.ElementKind.F64):
        descriptor = bk.SoftmaxBackwardDescriptor(bk.SoftmaxKind.LOG_SOFTMAX, (20, 50), 1, element)
        plan = bk.SoftmaxBackwardPlan.select(CPU, descriptor)
        inputs = {"dy": rng.standard_normal((20, 50)), "y": rng.uniform(-90.0, 20.0, (20, 50))}
        assert run_trial(plan, {name: rounded(values, element) for name, values in inputs.items()}).errors


def test_backward_is_the_derivative_of_forward(rng: numpy.random.Generator) -> None:
    """Central differences of the forward kernel in f64, independent of the backward's formula."""
    for kind in BOTH:
        forward = bk.SoftmaxPlan.select(CPU, bk.SoftmaxDescriptor(kind, (3, 7), 1, bk.ElementKind.F64))
        backward = bk.SoftmaxBackwardPlan.select(CPU, bk.SoftmaxBackwardDescriptor(kind, (3, 7), 1, bk.ElementKind.F64))
        x, dy = rng.standard_normal((3, 7)), rng.standard_normal((3, 7))
        y, dx = numpy.empty((3, 7)), numpy.empty((3, 7))

        def loss(point: numpy.ndarray, forward: Any = forward, dy: Any = dy) -> float:
            out = numpy.empty((3, 7))
            forward.run(CPU, NONE, bk.SoftmaxArgs(x=point, y=out))
            return float((out * dy).sum())

        forward.run(CPU, NONE, bk.SoftmaxArgs(x=x, y=y))
        backward.run(CPU, NONE, bk.SoftmaxBackwardArgs(dy=dy, y=y, dx=dx))
        for index in numpy.ndindex(3, 7):
            step = numpy.zeros((3, 7))
            step[index] = 1e-6
            assert dx[index] == pytest.approx((loss(x + step) - loss(x - step)) / 2e-6, abs=1e-8)
