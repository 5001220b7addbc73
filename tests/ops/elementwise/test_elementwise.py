"""The ops on elements through their plans: every row in every element against the reference, and every half against the exact result."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F

import baracuda_kernels as bk
from baracuda_kernels import functional
from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.verify.accuracy import ALLOWED, AccuracyQuestion, Measured, measure, measured_ops, worst
from baracuda_kernels.verify.trial import random_inputs, run_trial

import conftest
from conftest import DEVICE, STREAM
from covering import one_of_each

PLANS = (
    bk.UnaryPlan, bk.BinaryPlan, bk.TernaryPlan, bk.GatedActivationPlan, bk.UnaryBackwardPlan, bk.BinaryBackwardPlan,
    bk.TernaryBackwardPlan, bk.GatedActivationBackwardPlan,
)  # fmt: skip
close = functools.partial(torch.testing.assert_close, rtol=1e-14, atol=1e-14)  # of f64
KINDS = [
    pytest.param(plan, kind, id=f"{plan.__name__}-{kind.value}")
    for plan in PLANS
    for kind in plan.descriptor_type.KINDS
    if plan.descriptor_type.TABLE[kind.value].differentiable or not plan.descriptor_type.IS_BACKWARD
]


@functools.cache
def _tried(plan: Any) -> list[tuple[Any, E]]:
    """Every row in every element; unless everything is asked for every row in one or two, and every element in some row."""
    kinds = [kind for other, kind in (each.values for each in KINDS) if other is plan]
    rows = [(kind, element) for kind in kinds for element in plan.descriptor_type.TABLE[kind.value].elements]
    every = [(kind, element) for kind, element in rows if element.is_float or not plan.descriptor_type.IS_BACKWARD]
    values = [set(enumerate(each)) for each in every]
    few = {*one_of_each(values), *one_of_each(values, len(values) // 2)}
    return every if conftest.SLOW else [every[place] for place in sorted(few)]


def test_every_row_and_every_element_is_tried() -> None:
    for plan in PLANS:
        kinds, elements = (set(each) for each in zip(*_tried(plan), strict=True))
        assert kinds == {kind for other, kind in (each.values for each in KINDS) if other is plan}
        assert elements == {each for kernel in plan.kernels for each in kernel.elements}


@pytest.mark.parametrize(("plan", "kind"), KINDS)
def test_every_op_in_every_element(plan: Any, kind: Any, rng: numpy.random.Generator) -> None:
    for element in [element for other, element in _tried(plan) if other is kind]:
        descriptor = plan.descriptor_type(kind, (37, 5), element)
        chosen = plan.select(STREAM, descriptor)
        run_trial(chosen, random_inputs(plan, descriptor, rng), may_cancel=True)


@pytest.mark.parametrize("op", measured_ops())
@pytest.mark.parametrize("element", ALLOWED)
def test_single_results(op: str, element: E) -> None:
    """All halves, and many floats: as near to the exact result as it has to be."""
    found = measure(AccuracyQuestion(op, element, DEVICE, 40_000))
    assert found.holds, found


@pytest.mark.parametrize("element", [E.F32, E.F64, E.BF16])
@pytest.mark.parametrize(
    ("name", "rare"),
    [
        ("sin", (1e20, 0.0)),
        ("tan", (-3e30, 0.0)),
        ("fmod", (1e30, 3.0)),
        ("floor_divide", (7.0, 0.0)),
        ("remainder", (math.inf, 2.0)),
    ],
)
def test_who_asks_for_something_rare_changes_nothing_for_others(name: str, rare: tuple[float, float], element: E) -> None:
    """Bits of all others are as if it were not there, wherever among them it is, and its own as if it were alone."""
    dtype = {E.F32: torch.float32, E.F64: torch.float64, E.BF16: torch.bfloat16}[element]
    random = torch.Generator().manual_seed(1)
    operands = [torch.randn(700, generator=random, dtype=torch.float64).mul(9.0).to(dtype).to(str(DEVICE)) for _ in range(2)]
    operands = operands[:1] if name in ("sin", "tan") else operands
    function = getattr(functional, name)
    usual = function(*operands)
    alone = function(*(torch.full_like(each[:1], value) for each, value in zip(operands, rare, strict=False)))
    for place in (0, 17, 255, 699):
        changed = [each.clone() for each in operands]
        for each, value in zip(changed, rare, strict=False):
            each[place] = value
        found, wanted = function(*changed), usual.clone()
        wanted[place] = alone[0]
        assert torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))


def test_results_that_are_off_are_noticed() -> None:
    """By an ulp too many, and by an infinity where none should be."""
    exact = numpy.array([1.0, 2.0, 3.0])
    assert worst(numpy.array([1.0, 2.0 + 5 * 2.0**-22, 3.0]), exact, exact, E.F32) == (5.0, 2.0, 0)
    assert worst(numpy.array([1.0, math.inf, math.nan]), exact, exact, E.F32).misplaced == 2
    assert not Measured("exp", "f32", 3, 4.5, 2.0, 0).holds and not Measured("exp", "f32", 3, 0.5, 2.0, 1).holds


# --- functions -------------------------------------------------------------------------------------------------------------------


def test_functions_broadcast() -> None:
    a, b = numpy.arange(12, dtype=numpy.float32).reshape(3, 4), numpy.float32([[1], [10], [100]])
    numpy.testing.assert_array_equal(bk.add(a, b), a + b)
    numpy.testing.assert_array_equal(bk.mul(b[:, 0, None, None], a), b[:, 0, None, None] * a)
    out = numpy.empty((3, 4), numpy.float32)
    assert bk.maximum(a, b, out=out) is out and (out == numpy.maximum(a, b)).all()


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(bk.InvalidProblem, match=r"other.*\(5,\)"):
        bk.add(numpy.zeros((3, 4), numpy.float32), numpy.zeros(5, numpy.float32))


def test_elements_that_do_not_fit() -> None:
    with pytest.raises(bk.Error, match="other"):
        bk.add(numpy.zeros(3, numpy.float32), numpy.zeros(3, numpy.float64))
    with pytest.raises(bk.Unsupported, match="bitwise_and"):
        bk.bitwise_and(numpy.zeros(3, numpy.float32), numpy.zeros(3, numpy.float32))


def test_parameters() -> None:
    x = numpy.float32([-2, 3])
    numpy.testing.assert_array_equal(bk.leaky_relu(x, negative_slope=0.5), numpy.float32([-1, 3]))
    numpy.testing.assert_array_equal(bk.leaky_relu(x, 0.25), numpy.float32([-0.5, 3]))
    with pytest.raises(bk.InvalidProblem, match="parameters"):
        bk.UnaryDescriptor(bk.UnaryKind.LEAKY_RELU, (2,), E.F32, (1.0, 2.0))


def test_gradients_of_broadcast_operands() -> None:
    import baracuda_kernels.torch as bt

    a, b = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: bt.mul(a, b), (a, b))
    assert torch.autograd.gradcheck(lambda a: bt.tanh(a), (a,))


# --- gated activations ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [-1, 1, 0])
def test_halves_of_one_tensor(dim: int) -> None:
    import baracuda_kernels.torch as bt

    x = torch.randn(4, 6, 8, dtype=torch.float64, requires_grad=True)
    whole = x.detach()
    expected = torch.nn.functional.glu(whole, dim)
    for found in (bk.glu(whole, dim), bk.glu(whole, dim=dim), bk.glu(input=whole, dim=dim), bk.glu(*whole.chunk(2, dim))):
        close(found, expected)
    close(torch.from_numpy(bk.glu(whole.numpy(), dim)), expected)
    first, second = whole.chunk(2, dim)
    close(bk.swiglu(whole, dim), torch.nn.functional.silu(first) * second)
    assert torch.autograd.gradcheck(lambda x: bt.geglu(x, dim), (x,))
    compiled = torch.compile(lambda x: bt.glu(x, dim), backend="aot_eager", fullgraph=True)
    close(compiled(x), expected)


@pytest.mark.parametrize(("name", "activation"), [("swiglu", F.silu), ("geglu", F.gelu), ("reglu", F.relu)])
def test_the_gate_is_what_is_activated(name: str, activation: Any) -> None:
    import baracuda_kernels.torch as bt

    gate, up = torch.randn(2, 3, 4, dtype=torch.float64)
    for module in (bk, bt):
        call, backward = getattr(module, name), getattr(module, f"{name}_backward")
        for found in (call(gate, up), call(gate=gate, up=up), call(up=up, gate=gate), call(torch.cat((gate, up), -1))):
            close(found, activation(gate) * up)
        wrong: list[Any] = [
            lambda: call(input=gate, gate=up),  # noqa: B023
            lambda: call(gate=up, input=gate),  # noqa: B023
            lambda: call(gate, gate=up),  # noqa: B023
            lambda: call(input=torch.cat((gate, up), -1)),  # noqa: B023
            lambda: backward(up, gate, gate=up),  # noqa: B023
            lambda: backward(up, input=gate, gate=up),  # noqa: B023
        ]
        for former in wrong:
            with pytest.raises(bk.InvalidProblem, match=r"a former name, wanted (gate=|up=), as it is called now"):
                former()
    with pytest.raises(bk.InvalidProblem, match="d_input is not an operand"):
        bk.swiglu_backward(up, gate, up, out={"d_input": gate.clone(), "d_gate": gate.clone()})
    with pytest.raises(TypeError, match="multiple values for argument 'input'"):
        bk.glu(gate, input=up)


def test_halves_are_views() -> None:
    x = numpy.ones((64, 128), numpy.float32)
    ((first, second), _) = bk.glu.spread((x,), {})
    assert numpy.shares_memory(first, x) and numpy.shares_memory(second, x) and first.shape == second.shape == (64, 64)


def test_halves_that_make_no_sense() -> None:
    x = numpy.ones((3, 4), numpy.float32)
    with pytest.raises(bk.InvalidProblem, match=r"input has the wrong shape: got \(3, 4\), wanted an even extent along dim 0"):
        bk.glu(x, 0)
    with pytest.raises(bk.InvalidProblem, match="dim is not an axis"):
        bk.glu(x, dim=2)
    with pytest.raises(bk.InvalidProblem, match="gate must be left out"):
        bk.glu(x, x, dim=0)
    with pytest.raises(bk.InvalidProblem, match="input cannot be seen as an array"):
        bk.glu(3)


# --- fused formulas --------------------------------------------------------------------------------------------------------------


def test_a_fused_formula_is_one_kernel() -> None:
    gated = bk.fuse(lambda x, y: bk.gelu(x) * y + 1)
    x, y = torch.randn(64, 33), torch.randn(33)
    torch.testing.assert_close(gated(x, y), torch.nn.functional.gelu(x) * y + 1)
    assert gated.select(x, y).kernel.name in ("llvm.fused", "triton.fused")
    half = gated(x.bfloat16(), y.bfloat16())
    assert half.dtype is torch.bfloat16 and half.shape == (64, 33)
    torch.testing.assert_close(half, gated(x.bfloat16().float(), y.bfloat16().float()).bfloat16(), rtol=2**-7, atol=2**-14)


def test_functions_with_parameters_that_are_not_given_can_be_fused() -> None:
    x = numpy.float32([numpy.nan, numpy.inf, -1.5])
    replaced = bk.fuse(lambda x: bk.nan_to_num(x, nan=2.0) + bk.leaky_relu(bk.nan_to_num(x), negative_slope=0.5))
    numpy.testing.assert_array_equal(replaced(x)[[0, 2]], numpy.float32([2.0, -2.25]))


@pytest.mark.parametrize(
    "text",
    [
        "f32 -> f32 with 0\ninput f32 1\n0", "f32 -> f32 with 0\ninput f64 0\n0", "f32 -> f32 with 0\ninput f32 0\nfma f32 0\n1",
        "f32 -> f32 with 0\ninput f32 0\nbit_not f32 0\n1", "f32 -> f32 with 0\nparameter f64 0\n0", "f32 -> f32 with 0\nexec f32 0\n0",
        "f32 -> f32 with 0\ninput f32 0\nconvert i32 0\nadd f32 0 1\n2",
    ],
)  # fmt: skip
def test_a_program_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(bk.InvalidProblem, match="formula"):
        bk.FusedDescriptor(text, (3,), E.F32)


def test_what_cannot_be_fused() -> None:
    with pytest.raises(bk.InvalidProblem, match="1 to 8"):
        bk.fuse(lambda: 1.0)
    with pytest.raises(bk.InvalidProblem, match="a Python function"):
        bk.fuse(3)
    with pytest.raises(TypeError, match="no branches"):
        bk.fuse(lambda x: x if x > 0 else -x)
    with pytest.raises(bk.InvalidProblem, match="formula"):
        bk.FusedDescriptor("nonsense", (3,), E.F32)
    doubled = bk.fuse(lambda x: x + x)
    with pytest.raises(bk.InvalidProblem, match="f32 or f64"):
        doubled(numpy.arange(3))
    assert math.isclose(float(doubled(numpy.float32([1.5]))[0]), 3.0)


@pytest.mark.parametrize("exponent", [-3, 0, 1, 2, 3, 4, 5, 2.5, float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_powers_that_are_products_and_others(exponent: float, dtype: torch.dtype) -> None:
    """To all elements alike; of an exponent that is no integer too, as `pow` has it."""
    x = torch.tensor([-math.inf, -3.0, -0.5, -0.0, 0.0, 0.3, 1.0, 2.0, 7.0, math.inf, math.nan], dtype=dtype)
    wanted = torch.pow(x.double(), exponent).to(dtype)
    near = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(bk.integer_pow(x, exponent), wanted, rtol=near, atol=0, equal_nan=True)
    assert torch.equal(bk.integer_pow(x, exponent).signbit()[~wanted.isnan()], wanted.signbit()[~wanted.isnan()])
