"""Reductions of two operands: PyTorch's results and gradients, also of what broadcasts, and of odd numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as own
from baracuda_kernels import functional

INF, NAN = math.inf, math.nan
SHAPES = (((6, 40), (6, 40)), ((40, 33), (33,)), ((3, 1, 7), (5, 7)))


def _numbers(*shapes: tuple[int, ...], seed: int = 1) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def _cosine(x: torch.Tensor, y: torch.Tensor, dim: int, eps: float) -> torch.Tensor:
    """By its formula, which PyTorch's gradient does not follow where a norm is less than eps."""
    lengths = [each.norm(dim=dim).clamp_min(eps) for each in torch.broadcast_tensors(x, y)]
    return (x * y).sum(dim) / (lengths[0] * lengths[1])


CALLS: dict[str, tuple[dict[str, Any], Any]] = {
    "dist": ({"p": 2.0}, torch.dist),
    "dist of power 3": ({"p": 3.0}, torch.dist),
    "dist of power inf": ({"p": INF}, torch.dist),
    "pairwise_distance": ({"p": 2.0}, torch.pairwise_distance),
    "pairwise_distance of power 1": ({"p": 1.0, "eps": 0.1, "keepdim": True}, torch.pairwise_distance),
    "pairwise_distance of power inf": ({"p": INF, "eps": 0.1}, torch.pairwise_distance),
    "average": ({"dim": -1}, lambda x, w, dim: (x * w).sum(dim) / w.expand(torch.broadcast_shapes(x.shape, w.shape)).sum(dim)),
    "cosine_similarity": ({"dim": -1}, torch.cosine_similarity),
    "cosine_similarity of short vectors": ({"dim": 0, "eps": 4.0}, _cosine),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_results_and_gradients_as_pytorch(call: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    name, (options, theirs) = call.split(maxsplit=1)[0], CALLS[call]
    x, y = (each.requires_grad_() for each in _numbers(*shapes))
    found = []
    for function in (getattr(own, name), theirs):
        result = function(x, y, **options)
        found.append((result, *torch.autograd.grad((result * result).sum(), (x, y))))
    for ours, wanted in zip(*found, strict=True):
        assert ours.shape == wanted.shape and torch.allclose(ours, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_elements(dtype: torch.dtype) -> None:
    x, y = (each.to(dtype) for each in _numbers((30, 500), (30, 500)))
    for name, function in (("cosine_similarity", torch.cosine_similarity), ("pairwise_distance", torch.pairwise_distance)):
        wanted = function(x.double(), y.double()).to(dtype)
        assert torch.allclose(getattr(functional, name)(x, y), wanted, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


def test_the_same_has_no_distance() -> None:
    x = torch.ones(3, 4, dtype=torch.float64).requires_grad_()
    result = own.dist(x, x.detach())
    assert result == 0.0 and torch.equal(torch.autograd.grad(result, x)[0], torch.zeros(3, 4, dtype=torch.float64))


ODD = ([1.0, NAN], [INF, 1.0], [INF, INF], [-INF, INF], [0.0, -0.0], [1e9, 1e9 + 1.0], [1.0, 1.0 + 2e-5], [0.0, 5e-9])


@pytest.mark.parametrize("pair", ODD)
def test_close_and_equal(pair: list[float]) -> None:
    for a, b in (pair, pair[::-1], [pair[0]] * 2, [pair[1]] * 2):
        x, y = (torch.tensor([2.0, number, 3.0], dtype=torch.float64) for number in (a, b))
        assert bool(functional.equal(x, y)) == torch.equal(x, y)
        for equal_nan in (False, True):
            assert bool(functional.allclose(x, y, equal_nan=equal_nan)) == torch.allclose(x, y, equal_nan=equal_nan)
        assert bool(functional.allclose(x, y, 0.1, 0.5)) == torch.allclose(x, y, 0.1, 0.5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.int64, torch.bfloat16])
def test_one_element_is_enough_to_differ(dtype: torch.dtype) -> None:
    x = torch.zeros(70, 33, dtype=dtype)
    assert functional.equal(x, x.clone()) and functional.equal(x, x.T.contiguous().T)
    for place in (0, 1000, 70 * 33 - 1):
        other = x.clone()
        other.view(-1)[place] = 1
        assert not functional.equal(x, other)


def test_nothing_is_equal_to_nothing() -> None:
    nothing = numpy.zeros((0, 3), numpy.float32)
    assert functional.equal(nothing, nothing) and functional.allclose(nothing, nothing) and functional.dist(nothing, nothing) == 0.0


def test_matrix_norm() -> None:
    (x,) = _numbers((4, 5, 6))
    x.requires_grad_()
    for dim in ((-2, -1), (0, 2)):
        ours, theirs = own.matrix_norm(x, dim=dim), torch.linalg.matrix_norm(x, dim=dim)
        assert torch.allclose(ours, theirs)
        assert torch.allclose(*(torch.autograd.grad(each.sum(), x)[0] for each in (ours, theirs)))
    with pytest.raises(bk.Unsupported, match="singular values"):
        functional.matrix_norm(x.detach(), "nuc")
    with pytest.raises(bk.InvalidProblem, match="two axes"):
        functional.matrix_norm(x.detach(), dim=(0, 1, 2))


def test_trace() -> None:
    """Of one matrix as in PyTorch, and of several; a diagonal longer than a block too."""
    for shape in ((5, 5), (3, 70), (70, 3), (3001, 2900), (0, 3)):
        (x,) = _numbers(shape)
        x.requires_grad_()
        ours, theirs = own.trace(x), torch.trace(x)
        assert ours.shape == () and torch.allclose(ours, theirs)
        (slope,) = torch.autograd.grad(3.0 * ours, x)  # PyTorch 2.11 has more than the diagonal of a tall matrix
        assert torch.equal(slope, 3.0 * torch.eye(*shape, dtype=x.dtype))
    (x,) = _numbers((2, 3, 4, 5))
    for given in (x, x.transpose(0, 3)):
        assert torch.allclose(functional.trace(given), given.diagonal(dim1=-2, dim2=-1).sum(-1))
    assert functional.trace(torch.ones(3, 3, dtype=torch.bool)).item() == 3
    with pytest.raises(bk.InvalidProblem, match="rank of at least 2"):
        functional.trace(numpy.zeros(3))


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(bk.InvalidProblem, match="other"):
        functional.dist(numpy.zeros((3, 4)), numpy.zeros((3, 5)))
