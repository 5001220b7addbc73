"""Formulas of the caller's: through PyTorch, with their gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt

from torch_calls import WHERE


def gated(x: Any, y: Any) -> Any:
    return bk.tanh(x) * y + x / (y * y + 2)


def in_torch(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * y + x / (y * y + 2)


def operands(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=made, dtype=dtype, device="cpu").to(WHERE).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("shapes", [((5, 3), (5, 3)), ((5, 3), (3,)), ((4, 1), (2, 1, 3)), ((), (2, 3)), ((0, 3), (3,))], ids=str)
def test_gradients_of_a_formula(shapes: Any) -> None:
    """Those of what is broadcast have its shape."""
    given = operands(*shapes)
    fused = bt.fuse(gated)
    assert torch.autograd.gradcheck(fused, tuple(given))
    for found, wanted in zip(*(torch.autograd.grad(each(*given).sum(), given) for each in (fused, in_torch)), strict=True):
        assert found.shape == wanted.shape
        torch.testing.assert_close(found, wanted)


def test_the_backward_of_a_formula_is_one_kernel() -> None:
    x, y = operands((5, 3), (5, 3))
    name = f"baracuda::{bk.fuse(gated).name}"
    with torch.profiler.profile() as profile:
        bt.fuse(gated)(x, y).backward(torch.ones_like(x))
    called = [event.name for event in profile.events() if event.name.startswith("baracuda::")]
    assert called == [name, f"{name}_backward"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_gradients_in_every_element(dtype: torch.dtype) -> None:
    given = operands((7, 5), (5,), dtype=dtype)
    found = torch.autograd.grad(bt.fuse(gated)(*given).float().sum(), given)
    wanted = torch.autograd.grad(in_torch(*(each.double() for each in given)).sum(), given)
    allowed = 1e-5 if dtype is torch.float32 else 2e-2
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other.to(dtype), rtol=allowed, atol=allowed)


def test_what_was_fused_elsewhere_and_with_functions_of_torch() -> None:
    """One formula is one operator, however it is written."""
    given = operands((5, 3), (3,))
    first, second, third = bt.fuse(gated), bt.fuse(bk.fuse(gated)), bt.fuse(lambda a, b: bt.tanh(a) * b + a / (b * b + 2))
    assert first is second is third
    wide = bt.fuse(lambda x: x * x - 1, wide=True)
    x = torch.tensor([1 + 2**-12], device=WHERE, requires_grad=True)
    assert wide(x).item() == torch.tensor((1 + 2**-12) ** 2 - 1).item()
    torch.testing.assert_close(bk.fuse(gated)(*(each.detach() for each in given)), first(*given).detach(), rtol=0, atol=0)


def test_under_transforms() -> None:
    x, y = (each.detach() for each in operands((4, 5, 3), (3,)))
    fused = bt.fuse(gated)
    for axes, shapes in (((0, None), (x, y)), ((1, 0), (x, x[0])), ((None, 0), (y, x))):
        torch.testing.assert_close(torch.vmap(fused, axes)(*shapes), torch.vmap(in_torch, axes)(*shapes))
    found, wanted = (torch.func.grad(lambda *given, f=each: f(*given).sum(), (0, 1))(x, y) for each in (fused, in_torch))
    torch.testing.assert_close(found, wanted)


def test_compiled_without_a_break() -> None:
    torch.compiler.reset()
    x, y = operands((5, 3), (3,))
    fused = bt.fuse(gated)
    compiled = torch.compile(lambda x, y: fused(x, y) * 2, fullgraph=True, backend="aot_eager")
    results = [[result, *torch.autograd.grad(result.sum(), (x, y))] for result in (compiled(x, y), fused(x, y) * 2)]
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    torch.compiler.reset()


def test_errors_name_what_there_is() -> None:
    (x,) = operands((3,))
    fused = bk.fuse(lambda x: x * x)
    with pytest.raises(bk.InvalidProblem, match=r"wanted baracuda_kernels\.torch\.fuse of it, which records gradients"):
        fused(x)
    with pytest.raises(bk.InvalidProblem, match=r"wanted baracuda_kernels\.torch\.tanh, which records gradients"):
        bk.tanh(x)
    recorded = bt.fuse(fused)
    with pytest.raises(bk.InvalidProblem, match=r"input0 .*got ndarray, wanted a torch\.Tensor"):
        recorded(x.detach().cpu().numpy())
    with pytest.raises(bk.Unsupported, match="first derivatives"):
        torch.autograd.grad(recorded(x).sum(), x, create_graph=True)[0].sum().backward()
    for wrong in (3, torch.tanh, bk.tanh):
        with pytest.raises(bk.InvalidProblem, match="wanted a Python function of its operands"):
            bt.fuse(wrong)  # type: ignore[arg-type] # as it may be called
