"""Gradients of reductions on CUDA: of rows that a program can hold in one launch, of all others in several."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.core.layout import Shape, row_major
from baracuda_kernels.ops.reduction import reference
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceJointBackwardDescriptor,
    ReduceJointKind,
    ReduceKind,
    ReducePairBackwardDescriptor,
    ReducePairKind,
)
from baracuda_kernels.ops.reduction.tables import EVERY
from baracuda_kernels.verify.trial import launched, random_inputs, run_trial

from conftest import DEVICE, STREAM

pytest.importorskip("triton")
ELEMENTS = (bk.ElementKind.F32, bk.ElementKind.F64, bk.ElementKind.BF16, bk.ElementKind.F16)
OPS: tuple[tuple[str, Any, Any, Any], ...] = (
    ("triton.reduce_backward", ReduceKind, ReduceBackwardDescriptor, bk.ReduceBackwardPlan),
    ("triton.reduce_pair_backward", ReducePairKind, ReducePairBackwardDescriptor, bk.ReducePairBackwardPlan),
    ("triton.reduce_joint_backward", ReduceJointKind, ReduceJointBackwardDescriptor, bk.ReduceJointBackwardPlan),
)
KINDS = [
    (kernel, kind, describe, plan)
    for kernel, kinds, describe, plan in OPS
    for kind in kinds
    if EVERY[kind.value].gradient is not None and EVERY[kind.value].helpers
]
RARE = ("prod", "nanprod")  # which divide by very small and very large elements otherwise
EVERY_KIND = pytest.mark.parametrize(("kernel", "kind", "describe", "plan"), KINDS, ids=[kind.value for _, kind, _, _ in KINDS])
# Rows that share a program, that have some of them to themselves, of one element, among others in turn; and what has several axes.
ROWS: tuple[tuple[Shape, int], ...] = (
    ((70, 33), 0b10), ((3, 1500), 0b10), ((5, 1), 0b10), ((1, 2311), 0b10), ((6, 5, 64), 0b100), ((4, 6, 7), 0b110), ((1024,), 0b1),
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


def _calls(problem: Any, strides: list[Shape] | None = None) -> list[Any]:
    from baracuda_kernels.ops.reduction.triton import _backward_calls

    upstream, operands = len(problem.row.results(problem.element)), problem.row.operands
    kept, whole = row_major(problem.result_shape), row_major(problem.shape)
    return _backward_calls(problem, strides or [kept] * upstream + [whole] * operands + [kept] * upstream + [whole] * operands)


@pytest.mark.parametrize(
    ("kernel", "kind", "describe", "plan", "shape", "mask"),
    [
        pytest.param(*each, shape, mask, id=f"{each[1].value}-{shape}")
        for each in KINDS
        for shape, mask in ROWS
        if each[1] is not ReduceJointKind.COSINE_SIMILARITY or shape[-1] > 1  # that of single numbers is a sign, without a gradient
    ],
)
def test_rows_in_one_launch(
    kernel: str, kind: Any, describe: Any, plan: Any, shape: Shape, mask: int, rng: numpy.random.Generator
) -> None:
    element = ELEMENTS[(len(kind.value) + len(shape) + shape[0]) % len(ELEMENTS)]
    problem = describe(kind, shape, mask, element)
    assert len(_calls(problem)) == 1 or kind.value in RARE
    forced, inputs = plan.force(kernel, STREAM, problem), random_inputs(plan, problem, rng)
    assert run_trial(forced, inputs).errors
    assert run_trial(forced, inputs, "gaps").errors
    for name, other in (("d_input", "input"), ("d_other", "other")):
        if other in inputs:
            assert run_trial(forced, inputs, in_place=(name, other)).errors


@EVERY_KIND
def test_other_rows_in_several(kernel: str, kind: Any, describe: Any, plan: Any, rng: numpy.random.Generator) -> None:
    """Too long ones, and those whose elements do not lie side by side."""
    for shape, mask in (((2, 8193), 0b10), ((67, 40), 0b01), ((3, 40, 5), 0b010)):
        problem = describe(kind, shape, mask, bk.ElementKind.F32)
        assert len(_calls(problem)) > 1
        assert run_trial(plan.force(kernel, STREAM, problem), random_inputs(plan, problem, rng)).errors


OF_ONE = [each for each in KINDS if "joint" not in each[0]]


@pytest.mark.parametrize(("kernel", "kind", "describe", "plan"), OF_ONE, ids=[kind.value for _, kind, _, _ in OF_ONE])
@pytest.mark.parametrize("mask", [0b10, 0b01], ids=["rows", "columns"])
def test_ties_zeros_and_absent_elements(
    kernel: str, kind: Any, describe: Any, plan: Any, mask: int, rng: numpy.random.Generator
) -> None:
    """Small integers, among which there are ties and zeros; all of them the same, all but one; NaN for all of them, and for some."""
    problem = describe(kind, (40, 40), mask, bk.ElementKind.F32)
    x = numpy.round(rng.uniform(-3.0, 3.0, (40, 40)))
    x[3], x[5, ::7], x[7, 1:] = 0.0, 0.0, 2.0
    if kind.value.startswith("nan"):
        x[8], x[9, ::3], x[10, :-1] = math.nan, math.nan, math.nan
    x = x if mask == 0b10 else x.T
    inputs = random_inputs(plan, problem, rng) | {"input": x}
    with numpy.errstate(all="ignore"):
        results = reference.reduce_pair(problem, x) if "second" in inputs else (reference.reduce(problem, x),)
        inputs |= {name: rounded(each, problem.element) for name, each in zip(("result", "second"), results, strict=False)}
        expected = plan.reference(problem, **inputs)
    found = launched(plan.force(kernel, STREAM, problem), inputs).operands["d_input"].values
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [ReduceKind.PROD, ReduceKind.NANPROD], ids=str)
@pytest.mark.parametrize("kernel", ["llvm.reduce_backward", "triton.reduce_backward"])
def test_products_of_very_small_and_very_large_factors(kernel: str, kind: Any) -> None:
    """By which reciprocals in f32 are not good enough to divide."""
    if kernel.startswith("llvm") and DEVICE.kind is not bk.DeviceKind.CPU:
        pytest.skip("there is no such kernel on this device")
    x = numpy.array(
        [[1e-38, 2.0, 3.0], [2.0**-149, 2.0**120, 3.0], [2.0**-140, 2.0**127, 1.0], [3e38, 1e-5, 2.0], [0.0, 2.0, 2.0**-130]]
    )
    problem = ReduceBackwardDescriptor(kind, x.shape, 0b10, bk.ElementKind.F32)
    x = rounded(x, problem.element)
    inputs = {"d_result": numpy.array([1.0, -2.0, 0.5, 1.0, 4.0]), "input": x, "result": reference.reduce(problem, x)}
    expected = reference.reduce_backward(problem, **inputs)
    found = launched(bk.ReduceBackwardPlan.force(kernel, STREAM, problem), inputs).operands["d_input"].values
    numpy.testing.assert_allclose(found, rounded(expected, problem.element), rtol=1e-6)
