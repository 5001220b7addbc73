"""Variances where sums of squares would cancel, and rows that a warp each reduces on CUDA."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels import functional
from baracuda_kernels.ops.reduction import ReduceDescriptor, ReduceKind, ReducePairDescriptor, ReducePairKind
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.targets.cuda.formulas import reduction_tiles

from conftest import DEVICE, STREAM

NAN = math.nan
ONE_ULP = 2.0**-7  # of bf16, which Triton's interpreter does not round to nearest
HALVES = (bk.ElementKind.F16, bk.ElementKind.BF16)


def _on_cuda(name: str, x: torch.Tensor, axis: int, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The results of the kernel for CUDA, by rows or by columns."""
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    element = next(element for element, dtype in DTYPES.items() if dtype is x.dtype)
    is_pair = name in {kind.value for kind in ReducePairKind}
    plans: tuple[Any, Any, Any] = (
        (ReducePairDescriptor, ReducePairKind, bk.ReducePairPlan) if is_pair else (ReduceDescriptor, ReduceKind, bk.ReducePlan)
    )
    describe, kinds, kind_of_plan = plans
    problem = describe(kinds(name), tuple(x.shape), 1 << axis, element)
    plan = kind_of_plan.force("triton.reduce_pair" if is_pair else "triton.reduce", STREAM, problem)
    given = x.to(str(DEVICE))
    results = [given.new_empty(problem.result_shape, dtype=DTYPES[kind]) for kind in problem.row.results(element)]
    room = given.new_empty(plan.workspace_size, dtype=torch.uint8)
    operands = dict(zip(("result", "second"), results, strict=False))
    plan.run(STREAM, bk.Workspace.borrowed(room), plan.args_type(input=given, **operands))
    return [result.cpu() for result in results]


def _everywhere(name: str, x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The first result along rows, and along columns, by either kernel."""
    turned = x.T.contiguous()
    of_cpu = [getattr(functional, name)(given, dim=axis) for given, axis in ((x, 1), (turned, 0))]
    of_cuda = [_on_cuda(name, given, axis, monkeypatch)[0] for given, axis in ((x, 1), (turned, 0))]
    return [*(result[0] if isinstance(result, tuple) else result for result in of_cpu), *of_cuda]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variances_far_from_zero_after_many_absent_elements(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x = (torch.randn(6, 5000, generator=torch.Generator().manual_seed(4), dtype=torch.float64) + 1e6).to(dtype)
    for row, absent in enumerate((0, 1, 700, 4097)):
        x[row, :absent] = NAN
    x[4, ::2], x[5, :-2] = NAN, NAN
    wanted = numpy.nanvar(x.double().numpy() - 1e6, 1, ddof=1)
    for result in _everywhere("nanvar", x, monkeypatch):
        assert numpy.allclose(result.double(), wanted, rtol=1e-6 if dtype is torch.float32 else 1e-9)


@pytest.mark.parametrize("name", ["var", "nanvar", "std", "nanstd", "var_mean", "std_mean"])
@pytest.mark.parametrize("element", HALVES)
def test_halves_that_barely_differ(name: str, element: bk.ElementKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of one exponent, with all their bits, and one of them the next number: nearly everything cancels."""
    count, top = 40_000, {bk.ElementKind.F16: 2047.0, bk.ElementKind.BF16: 255.0}[element]
    x = torch.full((3, count), top)
    x[0, 0], x[1, -1], x[2, :] = top - 1.0, top - 1.0, top
    variance = (1.0 - 1.0 / count) / (count - 1.0)
    wanted = torch.tensor([variance, variance, 0.0], dtype=torch.float64)
    wanted = wanted.sqrt() if "std" in name else wanted
    for result in _everywhere(name, x.to(DTYPES[element]), monkeypatch):
        assert torch.allclose(result.double(), wanted.to(result.dtype).double(), rtol=ONE_ULP, atol=0.0)


@pytest.mark.parametrize("name", ["var", "nanvar", "ptp", "argmax", "nanargmax", "nanargmin", "aminmax", "var_mean", "std_mean"])
@pytest.mark.parametrize("element", HALVES)
def test_rows_by_a_warp_each(name: str, element: bk.ElementKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel for the CPU has them, among infinities and NaN, for rows that are whole tiles, and that are not."""
    monkeypatch.setattr(reduction_tiles, "MANY", 4)
    taken: list[Any] = []
    takes = reduction_tiles._takes_a_warp
    monkeypatch.setattr(reduction_tiles, "_takes_a_warp", lambda *given: taken.append(takes(*given)) or taken[-1])
    for count in (2048, 2901):
        x = torch.randn(8, count, generator=torch.Generator().manual_seed(8))
        x[0, 3], x[1, 0], x[2, 70], x[3, :], x[4, ::3], x[5, :], x[5, 9] = math.inf, NAN, -math.inf, NAN, NAN, NAN, -math.inf
        x[6, :] = -math.inf
        given = x.to(DTYPES[element])
        found = getattr(functional, name)(given, dim=1)
        for result, wanted in zip(
            _on_cuda(name, given, 1, monkeypatch), found if isinstance(found, tuple) else (found,), strict=True
        ):
            assert torch.allclose(result.double(), wanted.double(), equal_nan=True, rtol=ONE_ULP)
    assert taken and all(taken)


def test_sums_whose_square_overflows() -> None:
    x = torch.zeros(1_000_000, dtype=torch.float64)
    x[::2] = 1e150
    for name in ("var", "nanvar"):
        assert getattr(functional, name)(x, dim=0).item() == pytest.approx(2.5e299, rel=1e-5)


def test_many_halves_that_barely_differ() -> None:
    """So many that the square of their sum, divided by their number, loses what is left of the squares."""
    x = torch.full((1 << 22,), 2047.0, dtype=torch.float16)
    x[5] = 2046.0
    for name in ("var", "nanvar"):
        assert getattr(functional, name)(x, dim=0, correction=(1 << 22) - 1).item() == pytest.approx(1.0, rel=2.0**-11)
