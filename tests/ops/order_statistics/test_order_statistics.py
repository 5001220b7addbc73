"""Order statistics: values beside NumPy and PyTorch, ties, NaN, both zeros, errors, gradients; and longer lines on CUDA, interpreted."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bkt
from baracuda_kernels.core import registry
from baracuda_kernels.verify.trial import random_inputs, run_trial

from conftest import DEVICE, STREAM

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
NAN = math.nan


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8"])
def test_medians_and_modes_beside_pytorch(dtype: str, rng: numpy.random.Generator) -> None:
    low = 0 if dtype == "uint8" else -40
    x = rng.integers(low, 40, (7, 40, 3)).astype(dtype)
    given = torch.from_numpy(x)
    for axis in (0, 1, -1):
        values, indices = bk.median(x, axis)
        assert (values == torch.median(given, axis).values.numpy()).all()
        assert (numpy.take_along_axis(x, numpy.expand_dims(indices, axis), axis).squeeze(axis) == values).all()
        values, indices = bk.mode(x, axis)
        expected = torch.mode(given, axis)
        assert (values == expected.values.numpy()).all()
        if x.shape[axis] <= 16:  # PyTorch sorts longer lines in an order of its own
            assert (indices == expected.indices.numpy()).all()
    assert bk.median(x) == torch.median(given).item()


def test_limits_of_integers_are_like_other_numbers() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    x = numpy.array([[most, least, 0, most, most], [least, least, 5, most, 0]])
    assert bk.median(x, 1)[0].tolist() == [most, 0]
    assert [found.tolist() for found in bk.mode(x)] == [[most, least], [4, 1]]
    assert bk.median(numpy.array([255, 0, 128], numpy.uint8)) == 128


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("q", [0.0, 1.0, 0.3, (0.5,), (0.9, 0.1, 0.5, 0.25)])
def test_quantiles_beside_pytorch(q: Any, interpolation: str, rng: numpy.random.Generator) -> None:
    x = rng.standard_normal((5, 41, 3))
    x[rng.random(x.shape) < 0.01] = NAN
    given, pytorch_q = torch.from_numpy(x), torch.tensor(q, dtype=torch.float64)
    for axis, keepdim in ((1, False), (0, True), (None, False)):
        for ours, theirs in ((bk.quantile, torch.quantile), (bk.nanquantile, torch.nanquantile)):
            expected = theirs(given, pytorch_q, axis, keepdim, interpolation=interpolation).numpy()
            found = ours(x, q, axis, keepdim, interpolation=interpolation)
            assert found.shape == expected.shape
            numpy.testing.assert_allclose(found, expected, rtol=1e-14)
    percent = tuple(100 * each for each in q) if isinstance(q, tuple) else 100 * q
    numpy.testing.assert_allclose(bk.nanpercentile(x, percent, 1), bk.nanquantile(x, q, 1), rtol=1e-12)


def test_a_line_of_any_length_has_its_median(rng: numpy.random.Generator) -> None:
    """Past what is sorted by insertion, past a block of comparisons, and with keys whose digits are the same."""
    for count in (1, 2, 31, 32, 33, 63, 64, 65, 127, 1000, 4097):
        for x in (rng.standard_normal(count), numpy.full(count, -2.5), rng.integers(0, 3, count) / 7, 1e300 * rng.random(count)):
            order = numpy.argsort(x, kind="stable")
            value, index = bk.median(x, return_indices=True)
            assert index == order[(count - 1) // 2] and value == x[index]
            several = bk.quantile(x, (0.0, 0.5, 0.75, 1.0), interpolation="lower")
            assert (several == x[order][[0, (count - 1) // 2, 3 * (count - 1) // 4, -1]]).all()


def test_several_axes_are_one_line() -> None:
    x = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)[:, ::-1]
    values, indices = bk.median(x, (0, 2))
    assert values.tolist() == [11.0, 7.0, 3.0] and indices.tolist() == [3, 3, 3]
    assert bk.median(x, (0, 2), keepdim=True)[0].shape == (1, 3, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_nan_zeros_and_infinities(dtype: torch.dtype) -> None:
    x = torch.tensor(
        [[2.0, NAN, 1.0, NAN], [NAN, NAN, NAN, NAN], [0.0, -0.0, 0.0, -0.0], [math.inf, -math.inf, math.inf, 1.0]], dtype=dtype
    )
    values, indices = bk.median(x, 1)
    assert values[:2].isnan().all() and values[2:].tolist() == [0.0, 1.0] and indices.tolist() == [1, 0, 1, 3]
    assert str(values[2].item()) == "-0.0", "equal ones stay in order, and bits are copied"
    values, indices = bk.nanmedian(x, 1)
    assert values[0] == 1.0 and values[1].isnan() and indices.tolist() == [2, 0, 1, 3]
    values, indices = bk.mode(x)
    assert values[:2].isnan().all() and values[2:].tolist() == [0.0, math.inf] and indices.tolist() == [3, 3, 3, 2]
    assert bk.quantile(x, 1.0, 1)[3] == math.inf and bk.quantile(x, 0.75, 1)[3] == math.inf
    assert bk.nanquantile(x, 0.5, 1)[0] == 1.5 and bk.nanquantile(x, 0.5, 1)[1].isnan()


def test_what_makes_no_sense_is_refused() -> None:
    x = numpy.ones((3, 4), numpy.float32)
    for q in (1.5, -0.1, NAN, (0.5, 2.0)):
        with pytest.raises(bk.InvalidProblem, match=r"q.*from 0 to 1"):
            bk.quantile(x, q)
    with pytest.raises(bk.InvalidProblem, match=r"q.*from 0 to 100"):
        bk.percentile(x, 101.0)
    with pytest.raises(bk.InvalidProblem, match=r"q.*at least one"):
        bk.quantile(x, ())
    with pytest.raises(bk.InvalidProblem, match="interpolation"):
        bk.quantile(x, 0.5, interpolation="cubic")
    with pytest.raises(bk.Unsupported, match="i32"):
        bk.quantile(x.astype(numpy.int32), 0.5)
    with pytest.raises(bk.InvalidProblem, match="there is no median of nothing"):
        bk.median(numpy.ones((3, 0), numpy.float32), 1)
    with pytest.raises(bk.InvalidProblem, match="dim"):
        bk.mode(x, 2)
    assert bk.median(numpy.ones((0, 3), numpy.float32), 1)[0].shape == (0,)


# --- gradients -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_chosen_elements_beside_pytorch(name: str, dim: int, rng: numpy.random.Generator) -> None:
    x = torch.from_numpy(rng.permutation(35 * 4).reshape(35, 4) / 8).requires_grad_()
    (ours,), (theirs,) = (
        torch.autograd.grad((getattr(module, name)(x, dim)[0] ** 2).sum(), x) for module in (bkt, torch)
    )  # fmt: skip
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_gradients_of_one_value(name: str) -> None:
    x = torch.tensor([[3.0, 1.0], [NAN, 2.0]], requires_grad=True)
    value = getattr(bkt, name)(x)
    assert isinstance(value, torch.Tensor) and value.shape == ()
    (gradient,) = torch.autograd.grad(value, x)
    assert gradient.tolist() == ([[0.0, 0.0], [1.0, 0.0]] if name == "median" else [[0.0, 0.0], [0.0, 1.0]])
    values, indices = getattr(bkt, name)(x, return_indices=True)
    assert values.requires_grad and not indices.requires_grad


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("q", [0.3, (0.1, 0.5, 0.55, 0.1)])
def test_gradients_of_quantiles_beside_pytorch(name: str, interpolation: str, q: Any, rng: numpy.random.Generator) -> None:
    values = rng.permutation(23 * 3).reshape(23, 3) / 8
    if name == "nanquantile":
        values[4, 1] = NAN
    x = torch.from_numpy(values).requires_grad_()
    for dim, keepdim in ((0, False), (1, True), (None, False)):
        found = getattr(bkt, name)(x, q, dim, keepdim, interpolation=interpolation)
        theirs = getattr(torch, name)(x, torch.tensor(q, dtype=torch.float64), dim, keepdim, interpolation=interpolation)
        assert found.shape == theirs.shape
        (ours,), (expected,) = (torch.autograd.grad((each**2).sum(), x) for each in (found, theirs))
        torch.testing.assert_close(ours, expected, rtol=1e-13, atol=1e-13)


def test_equal_neighbours_share_in_their_order() -> None:
    x = numpy.array([1.0, 2.0, 2.0, 3.0], numpy.float32)
    one = numpy.ones((), numpy.float32)
    assert bk.quantile_backward(one, x, 0.5).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert bk.quantile_backward(one, x[::-1], 0.25).tolist() == [0.0, 0.75, 0.0, 0.25]
    assert bk.quantile_backward(one, numpy.array([NAN, 1.0, NAN], numpy.float32), 0.5).tolist() == [0.0, 0.0, 1.0]
    assert bk.nanquantile_backward(one, numpy.array([NAN, NAN], numpy.float32), 0.5).tolist() == [1.0, 0.0]


def test_many_quantiles_of_one_element_are_added_in_their_order(threads: Any, rng: numpy.random.Generator) -> None:
    x, q = rng.standard_normal((300, 50)).astype(numpy.float32), tuple(numpy.linspace(0.49, 0.51, 40))
    d = rng.standard_normal((40, 300)).astype(numpy.float32)
    found = []
    for count in (1, 2, 7):
        threads(count)
        found.append(bk.quantile_backward(d, x, q, 1))
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
    numpy.testing.assert_allclose(found[0].sum(1), d.sum(0), rtol=1e-4, atol=1e-4)


def test_operators_compile_and_take_lists(rng: numpy.random.Generator) -> None:
    x = torch.from_numpy(rng.standard_normal((4, 9)))
    alone = bkt.quantile(x, 0.5, 1)
    several = torch.ops.baracuda.quantile(x, [0.5], [1], False, "linear", True)
    assert several.shape == (1, 4) and alone.shape == (4,) and torch.equal(several[0], alone)
    assert torch.equal(bkt.quantile(x, [0.5, 1.0], dim=1)[1], x.amax(1))
    values, indices = torch.vmap(lambda row: bkt.median(row, 0))(x)
    assert torch.equal(values, bkt.median(x, 1)[0]) and torch.equal(indices, bkt.median(x, 1)[1])


# --- longer lines on CUDA, interpreted -------------------------------------------------------------------------------------------


@pytest.fixture
def short_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are longer than what a program holds, and are split, but short enough to interpret."""
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    from baracuda_kernels.ops.order_statistics import tiles
    from baracuda_kernels.ops.order_statistics import triton as launches

    monkeypatch.setattr(tiles, "REGISTER_BYTES", 64)
    for module in (tiles, launches):
        monkeypatch.setattr(module, "LONG_TILE", 64)


LONG = [
    (bk.OrderPlan, (bk.OrderKind.MEDIAN, (2, 300), 0b10, bk.ElementKind.F32)),
    (bk.OrderPlan, (bk.OrderKind.NANMEDIAN, (3, 100), 0b11, bk.ElementKind.I64)),
    (bk.QuantilePlan, (bk.QuantileKind.NANQUANTILE, (300, 2), 0b01, bk.ElementKind.BF16)),
    (bk.QuantilePlan, (bk.QuantileKind.QUANTILE, (1, 300), 0b10, bk.ElementKind.F32)),
    (bk.QuantileBackwardPlan, (bk.QuantileKind.QUANTILE, (1, 300), 0b10, bk.ElementKind.F16)),
    (bk.QuantileBackwardPlan, (bk.QuantileKind.NANQUANTILE, (3, 50, 1), 0b011, bk.ElementKind.F32)),
]


@pytest.mark.usefixtures("short_tiles")
@pytest.mark.parametrize(("plan", "fields"), LONG)
def test_longer_lines_are_read_digit_by_digit(plan: Any, fields: Any, rng: numpy.random.Generator) -> None:
    problem = plan.descriptor_type(*fields)
    forced = plan.force(f"triton.{registry.op_name(plan)}", STREAM, problem)
    for layout in ("contiguous", "transposed"):
        assert run_trial(forced, random_inputs(plan, problem, rng), layout).errors


@pytest.mark.parametrize(
    "count", [700, 9000]
)  # of the longer one equals are found without counts that the registers have no room for
@pytest.mark.parametrize(
    ("plan", "kind"), [(bk.OrderPlan, bk.OrderKind.MEDIAN), (bk.QuantileBackwardPlan, bk.QuantileKind.QUANTILE)]
)
def test_equals_of_a_held_line(
    plan: Any, kind: Any, count: int, rng: numpy.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    problem = plan.descriptor_type(kind, (2, count), 0b10, bk.ElementKind.F32)
    forced = plan.force(f"triton.{registry.op_name(plan)}", STREAM, problem)
    few_values = {name: numpy.round(values) for name, values in random_inputs(plan, problem, rng).items()}
    assert run_trial(forced, few_values, "contiguous").errors


def test_a_mode_of_many_elements_is_refused_on_cuda() -> None:
    kernel = next(each for each in bk.OrderPlan.kernels if each.name == "triton.order")
    problem = bk.OrderDescriptor(bk.OrderKind.MODE, (2, 5000), 0b10, bk.ElementKind.F32)
    reasons = kernel.reasons_against(problem, bk.Device.cpu(), bk.PlanPreference())
    assert any("at most 4096 elements for a mode" in str(reason) for reason in reasons)


def test_gradients_in_jax(rng: numpy.random.Generator) -> None:
    jax = pytest.importorskip("jax")
    pairs: list[tuple[Any, Any]] = [
        (lambda x: bk.quantile(x, (0.3, 0.8), 1), lambda x: jax.numpy.quantile(x, jax.numpy.array([0.3, 0.8]), 1)),
        (lambda x: bk.median(x, 1)[0], lambda x: jax.numpy.median(x, 1)),
        (bk.median, jax.numpy.median),
    ]
    from baracuda_kernels.arrays.jax_arrays import wide_types

    with wide_types():  # indices are i64
        x = jax.numpy.asarray(rng.standard_normal((5, 9)))
        for pair in pairs:
            ours, theirs = (jax.grad(lambda x, each=each: (each(x) ** 2).sum())(x) for each in pair)
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
