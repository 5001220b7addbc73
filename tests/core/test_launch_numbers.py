"""Numbers that come with a launch: what they are is no part of what is selected, compiled or kept."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.reason import ReasonCode
from baracuda_kernels.targets.cpu.runtime import native

from conftest import DEVICE, STREAM

WHERE = str(DEVICE)
E, BINARY = bk.ElementKind, bk.BinaryKind


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(-3, 3, math.prod(shape), dtype=torch.float64).reshape(shape).to(WHERE, dtype)


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "alpha": (lambda x, number: bk.add(x, x, alpha=number), lambda x, number: torch.add(x, x, alpha=number)),
    "an operand": (bk.mul, torch.mul),
    "the first operand": (lambda x, number: bk.sub(number, x), lambda x, number: number - x),
    "one of two bounds": (lambda x, number: bk.clamp(x, max=number), lambda x, number: torch.clamp(x, max=number)),
    "both bounds": (lambda x, number: bk.clamp(x, -number, number), lambda x, number: torch.clamp(x, -number, number)),
    "two parameters": (lambda x, number: bk.threshold(x, number, 0.25), lambda x, number: torch.threshold(x, number, 0.25)),
    "a choice": (lambda x, number: bk.where(x > 0, x, number), lambda x, number: torch.where(x > 0, x, number)),
    "a result that is given": (
        lambda x, number: bk.mul(x, number, out=torch.empty_like(x)),
        lambda x, number: torch.mul(x, number),
    ),
    "an operator": (bt.mul, torch.mul),
    "an operator's parameter": (lambda x, number: bt.leaky_relu(x, number), torch.nn.functional.leaky_relu),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is selected, described or compiled from now on."""
    found: list[Any] = []

    def noting(original: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            found.append((original, given))
            return original(*given, **named)

        return call

    monkeypatch.setattr(Kernel, "prepare", noting(Kernel.prepare))
    monkeypatch.setattr(Function, "_first", noting(Function._first))
    monkeypatch.setattr(native, "_load", noting(native._load))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_new_number_makes_nothing(name: str, made: list[Any]) -> None:
    ours, theirs = CALLS[name]
    x = tensor(4, 9)
    ours(x, 0.5)
    made.clear()
    for number in (0.75, 1e-3, 3.25, math.inf):
        torch.testing.assert_close(ours(x, number), theirs(x, number), rtol=0, atol=0)
    assert not made


def test_a_new_integer_makes_nothing_beside_others_of_its_size(made: list[Any]) -> None:
    x = tensor(4, 9, dtype=torch.int16)
    bk.add(x, 70)
    made.clear()
    for number in range(64, 128, 9):
        torch.testing.assert_close(bk.add(x, number), x + number, rtol=0, atol=0)
    assert not made
    torch.testing.assert_close(bk.add(x, 30_000), x + 30_000, rtol=0, atol=0)
    with pytest.raises(bk.InvalidProblem, match="an integer from -32768 to 32767 beside i16"):
        bk.add(x, 1 << 15)


def test_gradients_of_new_numbers_make_nothing(made: list[Any]) -> None:
    def gradient(number: float) -> torch.Tensor:
        x = tensor(4, 9).requires_grad_()
        bt.where(x > 0, bt.add(bt.mul(x, number), x, alpha=number), number).sum().backward()
        assert x.grad is not None
        return x.grad

    gradient(0.5)
    made.clear()
    x = tensor(4, 9)
    for number in (0.25, 3.0):
        torch.testing.assert_close(gradient(number), torch.where(x * number > 0, 2 * number, 0.0) * (x > 0), rtol=0, atol=0)
    assert not made


def test_types_of_numbers_tell_calls_apart() -> None:
    x = tensor(5, dtype=torch.int32)
    assert bk.mul(x, 3).tolist() == (x * 3).tolist() == bk.mul(x, numpy.int64(3)).tolist()
    y = tensor(5)
    assert (
        bk.mul(y, 3).tolist()
        == bk.mul(y, 3.0).tolist()
        == bk.mul(y, numpy.float64(3)).tolist()
        == bk.mul(y, numpy.float32(3)).tolist()
    )


def test_what_chooses_the_kernel_is_no_such_number() -> None:
    x = tensor(7) * 1.2345
    for decimals in (0, 1, 2, 0):
        torch.testing.assert_close(bk.round(x, decimals), torch.round(x, decimals=decimals))


def test_a_function_without_such_numbers_has_none() -> None:
    assert not registry.function("softmax").numbered and registry.function("add").numbered


# --- plans -------------------------------------------------------------------------------------------------------------------------


def plan_of(kind: Any, **fields: Any) -> bk.BinaryPlan:
    return bk.BinaryPlan.select(STREAM, bk.BinaryDescriptor(kind, (3, 5), E.F32, **fields))


def run(plan: Any, result: torch.Tensor, **operands: Any) -> torch.Tensor:
    plan.run(STREAM, bk.Workspace.none(), type(plan).args_type(result=result, **operands))
    return result


def test_numbers_are_arguments_of_a_launch() -> None:
    x, y = tensor(3, 5), tensor(3, 5) + 1
    added, scaled = plan_of(BINARY.ADD, parameters=(2.0,)), plan_of(BINARY.MUL, other_value=7.0)
    result = torch.empty_like(x)
    torch.testing.assert_close(run(added, result, input=x, other=y, alpha=0.5), x + 0.5 * y, rtol=0, atol=0)
    torch.testing.assert_close(run(added, result, input=x, other=y), x + 2.0 * y, rtol=0, atol=0)  # the descriptor's
    torch.testing.assert_close(run(scaled, result, input=x, other=3), x * 3, rtol=0, atol=0)
    torch.testing.assert_close(run(scaled, result, input=x), x * 7, rtol=0, atol=0)


def test_args_may_be_run_again() -> None:
    x, result = tensor(3, 5), torch.empty(3, 5, device=WHERE)
    plan = plan_of(BINARY.MUL, other_value=1.0)
    first, second = (bk.BinaryArgs(input=x, other=number, result=result) for number in (2.0, -0.5))
    for args, number in ((first, 2.0), (second, -0.5), (first, 2.0)):
        plan.run(STREAM, bk.Workspace.none(), args)
        torch.testing.assert_close(result, x * number, rtol=0, atol=0)


def test_numbers_that_a_launch_cannot_have() -> None:
    x, result = tensor(3, 5), torch.empty(3, 5, device=WHERE)
    plan = plan_of(BINARY.MUL, other_value=1.0)
    with pytest.raises(bk.InvalidProblem, match="alfa"):
        bk.BinaryArgs(input=x, other=x, result=result, alfa=2.0)
    with pytest.raises(bk.InvalidProblem, match="alpha has the wrong type: got str, wanted a number"):
        bk.BinaryArgs(input=x, other=x, result=result, alpha="2")
    verdict = plan.can_implement(bk.BinaryArgs(input=x, other=2.0, result=result, alpha=2.0))
    assert [(reason.code, reason.where) for reason in verdict.reasons] == [(ReasonCode.UNEXPECTED_OPERAND, "alpha")]
    verdict = plan.can_implement(bk.BinaryArgs(input=2.0, other=x, result=result))
    assert {reason.where for reason in verdict.reasons} == {"input", "other"}
    integers = bk.BinaryPlan.select(STREAM, bk.BinaryDescriptor(BINARY.MUL, (3, 5), E.I8, other_value=1.0))
    x, result = x.to(torch.int8), result.to(torch.int8)
    with pytest.raises(bk.InvalidProblem, match="an integer from -128 to 127"):
        integers.run(STREAM, bk.Workspace.none(), bk.BinaryArgs(input=x, other=128, result=result))
    assert "other=2.0" in repr(bk.BinaryArgs(input=x, other=2, result=result))


def test_numbers_of_a_fused_plan() -> None:
    x, result = tensor(3, 5), torch.empty(3, 5, device=WHERE)
    plan = bk.fuse(lambda x: x * 2.0 + 0.5).select(x)
    args = bk.FusedArgs(input0=x, result=result, number0=4.0)
    plan.run(STREAM, bk.Workspace.none(), args)
    torch.testing.assert_close(result, x * 4 + 0.5, rtol=0, atol=0)


def test_bodies_for_cuda_take_them_at_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    asked = bk.PlanPreference(bk.BackendKind.TRITON)
    x, y = tensor(3, 5), tensor(3, 5) + 1
    plan = bk.BinaryPlan.select(STREAM, bk.BinaryDescriptor(BINARY.ADD, (3, 5), E.F32), asked)
    for alpha in (1.0, 0.5, -0.0, 1e-40):
        torch.testing.assert_close(run(plan, torch.empty_like(x), input=x, other=y, alpha=alpha), x + alpha * y, rtol=0, atol=0)
    plan = bk.BinaryPlan.select(STREAM, bk.BinaryDescriptor(BINARY.MUL, (3, 5), E.F32, input_value=1.0), asked)
    torch.testing.assert_close(run(plan, torch.empty_like(x), input=0.1, other=y), 0.1 * y, rtol=0, atol=0)


def test_machine_code_for_a_gpu_takes_them_as_words() -> None:
    pytest.importorskip("triton")
    from baracuda_kernels.targets.cuda.formulas.elementwise import calls
    from baracuda_kernels.targets.cuda.runtime.triton_launch import Given

    problem = bk.BinaryDescriptor(BINARY.ADD, (64,), E.F32)
    (call,) = calls(problem.program, problem.shape, [(1,)] * 3, None)
    assert [leaf for leaf in call.flat() if isinstance(leaf, Given)] == [Given(3)]
    assert call.signature()["numbers"] == ("i64",)


def test_threads_do_not_disturb_each_other() -> None:
    """Also where a call is shared among threads of its own."""
    wrong: list[float] = []
    arrays = [tensor(4, 9), tensor(500, 1000)]

    def work(first: int) -> None:
        for number in range(first, first + 40):
            for x in arrays:
                if not torch.equal(bk.mul(x, float(number)), x * float(number)):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(1000 * place,)) for place in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
