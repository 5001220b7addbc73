"""The judges themselves: what they let through and what they do not."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core.sku import MathPrecision
from baracuda_kernels.verify.bounds import error_bound, relative_error
from baracuda_kernels.verify.memory import LAYOUTS
from baracuda_kernels.verify.trial import BrokenPromise, random_inputs, run_trial

from conftest import PLANS


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "u8", "bool"])
def test_integers_are_exact(element: str) -> None:
    (descriptor, *_) = PLANS["rope"].cases.corners(bk.ElementKind.F32)
    assert error_bound(PLANS["rope"].cases, descriptor, bk.ElementKind.of(element)) == 0.0


@pytest.mark.parametrize(
    ("element", "precision", "judged_as"),
    [
        ("f32", "f32", "f32"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16"), ("f64", "f16", "f16"), ("f16", "bf16", "bf16"),
        ("bf16", "tf32", "bf16"), ("bf16", "f16", "bf16"), ("f64", "f64", "f64"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("op", ["sdpa", "sdpa_backward"])
def test_an_output_is_judged_by_the_fewest_bits_on_its_way(op: str, element: str, precision: str, judged_as: str) -> None:
    (descriptor, *_), kind = PLANS[op].cases.corners(bk.ElementKind.F32), bk.ElementKind.of
    guarantee = bk.PrecisionGuarantee(MathPrecision(precision), kind("f32"), True, True, True)
    assert error_bound(PLANS[op].cases, descriptor, kind(element), guarantee) == error_bound(
        PLANS[op].cases, descriptor, kind(judged_as)
    )
    assert error_bound(PLANS[op].cases, descriptor, kind("i64"), guarantee) == 0.0


@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_tf32_may_lose_twice_what_f16_does(element: str) -> None:
    """Its inputs are rounded too, which those of a problem in f16 are not."""
    tf32 = bk.PrecisionGuarantee(MathPrecision.TF32, bk.ElementKind.F32, True, True, True)
    for op in ("sdpa", "sdpa_backward"):
        (descriptor, *_), cases = PLANS[op].cases.corners(bk.ElementKind.F32), PLANS[op].cases
        twice = 2 * error_bound(cases, descriptor, bk.ElementKind.F16)
        assert error_bound(cases, descriptor, bk.ElementKind.of(element), tf32) == twice


def test_bounds_are_those_of_the_contract() -> None:
    (forward, *_), (backward, *_) = (PLANS[op].cases.corners(bk.ElementKind.F32) for op in ("sdpa", "sdpa_backward"))
    for element, once, in_a_chain in (("f32", 2e-6, 4e-6), ("f16", 6e-4, 1.5e-3), ("bf16", 4e-3, 1e-2)):
        assert error_bound(PLANS["sdpa"].cases, forward, bk.ElementKind.of(element)) == once
        assert error_bound(PLANS["sdpa_backward"].cases, backward, bk.ElementKind.of(element)) == in_a_chain


def test_integers_that_no_float_tells_apart() -> None:
    values = numpy.array([1 << 60, -3])
    assert relative_error(values.copy(), values) == 0.0
    assert relative_error(values + numpy.array([1, 0]), values) == math.inf


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ["rope", "rope_backward", "softmax", "rms_norm", "ssd_chunk_scan"])
def test_a_small_error_is_found_in_every_layout(op: str, layout: str, rng: Any, monkeypatch: Any) -> None:
    """However large some inputs are beside the output: positions, or the rows of a wide softmax."""
    plan_type = PLANS[op]
    descriptor = max(
        plan_type.cases.corners(bk.ElementKind.F32), key=lambda each: math.prod(plan_type.args_type.OPERANDS[0].shapes(each)[0])
    )
    plan, inputs = plan_type.select(bk.Stream.cpu(), descriptor), random_inputs(plan_type, descriptor, rng)
    run_trial(plan, inputs, layout)
    exact = plan_type.reference

    def off(*args: Any, **kwargs: Any) -> Any:
        result = exact(*args, **kwargs)
        return tuple(None if each is None else each * (1 + 1e-5) for each in (result if isinstance(result, tuple) else (result,)))

    monkeypatch.setattr(plan_type, "reference", staticmethod(off))
    with pytest.raises(BrokenPromise, match="relative error"):
        run_trial(plan, inputs, layout)


def test_what_cancels_is_compared_on_the_scale_of_its_terms(rng: Any) -> None:
    """The gradient of a softmax is zero for a constant dy, up to rounding; only a layout that makes it constant excuses that."""
    descriptor = PLANS["softmax_backward"].descriptor_type(bk.SoftmaxKind.SOFTMAX, (4, 300), 1, bk.ElementKind.F32)
    plan = PLANS["softmax_backward"].select(bk.Stream.cpu(), descriptor)
    inputs = random_inputs(PLANS["softmax_backward"], descriptor, rng)
    run_trial(plan, inputs, {"dy": "broadcast_last"})
    inputs["dy"] = numpy.repeat(inputs["dy"][:, :1], 300, axis=1)
    with pytest.raises(BrokenPromise, match="relative error"):
        run_trial(plan, inputs)
