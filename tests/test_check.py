"""The judges themselves: what they let through and what they do not."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.bounds import error_bound, relative_error
from baracuda_kernels.check.memory import LAYOUTS
from baracuda_kernels.check.trial import BrokenPromise, random_inputs, run_trial

from conftest import PLANS


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "u8", "bool"])
def test_integers_are_exact(element: str) -> None:
    (descriptor, *_) = PLANS["rope"].cases.corners(bk.ElementKind.F32)
    assert error_bound(PLANS["rope"].cases, descriptor, bk.ElementKind.of(element)) == 0.0


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
