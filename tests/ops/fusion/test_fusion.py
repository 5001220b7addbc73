"""Formulas of the caller's: through PyTorch, with their gradients, and the numbers that stand in them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry
from baracuda_kernels.formula import expression
from baracuda_kernels.formula.expression import MOST_NUMBERS, Expr, constant
from baracuda_kernels.formula.operations import where
from baracuda_kernels.targets.cpu.llvm import elementwise_launch

from conftest import DEVICE, STREAM
from torch_calls import WHERE

close = functools.partial(torch.testing.assert_close, rtol=1e-13, atol=1e-13)  # of f64


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
        close(found, wanted)


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
        close(torch.vmap(fused, axes)(*shapes), torch.vmap(in_torch, axes)(*shapes))
    found, wanted = (torch.func.grad(lambda *given, f=each: f(*given).sum(), (0, 1))(x, y) for each in (fused, in_torch))
    close(found, wanted)


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
    for wrong in (3, torch.tanh, bk.tanh):
        with pytest.raises(bk.InvalidProblem, match="wanted a Python function of its operands"):
            bt.fuse(wrong)  # type: ignore[arg-type] # as it may be called


# --- numbers -----------------------------------------------------------------------------------------------------------------------

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TELLING = ((0.37, 3, 1e-40), (0.0, -0.0, math.inf), (math.nan, 1.0, -math.inf), (0.1, 1e-31, 1e33), (5e-324, True, -1.0))


def many(x: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    """Where a compiler would fold what it knows of a number, and where libraries choose by it."""
    chosen = where(x > a, x * b + c, a - y) + bk.leaky_relu(y, a) * bk.clamp(x, b, c) + bk.softplus(y, beta=2.0)
    return (chosen * a * 1.0 + 0.0) / b - bk.pow(bk.abs(x), c) * -1.0 + a / (y * c + b) + bk.div(bk.exp(y * a), c) / 3.0


def compiled_in(*numbers: float) -> Callable[[Any, Any], Any]:
    """The formula with numbers that are written where nothing sees that they are the caller's."""
    return lambda x, y: many(x, y, *(constant(number, x.element) for number in numbers))


def given_at_launch(*numbers: float) -> Callable[[Any, Any], Any]:
    return lambda x, y: many(x, y, *numbers)


def values(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    edges = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, -1e-30, 1e30], dtype=torch.float64)
    x = torch.cat([torch.randn(200, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 3, edges]).to(WHERE, dtype)
    return x, x.flip(0) * 0.5


def same_bits(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(one.signbit() | one.isnan(), other.signbit() | other.isnan())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_change_no_bit_where_they_are_given_at_launch(dtype: torch.dtype) -> None:
    given = [each.requires_grad_() for each in values(dtype)]
    upstream = torch.linspace(-2, 2, len(given[0]), device=WHERE).to(dtype)
    for numbers in TELLING:
        results = []
        for made in (given_at_launch(*numbers), compiled_in(*numbers)):
            result = bt.fuse(made)(*given)
            results.append([result.detach(), *torch.autograd.grad(result, given, upstream)])
        same_bits(*results)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_same_in_triton(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    x, y = values(dtype)
    for numbers in TELLING:
        results = []
        for made in map(bk.fuse, (given_at_launch(*numbers), compiled_in(*numbers))):
            result, d_x, d_y = (torch.empty_like(x) for _ in range(3))
            forward, backward = (plan.force(plan.kernels[1].name, STREAM, problem) for plan, problem in problems(made, x, y))
            forward.run(STREAM, bk.Workspace.none(), bk.FusedArgs(input0=x, input1=y, result=result))
            arguments = bk.FusedBackwardArgs(d_result=y, input0=x, input1=y, d_input0=d_x, d_input1=d_y)
            backward.run(STREAM, bk.Workspace.none(), arguments)
            results.append((result, d_x, d_y))
        same_bits(*results)


def problems(fused: Any, *given: torch.Tensor) -> list[tuple[Any, Any]]:
    """The plans and problems of a call and of its gradients."""
    backward = fused.function.backward().function
    plans = (fused.select(*given), backward.select(fused.numbers, given[0], *given))
    return [(type(plan), plan.descriptor) for plan in plans]


def scaled_by(number: float) -> Callable[[Any], Any]:
    return lambda x: bk.gelu(x) * 0.37 + bk.exp(x / number) * number


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """The native functions that are asked for from now on."""
    found = {}

    def build(*arguments: Any) -> Any:
        function = original(*arguments)
        return found.setdefault(id(function), function)

    original = elementwise_launch.build
    monkeypatch.setattr(elementwise_launch, "build", build)
    return found


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="counts native functions")
def test_a_thousand_formulas_share_what_is_compiled(built: dict[int, Any]) -> None:
    """Both directions, and all that is remembered of them."""

    def kept() -> tuple[int, ...]:
        return len(built), len(expression._made), len(registry._functions)

    x = torch.randn(37, requires_grad=True)
    bt.fuse(scaled_by(0.75))(x).sum().backward()
    before = kept()
    assert before[0] == 2
    for number in numpy.linspace(-1, 1, 1000):
        x.grad = None
        result = bt.fuse(scaled_by(number))(x)
        result.sum().backward()
    assert kept() == before
    wanted = scaled_by_in_torch(x, 1.0)
    torch.testing.assert_close(result, wanted)
    torch.testing.assert_close(x.grad, torch.autograd.grad(wanted.sum(), x)[0])


def scaled_by_in_torch(x: torch.Tensor, number: float) -> torch.Tensor:
    return torch.nn.functional.gelu(x) * 0.37 + torch.exp(x / number) * number


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_machine_code_for_a_gpu_is_one_for_all_numbers(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is loaded once."""
    pytest.importorskip("triton")
    from baracuda_kernels.targets.cuda.formulas.elementwise import calls
    from baracuda_kernels.targets.cuda.runtime import compile, launcher

    compiled: list[Any] = []
    loaded: list[Any] = []

    def made(call: Any, *rest: Any) -> Any:
        compiled.append(call)
        return compile.Binary("made", f"{dtype} {len(compiled)}".encode(), 128, 0, "")

    def load(*binary: Any) -> Any:
        loaded.append(binary)
        return object()

    monkeypatch.setattr(compile, "_binaries", {})
    monkeypatch.setattr(compile, "_compile", made)
    monkeypatch.setattr(launcher, "driver", lambda: SimpleNamespace(load=load))
    monkeypatch.setattr(bk.Device, "profile", lambda self: SimpleNamespace(capability=(9, 0)))
    words = set()
    # Gradients of halves are multiplied by reciprocals, where there are any.
    numbers = (0.5, 2.0, 3) if dtype.itemsize == 2 else (0.5, 2.0, 3, -0.0, math.nan, 1e-40)
    for number in numbers:
        for _, problem in problems(bk.fuse(scaled_by(number)), values(dtype)[0].cpu()):
            count = len(problem.program.inputs) + len(problem.program.outputs)
            (call,) = calls(problem.program, problem.shape, [(1,)] * count, problem.numbers)
            words.add(tuple(call.words()))
            launcher.Queued(bk.Device.cuda(), call).get_ready()
    assert len(compiled) == len(loaded) == 2 and len(words) == 2 * len(numbers)


def test_a_number_is_what_it_was_when_the_formula_was_fused() -> None:
    x = torch.ones(3, device=WHERE, requires_grad=True)
    fused = [bt.fuse(lambda x: x * number) for number in (2.0, 3.0)]  # noqa: B023 - which is what happens to callers
    for each, wanted in zip(fused, (2.0, 3.0), strict=True):
        result = each(x)
        assert result.tolist() == [wanted] * 3 == torch.autograd.grad(result.sum(), x)[0].tolist()


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="counts native functions")
def test_places_and_not_values_tell_numbers_apart(built: dict[int, Any]) -> None:
    """The same number twice is no other formula than two numbers, but one zero is another function than the other."""
    x = numpy.float32([1.5, -2.0])
    for a, b in ((0.5, 0.25), (0.5, 0.5), (1.0, 0.0), (1.0, -0.0)):
        found = bk.fuse(two(a, b))(x)
        with numpy.errstate(divide="ignore"):
            numpy.testing.assert_array_equal(found, (x * numpy.float32(a) + numpy.float32(b)) / numpy.float32(b))
    assert len(built) == 1


def two(a: float, b: float) -> Callable[[Any], Any]:
    return lambda x: (x * a + b) / b


def test_more_numbers_than_a_launch_takes() -> None:
    def polynomial(x: Any) -> Any:
        total = x * 0.0
        for power in range(2 * MOST_NUMBERS):
            total = total * 0.5 + power
        return total

    x = torch.randn(5, dtype=torch.float64, device=WHERE)
    fused = bk.fuse(polynomial)
    assert len(fused.select(x).descriptor.numbers) == MOST_NUMBERS
    torch.testing.assert_close(fused(x), polynomial(x), rtol=0, atol=0)


def test_a_number_that_f32_has_no_room_for_is_infinite() -> None:
    x = torch.tensor([2.0, -2.0], device=WHERE)
    assert bk.fuse(lambda x: x * 1e300)(x).tolist() == [math.inf, -math.inf]


def test_numbers_that_depend_on_the_element() -> None:
    def least(x: Any) -> Any:
        return x * 0 + (1e-3 if x.element is bk.ElementKind.F64 else 0.25) + 1

    for dtype, wanted in ((torch.float64, 1.001), (torch.float32, 1.25), (torch.float16, 1.25)):
        assert bk.fuse(least)(torch.ones(1, dtype=dtype, device=WHERE)).item() == wanted


def test_integers_that_decide_what_is_computed_are_none() -> None:
    x = torch.randn(5, device=WHERE)
    fused = bk.fuse(lambda x: bk.round(bk.integer_pow(x, 3), decimals=2) + bk.leaky_relu(x) + bk.nan_to_num(x, nan=1.5))
    assert fused.select(x).descriptor.numbers == (1.5,)
    torch.testing.assert_close(fused(x), torch.round(x**3, decimals=2) + torch.nn.functional.leaky_relu(x) + x)


def test_each_compiled_by_itself() -> None:
    """More than `torch.compile` allows of one function."""
    torch.compiler.reset()
    x = torch.randn(7, device=WHERE, requires_grad=True)
    for place in range(12):
        fused = bt.fuse(scaled_by(1 + place))
        found = torch.compile(fused, fullgraph=True, backend="aot_eager")(x)
        assert torch.equal(found, fused(x))
        torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x)[0] for each in (found, fused(x))), rtol=0, atol=0)
    torch.compiler.reset()


def test_in_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(1.0, 4.0)
    for number in (2.0, -0.0, 3.0):
        fused = bk.fuse(two(number, 2.0))
        found = jax.jit(jax.value_and_grad(lambda x, fused=fused: fused(x).sum()))(x)
        assert [float(found[0]), *map(float, found[1])] == [3 * number + 3, *[number / 2] * 3]


def test_numbers_that_are_none_are_refused() -> None:
    x = torch.ones(3, device=WHERE)
    function = bk.fuse(two(1.0, 2.0)).function
    for wrong in ("", "0x1p+0;;;", "1.0 2.0 nonsense", "0x1p+0"):
        with pytest.raises(bk.InvalidProblem, match=r"numbers is out of range: .*wanted 3, 3, 3, 3 numbers for f32"):
            function(wrong, x)
    descriptor = bk.fuse(two(1.0, 2.0)).select(x).descriptor
    with pytest.raises(bk.InvalidProblem, match="numbers is out of range: got 2 numbers, wanted 3, one for each parameter"):
        bk.FusedDescriptor(descriptor.formula, (3,), bk.ElementKind.F32, (1.0, 2.0))


def test_what_is_computed_within_a_formula_is_none_of_it() -> None:
    """Kernels that are made in the meantime have all their constants."""
    weights = torch.linspace(-3, 3, 11, device=WHERE)

    def weighted(x: Expr) -> Any:
        return x * float(bk.erfinv(weights / 4).sum() + bk.mish(weights).mean())

    number = float(bk.erfinv(weights / 4).sum() + bk.mish(weights).mean())
    assert bk.fuse(weighted).select(weights).descriptor.numbers == (number,)
