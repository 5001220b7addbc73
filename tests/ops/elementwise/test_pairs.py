"""Ops with two results against NumPy, PyTorch and JAX."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.verify.accuracy import every_half, many_floats

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.75, 3.0, 1e-30, 5e-324, -1e-310, 1e300, numpy.inf, -numpy.inf, numpy.nan]


def same(found: Any, expected: Any) -> None:
    """Numbers, NaN and the signs of zeros."""
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(one, other)
        signed = ~numpy.isnan(other)
        numpy.testing.assert_array_equal(numpy.signbit(one)[signed], numpy.signbit(other)[signed])


@pytest.mark.parametrize("name", ["modf", "frexp"])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64, numpy.float16])
def test_of_one_operand(name: str, dtype: Any) -> None:
    numbers = every_half(bk.ElementKind.F16) if dtype is numpy.float16 else numpy.concatenate([SPECIAL, many_floats(4000)])
    with numpy.errstate(all="ignore"):
        x = numbers.astype(dtype)
        found, expected = getattr(bk, name)(x), getattr(numpy, name)(x)
    same(found, expected)
    assert [each.dtype for each in found] == [each.dtype for each in expected]


def test_of_bf16() -> None:
    x = torch.from_numpy(every_half(bk.ElementKind.BF16)).bfloat16()
    mantissa, exponent = bk.frexp(x)
    wide = torch.frexp(x.double())
    same((mantissa.double().numpy(), exponent.numpy()), (wide[0].numpy(), wide[1].numpy()))


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64, numpy.int8, numpy.int64, numpy.uint8])
def test_divmod(dtype: Any) -> None:
    rng = numpy.random.default_rng(3)
    x, y = (rng.integers(0 if dtype is numpy.uint8 else -100, 100, (37, 5)).astype(dtype) for _ in range(2))
    y[y == 0] = 7
    if numpy.dtype(dtype).kind == "f":
        x, y = x / dtype(3), y / dtype(7)
    for found, alone, expected in zip(bk.divmod(x, y), (bk.floor_divide(x, y), bk.remainder(x, y)), divmod(x, y), strict=True):
        numpy.testing.assert_array_equal(found, alone)
        near = 100 * numpy.finfo(dtype).eps if numpy.dtype(dtype).kind == "f" else 0.0
        numpy.testing.assert_allclose(found, expected, rtol=near, atol=near)


def test_divmod_of_integers_at_the_edges() -> None:
    least = numpy.iinfo(numpy.int32).min
    quotient, remainder = bk.divmod(numpy.int32([7, -7, least, least, 0]), numpy.int32([0, 0, -1, 1, -3]))
    assert quotient.tolist() == [0, 0, least, least, 0] and remainder.tolist() == [0, 0, 0, 0, 0]
    assert [each.tolist() for each in bk.divmod(-7, numpy.int32([3, -3]))] == [[-3, 2], [2, -1]]


def test_memory_of_ones_own() -> None:
    x = numpy.float32([1.5, -2.5])
    exponent = numpy.empty(2, numpy.int32)
    mantissa, returned = bk.frexp(x, out={"exponent": exponent})
    assert returned is exponent and exponent.tolist() == [1, 2] and mantissa.tolist() == [0.75, -0.625]
    with pytest.raises(bk.InvalidProblem, match="exponent has the wrong dtype: got i64, wanted i32"):
        bk.frexp(x, out={"exponent": numpy.empty(2, numpy.int64)})
    with pytest.raises(bk.Unsupported, match="element"):
        bk.modf(numpy.arange(3))


def test_gradients() -> None:
    x = torch.tensor([1.7, -2.3, 0.4, 100.3], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.7, 1.9, -0.3, 7.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: bt.frexp(x)[0], (x,))
    assert torch.autograd.gradcheck(lambda x: bt.modf(x)[0], (x,))
    assert torch.autograd.gradcheck(lambda x, y: bt.divmod(x, y)[1], (x, y))
    assert torch.autograd.gradcheck(lambda x: bt.divmod(x, 0.7)[1], (x,))
    for result in (bt.frexp(x)[1], bt.modf(x)[1], bt.divmod(x, y)[0]):
        assert not result.requires_grad
    compiled = torch.compile(lambda x: bt.frexp(x)[0] + bt.divmod(x, 0.7)[1], backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x)[0], 1 + 1 / torch.exp2(torch.frexp(x)[1].double()))


def test_gradients_in_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.array([1.75, -2.25])
    found = jax.grad(lambda x: (bk.modf(x)[0] + bk.frexp(x)[0]).sum())(x)
    numpy.testing.assert_allclose(found, [1.5, 1.25])


def test_parts_of_a_fused_formula() -> None:
    x = torch.randn(7, 5)
    torch.testing.assert_close(bk.fuse(lambda x: bk.modf(x)[0] * 2)(x), x.frac() * 2)
