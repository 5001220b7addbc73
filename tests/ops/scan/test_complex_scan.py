"""Running sums of complex numbers beside PyTorch's, and what is refused."""

from __future__ import annotations

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_sums_are_pytorchs(dtype: torch.dtype) -> None:
    x = torch.randn(6, 300, generator=torch.Generator().manual_seed(3), dtype=dtype)
    near = 400 * torch.finfo(dtype).eps
    for laid in (x, x.T.contiguous().T, x[:, ::3]):
        for dim in (0, 1):
            torch.testing.assert_close(bt.cumsum(laid, dim), laid.cumsum(dim), rtol=near, atol=near)
            torch.testing.assert_close(
                bt.cumsum(laid, dim, reverse=True), laid.flip(dim).cumsum(dim).flip(dim), rtol=near, atol=near
            )


def test_gradients() -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(3), dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: bt.cumsum(x, 1), x)


def test_what_complex_numbers_do_not_have() -> None:
    x = numpy.ones((2, 3), complex)
    for function in (bk.cumprod, bk.cummax, bk.logcumsumexp):
        with pytest.raises(bk.Unsupported, match="c128"):
            function(x, 1)
