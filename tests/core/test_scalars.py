"""Numbers in place of arrays, the choice between arrays and numbers, and the names that functions have for operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.ops.elementwise.tables import BINARY, TERNARY

from conftest import DEVICE

WHERE = str(DEVICE)
E = bk.ElementKind
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64) * 5 + 1
    return values.to(WHERE, dtype)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "atan2", "gt", "fmod", "pow"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_a_number_is_a_tensor_of_it(name: str, dtype: torch.dtype) -> None:
    if E.of(dtype) not in BINARY[name].elements:
        pytest.skip("no op of this element")
    x, number = tensor(37, 5, dtype=dtype), 2.5 if dtype.is_floating_point else 3
    full = torch.full_like(x, number)
    function = getattr(bk, name)
    torch.testing.assert_close(function(x, number), function(x, full), rtol=0, atol=0)
    torch.testing.assert_close(function(number, x), function(full, x), rtol=0, atol=0)
    assert function.select(x, number).descriptor.other_value == number


def test_numbers_are_not_rounded_to_halves() -> None:
    """As in PyTorch they stand beside halves in the f32 that these are computed in."""
    x = torch.ones(3, dtype=torch.bfloat16)
    torch.testing.assert_close(bk.mul(x, 1.00390625 + 0.0001), x * (1.00390625 + 0.0001), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signs_of_large_powers_of_negative_numbers(dtype: torch.dtype) -> None:
    """That are no halves, and odd, even or no integers, where f32 has room for halves no more, or barely."""
    x = torch.tensor([-1.0], dtype=dtype, device=WHERE)
    for power, wanted in ((4194305, -1.0), (4194306, 1.0), (4194304.5, float("nan")), (2.0**23 + 1, -1.0), (2.0**24 + 2, 1.0)):
        assert repr(bk.pow(x, float(power)).item()) == repr(wanted)
    to_an_odd_power = bk.fuse(lambda x, y: bk.pow(x, y * 4194304.0 + 1.0))
    assert to_an_odd_power(x, torch.ones_like(x)).item() == -1.0


def test_both_bounds_of_a_clamp() -> None:
    x = tensor(31, 33)
    torch.testing.assert_close(bk.clamp(x, 2, 4.5), x.clamp(2, 4.5), rtol=0, atol=0)
    torch.testing.assert_close(bk.clamp(x, max=tensor(33), min=2.0), torch.clamp(x, x.new_tensor(2.0), tensor(33)), rtol=0, atol=0)
    torch.testing.assert_close(bk.lerp(x, tensor(33), weight=0.25), torch.lerp(x, tensor(33), 0.25))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_one_bound_of_a_clamp(dtype: torch.dtype) -> None:
    edge = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    x = torch.cat([tensor(37, dtype=dtype), torch.tensor([edge.min, edge.max], dtype=dtype, device=WHERE)])
    if dtype.is_floating_point:
        x = torch.cat([x, x.new_tensor([-torch.inf, torch.inf, torch.nan, -0.0])])
    for bound in (3, x.new_tensor(3)):
        for side in ("min", "max"):
            expected = torch.clamp(x, **{side: bound})
            torch.testing.assert_close(bk.clamp(x, **{side: bound}), expected, rtol=0, atol=0, equal_nan=True)
    if dtype.is_floating_point:
        found, expected = (x.clone().requires_grad_() for _ in range(2))
        bt.clamp(found, max=3.0).sum().backward()
        torch.clamp(expected, max=3.0).sum().backward()
        torch.testing.assert_close(found.grad, expected.grad, rtol=0, atol=0)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_rounding_modes_of_a_quotient(mode: str | None, dtype: torch.dtype) -> None:
    if mode is None and not dtype.is_floating_point:
        pytest.skip("the quotient of integers is no integer")
    x, y = (tensor(37, dtype=dtype) * 5 * sign for sign in (1, 1 if dtype is torch.uint8 else -1))
    y = y.roll(5)
    found, expected = bk.div(x, y, rounding_mode=mode), torch.div(x.double(), y.double(), rounding_mode=mode)
    torch.testing.assert_close(found, expected.to(dtype))
    torch.testing.assert_close(bk.div(x, 3, rounding_mode=mode), torch.div(x.double(), 3, rounding_mode=mode).to(dtype))
    if dtype.is_floating_point:
        x.requires_grad_()
        (slope,) = torch.autograd.grad(bt.div(x, y, rounding_mode=mode).sum(), x)
        torch.testing.assert_close(slope, 1 / y if mode is None else torch.zeros_like(x))


@pytest.mark.parametrize("number", [numpy.float32(0.5), numpy.float64(-0.0), numpy.int64(3), Fraction(1, 4)], ids=repr)
def test_numbers_of_numpy_are_taken_whoever_watches(number: Any) -> None:
    x = torch.linspace(-2, 2, 6).view(2, 3)
    expected = bt.copysign(x, number)
    found = [torch.vmap(lambda row: bt.copysign(row, number))(x)]
    with torch.autocast("cpu", torch.bfloat16):
        found.append(bt.copysign(x, number))
    assert all(torch.equal(each, expected) for each in found)
    axis = numpy.int64(0)
    assert torch.equal(torch.vmap(lambda row: bt.sum(row, axis))(x), bt.sum(x, axis + 1))


def test_numbers_of_numpy() -> None:
    x = numpy.arange(4, dtype=numpy.int32)
    assert bk.add(x, numpy.int64(2), alpha=3).tolist() == [6, 7, 8, 9]
    assert bk.mul(numpy.float32(0.5), x.astype(numpy.float32)).tolist() == [0.0, 0.5, 1.0, 1.5]


REFUSED: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: bk.add(numpy.arange(3), 2.5), r"add: other has the wrong dtype.*float 2\.5.*an integer beside i64"),
    (lambda: bk.add(2.0, numpy.arange(3)), r"add: input has the wrong dtype.*float 2\.0"),
    (lambda: bk.add(numpy.uint8([1]), 300), r"other is out of range: got 300.*from 0 to 255"),
    (lambda: bk.add(numpy.arange(3), 2**53), "other is out of range"),
    (lambda: bk.logical_and(numpy.array([True]), 1), "other has the wrong dtype.*a bool beside bool"),
    (lambda: bk.add(2, 3), "input is missing: got numbers alone"),
    (lambda: bk.add(numpy.zeros(3), None), "other is missing"),
    (lambda: bk.clamp(numpy.float32([1]), numpy.zeros(1), 1), "min has the wrong dtype: got f64, wanted f32"),
    (lambda: bk.clamp(numpy.zeros(3)), r"(?s)min is missing.*max is missing"),
    (lambda: bk.clamp(numpy.arange(3), 0.5), r"min has the wrong dtype.*float 0\.5"),
    (lambda: bk.div(numpy.zeros(3), 2.0, rounding_mode="up"), "rounding_mode is out of range: got 'up', wanted None or 'trunc'"),
    (lambda: bk.add(numpy.zeros(3), "2"), "other cannot be seen as an array"),
    (lambda: bk.where(numpy.array([True]), 1, 2), "input is missing: got numbers alone"),
    (lambda: bk.where(numpy.array([True]), numpy.zeros(1), None), "other is missing"),
    (lambda: bk.where(numpy.zeros(1), numpy.zeros(1), 1), "condition has the wrong dtype: got f64, wanted bool"),
    (lambda: bk.where(numpy.array([True]), numpy.arange(1), 0.5), r"other has the wrong dtype.*float 0\.5"),
    (lambda: bk.BinaryDescriptor(bk.BinaryKind.ADD, (3,), E.I8, other_value=0.5), "other_value is out of range"),
    (lambda: bk.BinaryDescriptor(bk.BinaryKind.ADD, (3,), E.F32, (), 1.0, 2.0), "input_value does not fit"),
)


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(bk.InvalidProblem, match=says):
        call()


def test_a_plan_runs_without_the_operand_that_is_a_number() -> None:
    x, result = tensor(31, 33), torch.empty(31, 33, device=WHERE)
    stream = bk.Stream.of(x)
    descriptor = bk.BinaryDescriptor(bk.BinaryKind.MUL, (31, 33), E.F32, other_value=3.0)
    plan = bk.BinaryPlan.select(stream, descriptor)
    plan.run(stream, bk.Workspace.none(), bk.BinaryArgs(input=x, result=result))
    torch.testing.assert_close(result, x * 3, rtol=0, atol=0)
    with pytest.raises(bk.InvalidProblem, match="other must be left out"):
        plan.run(stream, bk.Workspace.none(), bk.BinaryArgs(input=x, other=x, result=result))


# --- gradients ---------------------------------------------------------------------------------------------------------------------


CALLS: dict[str, Callable[..., Any]] = {
    "mul": lambda x: bt.mul(3, x),
    "add": lambda x: bt.add(x, 2.0, alpha=0.5),
    "pow": lambda x: bt.pow(x, 2),
    "clamp": lambda x: bt.clamp(x, 2, 4),
    "where": lambda x: bt.where(x > 3, x, 0.0),
    "where_of_numbers_first": lambda x: bt.where(x > 3, -1, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_beside_numbers(name: str) -> None:
    assert torch.autograd.gradcheck(CALLS[name], (tensor(3, 4, dtype=torch.float64).requires_grad_(),))


def test_compiled() -> None:
    x = tensor(5, 3).requires_grad_()
    compiled = torch.compile(lambda x, number: bt.where(x > number, bt.mul(number, x), 0.0), backend="aot_eager", fullgraph=True)
    for number in (2, 2.5, 3.5):
        result = compiled(x, number)
        torch.testing.assert_close(result, torch.where(x > number, number * x, 0.0))
        torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], torch.where(x > number, number, 0.0).to(x.dtype))


def test_gradients_in_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(3.0)
    found = jax.jit(jax.grad(lambda x: bk.where(jax.numpy.array([[True], [False]]), bk.mul(3, x), 0.0).sum()))(x)
    numpy.testing.assert_array_equal(found, [3.0, 3.0, 3.0])


# --- where -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], ids=str)
def test_where(dtype: torch.dtype) -> None:
    condition, x, y = tensor(7, 1, 5) > 3, tensor(3, 5, dtype=dtype), tensor(7, 3, 1, dtype=dtype)
    torch.testing.assert_close(bk.where(condition, x, y), torch.where(condition, x, y), rtol=0, atol=0)
    number = True if dtype is torch.bool else 2
    torch.testing.assert_close(bk.where(condition, number, y), torch.where(condition, number, y), rtol=0, atol=0)


def test_what_is_not_chosen_does_not_show() -> None:
    x = torch.tensor([numpy.nan, -0.0, 1.0, numpy.inf], device=WHERE)
    condition = torch.tensor([False, True, True, False], device=WHERE)
    found = bk.where(condition, x, 0.0)
    assert found.tolist() == [0.0, 0.0, 1.0, 0.0] and torch.signbit(found).tolist() == [False, True, False, False]
    d_input, d_other = bk.where_backward(condition, x)
    assert d_input.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert numpy.isnan(d_other[0].item()) and d_other[1:].tolist() == [0.0, 0.0, numpy.inf]
    _, d_other = bk.where_backward(~condition, x)  # of what was not taken: 0 whatever the gradient is
    assert d_other.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_gradients_of_both_are_summed_where_they_were_broadcast() -> None:
    condition = tensor(3, 4) > 3
    x, y = (tensor(*shape, dtype=torch.float64).requires_grad_() for shape in ((3, 1), (4,)))
    assert torch.autograd.gradcheck(lambda x, y: bt.where(condition, x, y), (x, y))


# --- names -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [row for row in (*BINARY.values(), *TERNARY.values()) if row.operands], ids=lambda row: row.name)
def test_operands_by_their_names(row: Any) -> None:
    given = dict(zip(row.operands, (tensor(3), tensor(3) / 8, tensor(3) / 7), strict=False))
    by_name = getattr(bt, row.name)(**{name: each.clone().requires_grad_(row.differentiable) for name, each in given.items()})
    torch.testing.assert_close(by_name.detach(), getattr(bk, row.name)(*given.values()), rtol=0, atol=0, equal_nan=True)
    if row.differentiable:
        by_name.sum().backward()
    with pytest.raises(bk.InvalidProblem, match=f"{row.operands[-1]} has the wrong dtype"):
        getattr(bk, row.name)(**given | {row.operands[-1]: torch.zeros(3, dtype=torch.int64, device=WHERE)})


# --- vmap --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_dims", [(0, None), (None, 1), (1, 0)])
def test_a_batch_is_one_call(in_dims: Any) -> None:
    x, y = tensor(4, 4, 4), tensor(4, 4)
    calls: list[Any] = []

    class Counted(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, kinds: Any, given: Any = (), named: Any = None) -> Any:
            calls.append(str(function))
            return function(*given, **(named or {}))

    with Counted():
        found = torch.vmap(lambda x, y: bt.mul(bt.where(x > 3, x, 0.0), y), in_dims)(x, y)
    torch.testing.assert_close(found, torch.vmap(lambda x, y: torch.where(x > 3, x, 0.0) * y, in_dims)(x, y))
    assert [call for call in calls if "baracuda" in call] == ["baracuda.where.default", "baracuda.mul.default"]


def test_gradients_of_a_batch() -> None:
    x, y = tensor(5, 3, dtype=torch.float64), tensor(2, 1, dtype=torch.float64)

    def ours(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return bt.sin(bt.mul(x, y)).sum()

    found = torch.vmap(torch.func.grad(ours, (0, 1)), (0, None))(x, y)
    expected = torch.vmap(torch.func.grad(lambda x, y: torch.sin(x * y).sum(), (0, 1)), (0, None))(x, y)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_an_integer_past_every_float_is_refused() -> None:
    with pytest.raises(bk.InvalidProblem, match=r"other.*larger integer.*f64"):
        bk.add(tensor(3), 10**400)


@pytest.mark.parametrize(("dtype", "least"), [(torch.float32, -126), (torch.float64, -1022)], ids=str)
def test_scaling_by_powers_of_two_is_exact_next_to_the_smallest_numbers(dtype: torch.dtype, least: int) -> None:
    """Where the result is a normal number, whatever sizes it passes on the way."""
    powers = torch.arange(-9, 10, dtype=dtype, device=WHERE)
    unit = torch.tensor(1.0 + torch.finfo(dtype).eps, dtype=dtype, device=WHERE)
    near = torch.pow(torch.tensor(2.0, dtype=torch.float64), least + powers.double().abs().cpu()).to(WHERE, dtype) * unit
    factors = torch.pow(
        torch.tensor(2.0, dtype=torch.float64), powers.double().cpu()
    )  # which a GPU's pow is not always exact about
    wanted = (near.double() * factors.to(WHERE)).to(dtype)
    assert torch.equal(bk.ldexp(near, powers), wanted)


# --- rounding to decimals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [0, 1, 2, 7, -1, -3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_decimals_as_numpy(decimals: int, dtype: torch.dtype) -> None:
    """In f64, so that f32 is rounded as its number is, and not as its product with a power of ten is."""
    x = (torch.randn(999, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 1000).to(dtype)
    wanted = torch.from_numpy(numpy.round(x.double().numpy(), decimals)).to(dtype)
    assert torch.equal(bk.round(x, decimals=decimals), wanted)
    fused = bk.fuse(lambda x: bk.round(x, decimals=decimals) * 1)
    # Of f32 the product with a power of ten is rounded, in the middle between two to the other of them.
    off = (fused(x).double() - wanted.double()).abs() - 2 * torch.finfo(dtype).eps * wanted.double().abs()
    assert (off <= 0).double().mean() > 0.99 and (off <= 10.0**-decimals).all()


def test_decimals_at_the_edges() -> None:
    """Where a power of ten would be infinite, a number stays, or is none of it."""
    x = torch.tensor([1e300, -1e-300, math.inf, -math.inf, math.nan, 2.5], dtype=torch.float64)
    assert torch.equal(bk.round(x, decimals=300)[[0, 2, 3]], x[[0, 2, 3]])
    assert bk.round(x, decimals=-301).nan_to_num(7.0, math.inf, -math.inf).tolist() == [0, 0, math.inf, -math.inf, 7, 0]
    assert torch.equal(bk.round(x, decimals=numpy.int64(300))[[0, 2, 3]], x[[0, 2, 3]])
    for wrong in (1.5, True, 512, "2"):
        with pytest.raises(bk.InvalidProblem, match="decimals is out of range"):
            bk.round(x, decimals=wrong)
    with pytest.raises(bk.Unsupported, match="got i32"):
        bk.round(torch.ones(3, dtype=torch.int32), decimals=-1)
    given = x[5:].clone().requires_grad_()
    bt.round(given, decimals=1).backward(torch.ones(1, dtype=torch.float64))
    assert given.grad.tolist() == [0.0]
