"""Reductions of complex numbers beside PyTorch's: values, gradients, numbers far from zero, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.ops.reduction.rows import TABLE

COMPLEX = sorted(name for name, row in TABLE.items() if row.of_complex is not None)
THEIRS: dict[str, Any] = {
    "l1_norm": lambda x, dim: torch.linalg.vector_norm(x, 1, dim), "l2_norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    "linf_norm": lambda x, dim: torch.linalg.vector_norm(x, math.inf, dim), "vector_norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
}  # fmt: skip


def given(dtype: torch.dtype = torch.complex128, shape: tuple[int, ...] = (5, 33)) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(shape, generator=generator, dtype=dtype) + 0.5


def theirs(name: str) -> Any:
    return THEIRS.get(name) or getattr(torch, name)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", COMPLEX)
def test_values_are_pytorchs(name: str, dtype: torch.dtype) -> None:
    x = given(dtype)
    for dim in (0, 1):
        for laid in (x, x.T.contiguous().T, x.conj().resolve_conj()[:, ::2]):
            found, expected = getattr(bt, name)(laid, dim), theirs(name)(laid, dim)
            near = 200 * torch.finfo(dtype).eps
            torch.testing.assert_close(found, expected, rtol=near, atol=near)


@pytest.mark.parametrize("name", [name for name in COMPLEX if TABLE[name].gradient is not None])
def test_gradients_are_pytorchs(name: str) -> None:
    x = given(shape=(3, 7)).requires_grad_()
    found = []
    for function in (getattr(bt, name), theirs(name)):
        result = function(x, 1)
        upstream = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64).to(result.dtype)
        found.append(torch.autograd.grad(result, x, upstream * (1 - 2j) if result.is_complex() else upstream))
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(lambda x: getattr(bt, name)(x, 0), x)


def test_gradients_of_products_with_zeros() -> None:
    x = given(shape=(4, 5))
    x[1, 2] = 0
    x[2, :2] = 0
    x.requires_grad_()
    found, expected = (torch.autograd.grad(f(x, 1).abs().sum() + f(x, 1).real.sum(), x)[0] for f in (bt.prod, torch.prod))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_variances_of_what_is_far_from_zero() -> None:
    """Distances are taken from the first element, so that hardly a digit is lost."""
    x = given(torch.complex64) * 1e-3 + (3000 - 500j)
    wide = x.to(torch.complex128)
    torch.testing.assert_close(bt.var(x, 1).double(), wide.var(1), rtol=1e-6, atol=0)


def test_elements_that_count_as_others() -> None:
    x, real = given(torch.complex64), torch.linspace(-1, 2, 9)
    torch.testing.assert_close(bt.sum(x, 1, dtype=torch.complex128), x.sum(1, dtype=torch.complex128))
    torch.testing.assert_close(bt.sum(real, 0, dtype=torch.complex64), real.sum(0, dtype=torch.complex64))
    with pytest.raises(bk.InvalidProblem, match="a complex number, as elements are c64"):
        bt.sum(x, 1, dtype=torch.float32)
    with pytest.raises(bk.Unsupported, match="c64"):
        bk.amax(x.numpy(), 1)


def test_a_sum_of_what_was_broadcast() -> None:
    x = given(torch.complex64, (4, 1)).requires_grad_()
    y = given(torch.complex64, (3, 4, 6))
    found, expected = (torch.autograd.grad(f(x, y).abs().sum(), x)[0] for f in (bt.mul, torch.mul))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("power", [0.0, 3.0, 0.5, -math.inf])
def test_other_norms(power: float) -> None:
    x = numpy.asarray(given())
    expected = numpy.linalg.norm(x, power, 1)
    numpy.testing.assert_allclose(bk.vector_norm(x, 1, ord=power), expected, rtol=1e-13)
