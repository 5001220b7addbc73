"""Fused functions of complex numbers: values, complex numbers in the formula, real results, gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt

FORMULAS: dict[str, tuple[Any, Any]] = {
    "wave": (lambda z, w: bk.exp(z * 2j) * w + (1 - 0.5j) * z / w, lambda z, w: torch.exp(z * 2j) * w + (1 - 0.5j) * z / w),
    "size": (lambda z, w: bk.abs(z - w) * 3.0, lambda z, w: (z - w).abs() * 3.0),
    "rooted": (lambda z, w: bk.sqrt(z) + bk.add(bk.conj(w), z, alpha=2.0), lambda z, w: z.sqrt() + (w.conj() + 2.0 * z)),
    "parts": (lambda z, w: bk.real(z) * w + bk.sgn(w), lambda z, w: z.real * w + w.sgn()),
}


def operands(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in ((5, 7), (7,))]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_values(name: str, dtype: torch.dtype) -> None:
    ours, theirs = FORMULAS[name]
    given = operands(dtype)
    near = 40 * torch.finfo(dtype).eps
    torch.testing.assert_close(bk.fuse(ours)(*given), theirs(*given), rtol=near, atol=near)


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients(name: str) -> None:
    ours, theirs = FORMULAS[name]
    given = [each.requires_grad_() for each in operands(torch.complex128)]
    found = []
    for function in (bt.fuse(ours), theirs):
        result = function(*given)
        found.append(torch.autograd.grad(result, given, torch.full_like(result, 2 - 1j if result.is_complex() else 2)))
    for each, other in zip(*found, strict=True):
        torch.testing.assert_close(each, other, rtol=1e-12, atol=1e-12)


def test_what_only_real_or_only_complex_numbers_have() -> None:
    z, x = numpy.ones(3, complex), numpy.ones(3)
    with pytest.raises(bk.InvalidProblem, match="c128"):
        bk.fuse(lambda x: bk.gelu(x) + 1.0)(z)
    with pytest.raises(bk.InvalidProblem, match="c64 or c128"):
        bk.fuse(lambda z: z * 2j)(x)
    assert numpy.array_equal(bk.fuse(lambda z: z * z + 1)(z), z + 1) and numpy.array_equal(bk.fuse(lambda z: z * z + 1)(x), x + 1)
