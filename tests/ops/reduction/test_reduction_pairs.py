"""Reductions with two results: PyTorch's values, indices and gradients, from one pass."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as own
from baracuda_kernels import functional
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.ops.reduction import ReducePairDescriptor, ReducePairKind
from baracuda_kernels.targets.aten import DTYPES

INF, NAN = math.inf, math.nan
ODD = ([1.0, NAN, 3.0, NAN], [INF, -INF, 0.0, 1.0], [-0.0, 0.0, 0.0, -0.0], [2.0, 5.0, 5.0, -1.0], [-INF, -INF, -INF, -INF])
PAIRS = tuple(kind.value for kind in ReducePairKind)  # type: ignore[attr-defined]


def _torch(name: str, x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    """PyTorch's results; its var_mean has NaN for a mean that is infinite."""
    if name.endswith("_with_indices"):
        return getattr(torch, name[:3])(x, dim, keepdim)
    if name == "aminmax":
        return torch.amin(x, dim, keepdim), torch.amax(x, dim, keepdim)  # of both in one PyTorch 2.11 has no gradient
    return getattr(torch, name[:3])(x, dim, keepdim=keepdim), torch.mean(x, dim, keepdim)


def _ours(module: Any, name: str, x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    return getattr(module, name)(x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("element", FLOATS)
def test_as_pytorch_in_odd_cases(name: str, element: bk.ElementKind) -> None:
    x, near = torch.tensor(ODD, dtype=DTYPES[element]), 1e-14 if element is bk.ElementKind.F64 else 1e-6
    for keepdim in (False, True):
        wanted = _torch(name, x if element.size > 2 else x.double(), 1, keepdim)
        for given in (x, x.T.contiguous().T):
            for ours, theirs in zip(_ours(functional, name, given, 1, keepdim), wanted, strict=True):
                assert ours.shape == theirs.shape
                if name.endswith("indices") and ours.dtype is torch.int64:
                    assert torch.equal(x.gather(1, ours.reshape(-1, 1)).isnan(), x.gather(1, theirs.reshape(-1, 1)).isnan())
                    assert torch.equal(ours, _first_of(x, theirs))
                else:
                    assert torch.allclose(ours.double(), theirs.to(ours.dtype).double(), equal_nan=True, rtol=near, atol=0.0)


def _first_of(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The first of those equal to what was chosen: PyTorch says of several none in particular."""
    value = x.gather(1, chosen.reshape(-1, 1))
    return ((x == value) | (x.isnan() & value.isnan())).int().argmax(1).reshape(chosen.shape)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.randint(0, 100, (70, 33), generator=torch.Generator().manual_seed(1)).to(dtype)
    for dim in (0, 1):
        for name in ("max_with_indices", "min_with_indices", "aminmax"):
            for ours, theirs in zip(_ours(functional, name, x, dim), _torch(name, x, dim), strict=True):
                if ours.dtype is dtype:
                    assert torch.equal(ours, theirs)
                else:
                    assert torch.equal(x.gather(dim, ours.unsqueeze(dim)), x.gather(dim, theirs.unsqueeze(dim)))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("shape", "dim"), [((50_001,), 0), ((3, 20_001), 1), ((9_001, 20), 0)])
def test_bits_depend_on_the_numbers_alone(name: str, shape: tuple[int, ...], dim: int, threads: Any) -> None:
    """And both results are those that come one by one."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)) + 1.0
    threads(1)
    first = _ours(functional, name, x, dim)
    threads(3)
    for other in (x, x.flip(-1).contiguous().flip(-1)):
        assert all(map(torch.equal, _ours(functional, name, other, dim), first))
    parts = {"max_with_indices": ("amax", "argmax"), "min_with_indices": ("amin", "argmin"), "aminmax": ("amin", "amax")}
    parts |= {"var_mean": ("var", "mean"), "std_mean": ("std", "mean")}
    for part, result in zip(parts[name], first, strict=True):
        alone = getattr(functional, part)(x, dim)
        assert torch.equal(alone, result) if part != "mean" else torch.allclose(alone, result)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("shape", "dim", "keepdim"), [((6, 40), 1, False), ((40, 33), 0, True), ((3, 5, 7), 1, False)])
def test_gradients_as_pytorch(name: str, shape: tuple[int, ...], dim: int, keepdim: bool) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).requires_grad_()
    factors = torch.randn(2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    found = []
    for results in (_ours(own, name, x, dim, keepdim), _torch(name, x, dim, keepdim)):
        losses = [
            factor * result.square().sum() for factor, result in zip(factors, results, strict=True) if result.is_floating_point()
        ]
        found.append(torch.autograd.grad(sum(losses), x)[0])
    assert torch.allclose(*found, rtol=1e-9, atol=1e-12)


def test_gradient_of_one_result_alone() -> None:
    x = torch.randn(5, 9, dtype=torch.float64).requires_grad_()
    (ours,) = torch.autograd.grad(own.var_mean(x, 1)[1].sum(), x)
    assert torch.allclose(ours, torch.full_like(ours, 1.0 / 9.0))
    assert not own.max_with_indices(x, 1)[1].requires_grad


def test_gradient_of_several_axes() -> None:
    """Numbers of elements run over all reduced axes, in order."""
    descriptor = ReducePairDescriptor(ReducePairKind("max_with_indices"), (4, 3, 5), 0b101, bk.ElementKind.F64)
    x = numpy.random.default_rng(5).standard_normal((4, 3, 5))
    values, indices = numpy.empty(3), numpy.empty(3, numpy.int64)
    stream = bk.Stream.cpu()
    bk.ReducePairPlan.select(stream, descriptor).run(
        stream, bk.Workspace.none(), bk.ReducePairArgs(input=x, result=values, second=indices)
    )
    lines = x.transpose(1, 0, 2).reshape(3, 20)
    assert numpy.array_equal(values, lines.max(1)) and numpy.array_equal(indices, lines.argmax(1))


@pytest.mark.parametrize("name", PAIRS)
def test_of_nothing(name: str) -> None:
    nothing = numpy.zeros((3, 0), numpy.float32)
    if name in ("var_mean", "std_mean"):
        assert all(numpy.isnan(result).all() for result in _ours(functional, name, nothing, 1))
    else:
        with pytest.raises(bk.InvalidProblem, match=f"there is no {name} of nothing"):
            _ours(functional, name, nothing, 1)
    assert all(result.shape == (0,) for result in _ours(functional, name, numpy.zeros((0, 3), numpy.float32), 1))
