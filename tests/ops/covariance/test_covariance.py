"""Covariances and correlations beside PyTorch's and NumPy's, at the edges, and what their products do not depend on."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt

FREQUENT = torch.tensor([1, 0, 2, 1, 3, 1, 1, 1, 2, 5, 1])
WORTH = torch.linspace(0.2, 1.7, 11, dtype=torch.float64)
WEIGHTS = {
    "none": {},
    "fweights": {"fweights": FREQUENT},
    "aweights": {"aweights": WORTH},
    "both": {"fweights": FREQUENT.int(), "aweights": WORTH},
}


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("correction", [0, 1, 3])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", [(4, 11), (1, 11), (11,)], ids=str)
def test_covariances_are_pytorchs(shape: tuple[int, ...], weights: str, correction: int) -> None:
    x, options = drawn(*shape), WEIGHTS[weights] | {"correction": correction}
    results, gradients = [], []
    for function in (bt.cov, torch.cov):
        given = x.clone().requires_grad_()
        results.append(function(given, **options))
        upstream = drawn(*results[0].shape)
        gradients += torch.autograd.grad(results[-1], given, upstream)
    same(*results)
    same(*gradients)


@pytest.mark.parametrize("shape", [(4, 11), (40, 11), (2, 3)], ids=str)
def test_correlations_are_pytorchs(shape: tuple[int, ...]) -> None:
    x = drawn(*shape)
    results, gradients = [], []
    for function in (bt.corrcoef, torch.corrcoef):
        given = x.clone().requires_grad_()
        results.append(function(given))
        gradients += torch.autograd.grad(results[-1], given, drawn(*shape[:1], *shape[:1]))
    same(*results)
    same(*gradients)


def test_the_correlation_of_one_variable_is_one() -> None:
    x = drawn(9).requires_grad_()
    result = bt.corrcoef(x)
    same(result, torch.ones((), dtype=torch.float64))
    assert torch.equal(*torch.autograd.grad(result, x), torch.zeros(9, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", [(3, 1), (3, 0), (0, 5), (0, 0), (), (1,)], ids=str)
def test_where_there_is_little_to_go_by(shape: tuple[int, ...]) -> None:
    for ours, theirs in ((bk.cov, torch.cov), (bk.corrcoef, torch.corrcoef)):
        same(ours(drawn(*shape)), theirs(drawn(*shape)))
    assert bk.cov_backward(bk.cov(drawn(*shape)), drawn(*shape)).shape == shape
    same(bk.cov(drawn(*shape), correction=-1), torch.cov(drawn(*shape), correction=-1))


def test_what_is_always_the_same_does_not_vary() -> None:
    """Though the mean of these is not exactly 0.1 in f32."""
    x = numpy.array([[0.1] * 7, range(7)], numpy.float32)
    assert numpy.array_equal(bk.cov(x), [[0, 0], [0, numpy.float32(14 / 3)]])
    assert numpy.array_equal(bk.corrcoef(x), [[numpy.nan, numpy.nan], [numpy.nan, 1]], equal_nan=True)


def test_correlations_stay_within_one() -> None:
    x = numpy.random.default_rng(0).standard_normal((1, 100)).astype(numpy.float32)
    together = bk.corrcoef(numpy.concatenate([x, 3 * x, -x, 1e10 * x]))
    assert abs(together).max() <= 1
    numpy.testing.assert_allclose(abs(together), 1, rtol=1e-6)


def test_a_far_mean_costs_no_digits() -> None:
    """Variables are counted from their first observation on."""
    x = numpy.random.default_rng(0).integers(-100, 100, (3, 50)).astype(numpy.float32)
    numpy.testing.assert_allclose(bk.cov(x + 2**20), numpy.cov(x.astype(float)), rtol=1e-6, atol=1e-3)


def test_weights_that_sum_up_to_nothing() -> None:
    assert numpy.isnan(bk.cov(numpy.ones((2, 3)), fweights=numpy.zeros(3, numpy.int64))).all()


@pytest.mark.parametrize("element", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once(element: torch.dtype) -> None:
    x = drawn(5, 300).to(element)
    assert torch.equal(bk.cov(x), bk.cov(x.float()).to(element))
    assert torch.equal(bk.corrcoef(x), bk.corrcoef(x.float()).to(element))


def test_bits_do_not_depend_on_the_layout() -> None:
    x = drawn(33, 200).float()
    wide = torch.zeros(33, 401)
    wide[:, 1::2] = x
    for other in (x.t().contiguous().t(), wide[:, 1::2]):
        assert torch.equal(bk.cov(other), bk.cov(x))
        assert torch.equal(bk.corrcoef_backward(x @ x.t(), other), bk.corrcoef_backward(x @ x.t(), x))


def test_products_in_fewer_bits_stay_out() -> None:
    x = drawn(64, 512).float()
    expected = bk.cov(x)
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        assert torch.equal(bk.cov(x), expected)
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = before


def test_a_plan_may_meet_inference_mode_first() -> None:
    stream, x = bk.Stream.cpu(), drawn(3, 8)
    plan = bk.CovPlan.select(stream, bk.CovDescriptor(bk.CovKind.COV, (3, 8), bk.ElementKind.F64))
    room, results = bk.Workspace.borrowed(torch.empty(plan.workspace_size, dtype=torch.uint8)), torch.zeros(2, 3, 3).double()
    for result, inference in zip(results, (True, False), strict=True):
        with torch.inference_mode(inference):
            plan.run(stream, room, bk.CovArgs(input=x, result=result))
    assert torch.equal(*results)


WRONG = {
    "a tensor of three axes": (lambda: bk.cov(drawn(2, 3, 4)), bk.InvalidProblem, "shape has the wrong rank"),
    "weights of another length": (lambda: bk.cov(drawn(2, 3), aweights=drawn(4)), bk.InvalidProblem, "aweights has the wrong shape"),
    "counts that are no integers": (lambda: bk.cov(drawn(2, 3), fweights=drawn(3)), bk.InvalidProblem, "fweights_element"),
    "weights of another element": (lambda: bk.cov(drawn(2, 3), aweights=torch.ones(3)), bk.InvalidProblem, "aweights has the wrong dtype"),
    "integers": (lambda: bk.cov(torch.ones(2, 3, dtype=torch.int64)), bk.Unsupported, "does not support this dtype"),
    "half a correction": (lambda: bk.cov(drawn(2, 3), correction=0.5), bk.InvalidProblem, "correction has the wrong type"),
    "a way back": (lambda: bk.cov(numpy.ones((2, 3))[:, ::-1]), bk.Unsupported, r"strides of at least 0: pass numpy\.ascontiguousarray"),
    "weights with a gradient": (
        lambda: bt.cov(drawn(2, 3).requires_grad_(), aweights=drawn(3).requires_grad_()), bk.InvalidProblem, "aweights needs a gradient",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_errors(what: str) -> None:
    call, error, match = WRONG[what]
    with pytest.raises(error, match=match):
        call()
