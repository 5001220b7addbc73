"""Reductions: one order for every layout and any number of threads, errors that grow slowly, and PyTorch's results in odd cases."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch
from baracuda_kernels import functional
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.ops.reduction import ReduceDescriptor, ReduceKind, ReduceToDescriptor
from baracuda_kernels.ops.reduction.program import reduction_of
from baracuda_kernels.ops.reduction.rows import TABLE
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.targets.cpu.llvm import reduction_launch

from conftest import DEVICE, STREAM

INF, NAN = math.inf, math.nan
SUMS = ("sum", "var", "logsumexp", "prod", "nanmean", "argmax", "l2_norm")
GRADIENTS = [name for name, row in TABLE.items() if row.gradient is not None]


def _of(name: str, *given: Any, **named: Any) -> Any:
    return getattr(functional, name)(*given, **named)


close = functools.partial(torch.allclose, rtol=1e-13, atol=1e-13)  # of f64


def _laid_out(x: torch.Tensor) -> list[torch.Tensor]:
    """The same numbers in other places."""
    turned = x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))
    gaps = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)[..., 1::2]
    return [x, turned, gaps.copy_(x), x.flip(-1).contiguous().flip(-1)]


# --- the order -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(("shape", "dim"), [((3, 50_001), 1), ((50_001, 20), 0), ((41, 300, 7), (0, 2)), ((150_000,), 0)])
def test_bits_depend_on_the_numbers_alone(name: str, shape: tuple[int, ...], dim: Any, threads: Any) -> None:
    """Not on threads, nor on how the input lies; whether a sum is split among threads or walked through by one is no matter."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 1e-2 + 1.0
    if name == "argmax" and isinstance(dim, tuple):
        x, dim = x.reshape(41, -1), 1
    threads(1)
    first = _of(name, x, dim)
    for count in (1, 2, 3):
        threads(count)
        for other in _laid_out(x):
            assert torch.equal(_of(name, other, dim), first)


@pytest.mark.parametrize("name", ["sum", "var"])
def test_a_sum_does_not_depend_on_the_others(name: str) -> None:
    """Rows and columns, alone and among others, few enough to be split and too many for it."""
    x = torch.randn(2060, 17_000, generator=torch.Generator().manual_seed(2)) * 1e-2 + 1.0
    rows, columns = _of(name, x, 1), _of(name, x.T.contiguous(), 0)
    assert torch.equal(rows, columns)
    assert torch.equal(_of(name, x[7]), rows[7])
    assert torch.equal(_of(name, x[:40], 1), rows[:40])


@pytest.mark.parametrize("count", [1_000, 30_000, 1_000_000, 5_000_001])
@pytest.mark.parametrize("dim", [0, 1])
def test_errors_of_sums_grow_slowly(count: int, dim: int) -> None:
    """As the root of the number of elements at most, where one after the other they would grow with the number itself."""
    rng, eps = numpy.random.default_rng(3), 2.0**-24
    for x in (rng.uniform(0, 1, count), rng.standard_normal(count)):
        single = x.astype(numpy.float32)
        exact = math.fsum(single)
        total = float(_of("sum", single.reshape((count, 1) if dim == 0 else (1, count)), dim)[0])
        assert abs(total - exact) <= eps * (4.0 * abs(exact) + math.sqrt(count))


def test_variance_far_from_zero() -> None:
    x = torch.randn(1000, 300, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    for shift in (0.0, 1e3, 1e6):
        shifted = x + shift
        assert torch.allclose(_of("var", shifted, 1), shifted.var(1), rtol=1e-9)
        assert torch.allclose(_of("std", shifted.float(), 0).double(), shifted.float().double().std(0), rtol=1e-6)
    outlier = x.clone()
    outlier[:, 0] = 1e8
    assert torch.allclose(_of("var", outlier, 1), outlier.var(1), rtol=1e-9)


@pytest.mark.parametrize("name", ["argmax", "nanargmin"])
def test_more_elements_than_32_bits_count(name: str) -> None:
    """They are numbered in 64 bits, by the same formulas."""
    few, many = (ReduceDescriptor(ReduceKind(name), (count,), 1, bk.ElementKind.F32) for count in (3000, 1 << 31))
    assert reduction_of(few).place is bk.ElementKind.I32 and reduction_of(many).place is bk.ElementKind.I64
    x = numpy.random.default_rng(9).standard_normal(3000).astype(numpy.float32)
    result = numpy.empty((), numpy.int64)
    launch = reduction_launch.kernel(reduction_of(many), (3000,), (0,))([(1,)], [()])
    launch((x.ctypes.data, result.ctypes.data), 0, None)
    assert result == getattr(numpy, name)(x)


# --- PyTorch's results ---------------------------------------------------------------------------------------------------------

ODD = (
    [1.0, NAN, 3.0, NAN], [INF, -INF, 0.0, 1.0], [-0.0, 0.0, 0.0, -0.0], [2.0, 5.0, 5.0, -1.0], [INF, 1.0, INF, 2.0],
    [-INF, -INF, -INF, -INF], [0.0, 0.0, 0.0, 0.0], [NAN, NAN, NAN, NAN], [-3.0, -3.0, 7.0, 7.0],
)  # fmt: skip


def _torch(name: str, x: torch.Tensor, dim: Any, keepdim: bool) -> torch.Tensor:
    if name.endswith("norm"):
        order = {"l1_norm": 1.0, "linf_norm": INF}.get(name, 2.0)
        return torch.linalg.vector_norm(x, order, dim, keepdim)
    if name in ("nanmax", "nanmin"):
        filled = x.nan_to_num(-INF if name == "nanmax" else INF, INF, -INF)
        found = getattr(filled, "a" + name[3:])(dim, keepdim)
        return torch.where(x.isnan().all(dim, keepdim), NAN, found)
    if name in ("nanargmax", "nanargmin"):
        filled = x.nan_to_num(-INF if name == "nanargmax" else INF, INF, -INF)
        best = getattr(filled, "amax" if name == "nanargmax" else "amin")(dim, keepdim=True)
        found = ((filled == best) & ~x.isnan()).int().argmax(dim, keepdim)
        return torch.where(x.isnan().all(dim, keepdim), -1, found)
    if name in ("nanvar", "nanstd"):
        present, filled = (~x.isnan()).sum(dim, keepdim=True), x.nan_to_num(0.0, INF, -INF)
        distances = torch.where(x.isnan(), 0.0, filled - filled.sum(dim, keepdim=True) / present)
        result = (distances**2).sum(dim, keepdim) / (present if keepdim else present.squeeze(dim)).sub(1).clamp(0)
        return result if name == "nanvar" else result.sqrt()
    if name == "nanprod":
        return torch.where(x.isnan(), 1.0, x).prod(dim, keepdim)
    if name == "logmeanexp":
        return torch.logsumexp(x, dim, keepdim) - math.log(x.shape[dim])
    if name == "reduce_xor":
        return functools.reduce(torch.bitwise_xor, x.unbind(dim))
    if name == "ptp":
        return x.amax(dim, keepdim) - x.amin(dim, keepdim)
    if name == "count_nonzero":
        return torch.count_nonzero(x, dim)
    return getattr(torch, name)(x, dim, keepdim=keepdim)


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if bk.ElementKind.F32 in row.elements])
@pytest.mark.parametrize("element", FLOATS)
def test_as_pytorch_in_odd_cases(name: str, element: bk.ElementKind) -> None:
    x, near = torch.tensor(ODD, dtype=DTYPES[element]), 1e-14 if element is bk.ElementKind.F64 else 1e-6
    for keepdim in (False, True):
        wanted = _torch(name, x if element.size > 2 else x.double(), 1, keepdim)
        for given in (x, x.T.contiguous().T):
            result = _of(name, given, 1, keepdim=keepdim)
            if name == "count_nonzero":
                result = result.reshape(wanted.shape)
            assert result.shape == wanted.shape
            assert torch.allclose(result.double(), wanted.to(result.dtype).double(), equal_nan=True, rtol=near, atol=0.0), (
                result,
                wanted,
            )


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("by_rows", [True, False])
def test_long_logarithms_of_sums_among_infinities(element: bk.ElementKind, by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel for CUDA, which takes several elements at a time."""
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    x = torch.randn(9, 9001, generator=torch.Generator().manual_seed(6), dtype=torch.float64) * 20.0
    for row, odd in enumerate(
        [{}, {0: INF}, {8000: INF, 3: INF}, {5000: NAN}, {0: NAN, 1: INF}, {4: -INF, 9000: -INF}, {100: INF, 101: -INF}]
    ):
        for place, value in odd.items():
            x[row, place] = value
    x[7], x[8, :-1] = -INF, -INF
    x = x.to(DTYPES[element]).to(str(DEVICE))
    given = x if by_rows else x.T.contiguous()
    problem = ReduceDescriptor(ReduceKind("logsumexp"), tuple(given.shape), 0b10 if by_rows else 0b01, element)
    plan = bk.ReducePlan.force("triton.reduce", STREAM, problem)
    result = torch.empty(9, dtype=x.dtype, device=x.device)
    room = torch.empty(plan.workspace_size, dtype=torch.uint8, device=x.device)
    plan.run(STREAM, bk.Workspace.borrowed(room), bk.ReduceArgs(input=given, result=result))
    wanted = torch.logsumexp(x.double(), 1)
    near = 4 * torch.finfo(x.dtype).eps
    assert torch.allclose(result.double(), wanted.to(x.dtype).double(), equal_nan=True, rtol=near, atol=0.0)


def test_many_short_columns_take_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel for CUDA, which then leaves the workspace alone; of integers, so that sums are exact."""
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    x = torch.randint(-8, 9, (1500, 2053), generator=torch.Generator().manual_seed(7)).to(str(DEVICE), torch.float32)
    plan = bk.ReducePlan.force("triton.reduce", STREAM, ReduceDescriptor(ReduceKind.SUM, tuple(x.shape), 0b01, bk.ElementKind.F32))
    given = x.new_empty(plan.workspace_size, dtype=torch.uint8)
    for result in (x.new_empty(2053), x.new_empty(2053)):
        plan.run(STREAM, bk.Workspace.borrowed(given.fill_(0xFF)), bk.ReduceArgs(input=x, result=result))
        assert torch.equal(result, x.sum(0))
    assert (given == 0xFF).all()


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if bk.ElementKind.I8 in row.elements])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_integers_as_pytorch(name: str, dtype: torch.dtype) -> None:
    x = torch.randint(0, 120, (5, 70), generator=torch.Generator().manual_seed(5)).remainder(120 if name != "prod" else 3).to(dtype)
    x[0, 3] = x[2] = 0
    if dtype is torch.bool and name in ("argmax", "argmin", "ptp"):
        with pytest.raises(bk.Unsupported):
            _of(name, x, 1)
        return
    for dim in (0, 1):
        result, wanted = _of(name, x, dim), _torch(name, x, dim, False)
        kind = torch.bool if name in ("any", "all") else wanted.dtype  # PyTorch keeps uint8 there, for its own past
        assert result.dtype is kind and torch.equal(result, wanted.to(kind))


def test_dims_as_pytorch() -> None:
    x = torch.randn(3, 4, 5, 6, dtype=torch.float64)
    for dim in (None, 0, -1, (1, 2), (0, -1), (3, 1, 0), [2, 0], (), []):
        for keepdim in (False, True):
            assert close(_of("sum", x, dim, keepdim), torch.sum(x, dim, keepdim))
            assert _of("quantile", x, 0.5, dim, keepdim).shape == torch.sum(x, dim, keepdim).shape
    assert torch.equal(_of("argmax", x), torch.argmax(x))
    for correction in (0, 1, 2.5):
        assert close(_of("var", x, 1, correction=correction), torch.var(x, 1, correction=correction), equal_nan=True)
    for order in (0, 0.5, 1, 2, 3, -2, INF, -INF):
        wanted = torch.linalg.vector_norm(x, order, (0, 2))
        assert close(_of("vector_norm", x, (0, 2), ord=order), wanted)
        assert close(_of("norm", x, order, (0, 2)), torch.norm(x, order, (0, 2)))


# --- nothing -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLE)
def test_of_nothing(name: str) -> None:
    dtype = numpy.float32 if bk.ElementKind.F32 in TABLE[name].elements else numpy.int32
    nothing, no_results = numpy.zeros((3, 0), dtype), numpy.zeros((0, 3), dtype)
    assert _of(name, no_results, 1).shape == (0,)
    if TABLE[name].needs_elements:
        with pytest.raises(bk.InvalidProblem, match=f"there is no {name} of nothing"):
            _of(name, nothing, 1)
        return
    result = _of(name, nothing, 1)
    of_one = dict.fromkeys(("mean", "var", "std", "nanmean", "nanvar", "nanstd", "logmeanexp"), NAN)
    of_one |= {"prod": 1.0, "nanprod": 1.0, "all": True, "logsumexp": -INF}
    assert result.shape == (3,) and numpy.array_equal(result, [of_one.get(name, 0)] * 3, equal_nan=result.dtype.kind == "f")


def test_along_no_axis() -> None:
    """At the level of plans a reduction may have no axes; a function without them takes all."""
    x = numpy.random.default_rng(6).standard_normal((4, 5)).astype(numpy.float32)
    descriptor = ReduceDescriptor(ReduceKind.SUM, (4, 5), 0, bk.ElementKind.F32)
    assert descriptor.result_shape == (4, 5) and descriptor.count == 1
    assert _of("sum", numpy.full((), 3.0)) == 3.0
    assert numpy.array_equal(_of("sum", x[None], 0), x)


def test_refusals() -> None:
    with pytest.raises(bk.InvalidProblem, match="axes_mask"):
        ReduceDescriptor(ReduceKind.SUM, (4, 5), 0b100, bk.ElementKind.F32)
    with pytest.raises(bk.InvalidProblem, match="1: correction"):
        ReduceDescriptor(ReduceKind.VAR, (4, 5), 1, bk.ElementKind.F32, parameters=(1.0, 2.0))
    with pytest.raises(bk.InvalidProblem, match="broadcasts to"):
        ReduceToDescriptor((4, 5), (2, 5), bk.ElementKind.F32)
    with pytest.raises(bk.Unsupported, match="mean"):
        _of("mean", numpy.zeros(3, numpy.int32))


# --- gradients -----------------------------------------------------------------------------------------------------------------


def _gradients(name: str, x: torch.Tensor, dim: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Ours and PyTorch's."""
    x = x.clone().requires_grad_()
    if name == "vector_norm":
        result = torch.linalg.vector_norm(x, options["ord"], dim)
    elif options:
        result = getattr(torch, name)(x, dim, **options)
    else:
        result = _torch(name, x, dim, False)
    upstream = torch.randn(result.shape, generator=torch.Generator().manual_seed(7), dtype=x.dtype)
    (wanted,) = torch.autograd.grad(result, x, upstream)
    return _of(f"{name}_backward", upstream, x.detach(), result.detach(), dim, **options), wanted


@pytest.mark.parametrize("name", [name for name in GRADIENTS if name not in ("nanmax", "nanmin", "vector_norm")])
@pytest.mark.parametrize(("shape", "dim"), [((6, 40), 1), ((40, 33), 0), ((2, 20_000), 1)])
def test_gradients_as_pytorch(name: str, shape: tuple[int, ...], dim: int) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    if name.startswith("nan"):
        x[0, :7] = NAN
    ours, theirs = _gradients(name, x if name != "prod" else 1.0 + x / 100, dim)
    assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_gradients_of_ties_zeros_and_norms() -> None:
    tied = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-5.0, 5.0, 1.0, -1.0]], dtype=torch.float64)
    for name in ("amax", "amin", "linf_norm"):
        assert close(*_gradients(name, tied, 1))
    zeros = torch.tensor([[1.0, 3.0, 0.0, 2.0], [0.0, 2.0, 0.0, 2.0], [-5.0, 5.0, 1.0, -1.0]], dtype=torch.float64)
    assert close(*_gradients("prod", zeros, 1))
    for order in (0.5, 1.0, 1.5, 2.0, 3.0, -1.0, INF, -INF):
        assert close(*_gradients("vector_norm", tied[2:] + 0.5, 1, ord=order)), order
    for correction in (0, 2):
        assert close(*_gradients("var", zeros, 0, correction=correction))
    absent = torch.tensor([[1.0, NAN, 7.0, 7.0]], dtype=torch.float64)
    gradient = _of("nanmax_backward", torch.ones(1, dtype=torch.float64), absent, torch.full((1,), 7.0, dtype=torch.float64), 1)
    assert gradient.tolist() == [[0.0, 0.0, 0.5, 0.5]]
    assert close(*_gradients("ptp", tied, 1))
    assert close(*_gradients("nanprod", torch.tensor([[0.0, NAN, 7.0, 2.0]], dtype=torch.float64), 1))
    own = baracuda_kernels.torch.norm(zeros.clone().requires_grad_(), 3.0, 1)
    assert close(own, torch.norm(zeros, 3.0, 1)) and own.requires_grad


def test_variance_of_present_far_from_zero() -> None:
    x = torch.randn(50, 300, generator=torch.Generator().manual_seed(4), dtype=torch.float64) + 1e6
    x[:, ::3] = NAN
    wanted = numpy.nanvar(x.numpy() - 1e6, 1, ddof=1)
    assert numpy.allclose(_of("nanvar", x, 1), wanted, rtol=1e-9)
    assert numpy.allclose(_of("nanvar", x.T.contiguous(), 0), wanted, rtol=1e-9)


# --- sums to a smaller shape ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(), (5,), (4, 1), (1, 5), (3, 1, 1), (1, 4, 5), (3, 4, 5), (1, 1, 1)])
def test_sum_to_size(size: tuple[int, ...]) -> None:
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    assert close(_of("sum_to_size", x, size), x.sum_to_size(size) if size else x.sum())
