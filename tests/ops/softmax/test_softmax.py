"""What is particular to softmax: what sums to one, shifts and masks, long rows, logarithms of tiny shares, gradients that sum to nothing."""

from __future__ import annotations

import math

import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels import torch as bt

from conftest import DEVICE

WHERE = str(DEVICE)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64).to(WHERE, dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_shares_sum_to_one(dtype: torch.dtype, axis: int) -> None:
    shares = bk.softmax(numbers(7, 33, 65, dtype=dtype), axis=axis)
    assert shares.dtype is dtype and (shares >= 0).all()
    extent, eps = shares.shape[axis], torch.finfo(dtype).eps
    assert (shares.double().sum(axis) - 1).abs().max() <= eps * math.sqrt(extent)


@pytest.mark.parametrize("function", [bk.softmax, bk.log_softmax], ids=["softmax", "log_softmax"])
def test_a_shift_of_all_logits_changes_no_bit(function: bk.Function) -> None:
    x = numbers(5, 100).mul(8).round()  # so that sums with integers are exact
    for shift in (-1000.0, 3.0, 65536.0):
        assert torch.equal(function(x + shift), function(x))


def test_masked_logits_get_nothing_and_rows_without_any_are_undefined() -> None:
    x = numbers(3, 40)
    x[0, ::2], x[1], x[2, 7] = -math.inf, -math.inf, math.inf
    shares = bk.softmax(x)
    assert (shares[0, ::2] == 0).all() and abs(shares[0].sum().item() - 1) < 1e-6
    assert torch.allclose(shares[0, 1::2], bk.softmax(x[0, 1::2]), rtol=1e-6)
    assert shares[1].isnan().all() and shares[2].isnan().all()
    assert torch.equal(shares.isnan(), torch.softmax(x, -1).isnan())
    assert torch.equal(bk.log_softmax(x)[0, ::2], torch.full((20,), -math.inf, device=WHERE))


@pytest.mark.parametrize("extent", [1, 15, 16, 17, 4097, 50_257])
def test_rows_of_any_length(extent: int) -> None:
    x = numbers(2, extent).mul(5)
    exact = torch.softmax(x.double(), -1)
    assert ((bk.softmax(x).double() - exact).abs() <= 6e-6 * exact).all()  # x - max, as far as -50, is rounded to 24 bits
    assert torch.allclose(bk.log_softmax(x).double(), torch.log_softmax(x.double(), -1), rtol=1e-6, atol=4e-6)


def test_a_single_element_is_all_there_is() -> None:
    x = numbers(4, 1)
    assert bk.softmax(x).eq(1).all() and bk.log_softmax(x).eq(0).all()


def test_logarithms_of_shares_that_are_too_small_for_the_dtype() -> None:
    x = torch.tensor([[0.0, -200.0, -1e4, -3e38]], device=WHERE)
    assert bk.softmax(x)[0, 1:].eq(0).all()
    assert torch.equal(bk.log_softmax(x), x)


def test_results_may_take_the_place_of_logits() -> None:
    x = numbers(9, 130)
    expected, place = bk.softmax(x), x.clone()
    assert bk.softmax(place, out=place) is place and torch.equal(place, expected)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_sum_to_nothing_along_the_axis(name: str, axis: int) -> None:
    """A shift of all logits changes no result, so it has no gradient."""
    x = numbers(33, 70, dtype=torch.float64).requires_grad_()
    (d_x,) = torch.autograd.grad(getattr(bt, name)(x, axis=axis), x, numbers(33, 70, dtype=torch.float64))
    assert d_x.abs().max() > 1e-3 and d_x.sum(axis).abs().max() < 1e-13
    (expected,) = torch.autograd.grad(getattr(torch, name)(x, axis), x, numbers(33, 70, dtype=torch.float64))
    assert torch.allclose(d_x, expected, rtol=1e-12, atol=1e-14)
