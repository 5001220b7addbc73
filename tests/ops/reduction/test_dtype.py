"""Reductions and scans whose elements count as others, by PyTorch's `dtype`."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels import functional
from baracuda_kernels.ops.reduction import ReduceDescriptor, ReduceKind
from baracuda_kernels.ops.reduction.rows import TABLE

CONVERTING = [name for name, row in TABLE.items() if row.converts]
BY_PYTORCH = ("sum", "mean", "prod", "nansum", "nanmean", "norm")
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def _drawn(dtype: torch.dtype, name: str) -> torch.Tensor:
    x = torch.randn(7, 40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x = 1.0 + x / 50 if name == "prod" else x
    return x.to(dtype) if dtype.is_floating_point else (x * 3).round().to(dtype)


@pytest.mark.parametrize("name", BY_PYTORCH)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("given", [*FLOATS, torch.int8, torch.int64, torch.bool], ids=str)
def test_as_pytorch(name: str, given: torch.dtype, dtype: torch.dtype) -> None:
    x = _drawn(given, name)
    options: dict[str, Any] = {"p": 3.0} if name == "norm" else {}
    if name == "norm":  # of what is narrower PyTorch refuses it
        wanted = torch.norm(x.double(), dim=1, **options).to(dtype)
    elif not given.is_floating_point and name in ("nansum", "nanmean"):
        wanted = getattr(torch, name)(x.to(dtype), dim=1)
    else:
        wanted = getattr(torch, name)(x, dim=1, dtype=dtype)
    found = getattr(functional, name)(x, dim=1, dtype=dtype, **options)
    assert found.dtype is dtype
    # PyTorch rounds every element to what is narrower, and we do so once.
    assert torch.allclose(found.double(), wanted.double(), rtol=8 * torch.finfo(dtype).eps, atol=20 * torch.finfo(dtype).eps)


def test_integers_stay_as_wide_as_they_are_asked_to() -> None:
    x = torch.tensor([[100, 100, 100], [-128, -128, 1]], dtype=torch.int8)
    for dtype in (torch.int8, torch.int32, torch.int64, torch.uint8):
        found = functional.sum(x, dim=1, dtype=dtype)
        assert found.dtype is dtype
        assert torch.equal(found, x.long().sum(1).to(dtype))
    assert functional.prod(x, dim=1, dtype=torch.int16).tolist() == x.prod(1, dtype=torch.int16).tolist()


def test_what_is_narrower_is_rounded_once() -> None:
    """Not every element before: the sum of so many small ones would be half as large."""
    x = torch.full((4096,), 1.0 + 2.0**-8 + 2.0**-12)
    assert functional.mean(x, dtype=torch.bfloat16).double() == torch.tensor(1.0 + 2.0**-7).double()
    assert functional.sum(numpy.full(10, 0.1, numpy.float32), dtype="f64") == 10 * numpy.float64(numpy.float32(0.1))


@pytest.mark.parametrize("name", CONVERTING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_what_the_elements_were(name: str, dtype: torch.dtype) -> None:
    """As if they had been cast before."""
    upstream = torch.randn(7, generator=torch.Generator().manual_seed(4), dtype=dtype)
    gradients = []
    for is_cast in (False, True):
        x = _drawn(torch.bfloat16, name).requires_grad_()
        result = getattr(bt, name)(bt.cast(x, dtype), dim=1) if is_cast else getattr(bt, name)(x, dim=1, dtype=dtype)
        assert result.dtype is dtype
        result.backward(upstream)
        gradients.append(x.grad)
    assert gradients[0].dtype is torch.bfloat16
    assert torch.allclose(gradients[0].double(), gradients[1].double(), rtol=2.0**-7)


def test_inside_what_is_compiled_and_mapped() -> None:
    x = torch.randn(3, 4, 5).bfloat16()
    compiled = torch.compile(lambda x: bt.sum(x, dim=-1, dtype=torch.float32), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), x.sum(-1, dtype=torch.float32))
    mapped = torch.vmap(lambda x: bt.mean(x, dim=1, dtype=torch.float32))(x)
    assert torch.allclose(mapped, x.mean(2, dtype=torch.float32))


def test_refused_with_a_reason() -> None:
    x, whole = torch.zeros(3), torch.zeros(3, dtype=torch.int32)
    with pytest.raises(bk.InvalidProblem, match="as_element is out of range: got i64, wanted a float, as elements are f32"):
        functional.sum(x, dtype=torch.int64)
    with pytest.raises(bk.InvalidProblem, match="wanted a number, as elements are i32"):
        functional.sum(whole, dtype=torch.bool)
    with pytest.raises(bk.Unsupported, match="as_element is beyond what this kernel supports: got i64, wanted f32 or f64"):
        functional.mean(whole, dtype=torch.int64)
    with pytest.raises(bk.InvalidProblem, match="dtype has the wrong type"):
        functional.sum(x, dtype="floating")
    with pytest.raises(bk.InvalidProblem, match="none for amax"):
        ReduceDescriptor(ReduceKind.AMAX, (3,), 1, bk.ElementKind.F32, as_element=bk.ElementKind.F64)


# --- scans ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize(("given", "dtype"), [(torch.bfloat16, torch.float32), (torch.float32, torch.float64), (torch.int8, torch.float32),
                                              (torch.float32, torch.float16), (torch.bool, torch.int64)], ids=str)  # fmt: skip
def test_scans_as_pytorch(name: str, given: torch.dtype, dtype: torch.dtype) -> None:
    x = _drawn(given, "prod" if given.is_floating_point else name)
    wanted = getattr(torch, name.removeprefix("nan"))(x.to(dtype), 1)
    found = getattr(functional, name)(x, 1, dtype=dtype)
    assert found.dtype is dtype
    assert torch.allclose(found.double(), wanted.double(), rtol=10 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0)
    assert torch.equal(getattr(functional, name)(input=x, dim=1, dtype=dtype), found)
    assert torch.equal(getattr(bt, name)(x, 1, dtype=dtype), found)


def test_scans_are_recorded_compiled_and_refused() -> None:
    x = _drawn(torch.bfloat16, "cumsum").requires_grad_()
    bt.cumsum(x, 1, dtype=torch.float64).square().sum().backward()
    other = x.detach().clone().requires_grad_()
    torch.cumsum(other, 1, dtype=torch.float64).square().sum().backward()
    assert x.grad.dtype is torch.bfloat16
    assert torch.allclose(x.grad.double(), other.grad.double(), rtol=2.0**-7)
    compiled = torch.compile(lambda x: bt.cumsum(x, 1, dtype=torch.float32), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x.detach()), functional.cumsum(x.detach(), 1, dtype=torch.float32))
    assert functional.cumsum.select(x.detach(), 1, dtype="f32").descriptor.element is bk.ElementKind.F32
    with pytest.raises(bk.InvalidProblem, match="dtype is out of range: got i32, wanted a float, or i64"):
        functional.cumsum(torch.zeros(3, dtype=torch.int8), 0, dtype=torch.int32)
