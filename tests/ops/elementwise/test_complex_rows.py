"""Rows of the tables on complex numbers: values beside NumPy's and PyTorch's, special values, gradients, numbers beside arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core.element import COMPLEXES
from baracuda_kernels.ops.elementwise.complex_rows import FORMS
from baracuda_kernels.ops.elementwise.reference_complex import DERIVATIVES, GRADIENTS, VALUES
from baracuda_kernels.ops.elementwise.tables import BINARY, TERNARY, UNARY

OPERANDS = {name: count for count, table in ((1, UNARY), (2, BINARY), (3, TERNARY)) for name in table}
ROWS = {name: row for table in (UNARY, BINARY, TERNARY) for name, row in table.items() if row.of_complex is not None}
SPECIAL = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
DTYPES = (numpy.complex64, numpy.complex128)


def random(dtype: Any, count: int, shape: tuple[int, ...] = (9, 7)) -> list[Any]:
    rng = numpy.random.default_rng(7)
    return [(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype) for _ in range(count)]


def theirs(name: str) -> Any:
    return getattr(torch, name, None) or getattr(torch.special, name, None)


def test_every_form_is_that_of_a_row_with_a_reference() -> None:
    assert set(ROWS) == set(FORMS) == set(VALUES)
    assert {name for name, row in ROWS.items() if row.differentiable} == {*DERIVATIVES, *GRADIENTS}
    assert all(set(COMPLEXES) <= set(row.elements) for row in ROWS.values())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in ROWS if theirs(name) is not None])
def test_values_are_pytorchs(name: str, dtype: Any) -> None:
    given = list(map(torch.from_numpy, random(dtype, OPERANDS[name])))
    try:
        expected = theirs(name)(*given).resolve_conj()
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch has it of real numbers alone")
    result = getattr(bt, name)(*given)
    assert result.dtype is expected.dtype
    near = 32 * float(numpy.finfo(dtype).eps)
    torch.testing.assert_close(result, expected, rtol=near, atol=near)


@pytest.mark.parametrize("name", sorted({*DERIVATIVES, *GRADIENTS}))
def test_gradients_are_pytorchs(name: str) -> None:
    given = [torch.from_numpy(each).requires_grad_() for each in random(numpy.complex128, OPERANDS[name], (3, 2))]
    assert torch.autograd.gradcheck(getattr(bt, name), given)
    function = theirs(name)
    if function is None:
        return
    found = []
    for each in (getattr(bt, name), function):
        try:
            result = each(*given)
        except (RuntimeError, NotImplementedError):
            return
        upstream = torch.linspace(-2, 3, result.numel(), dtype=torch.float64).view(result.shape).to(result.dtype)
        found.append(torch.autograd.grad(result, given, upstream * (1 - 2j) if result.is_complex() else upstream))
    for ours, other in zip(*found, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-11, atol=1e-11)


def grid() -> Any:
    """Every pair of special parts."""
    real, imag = numpy.meshgrid(SPECIAL, SPECIAL)
    return joined(real, imag).reshape(-1)


def joined(real: Any, imag: Any) -> Any:
    found = numpy.empty(numpy.shape(real), complex)
    found.real, found.imag = real, imag
    return found


def same(found: Any, expected: Any, case: Any) -> None:
    """To the sign of zero, part by part."""
    for part in ("real", "imag"):
        ours, other = getattr(found, part), getattr(expected, part)
        numpy.testing.assert_allclose(ours, other, rtol=1e-14, err_msg=f"{case} {part}")
        signs = numpy.signbit(ours) == numpy.signbit(other)
        assert (signs | numpy.isnan(other)).all(), f"{case} {part}: sign of zero"


@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "ne"])
def test_special_numbers_of_arithmetic(name: str) -> None:
    """As formulas of parts: no infinity is restored, no zero added."""
    x, y = (each.reshape(-1) for each in numpy.meshgrid(grid(), grid()))
    with numpy.errstate(all="ignore"):
        expected = {"add": x + y, "sub": x - y, "mul": x * y, "eq": x == y, "ne": x != y}[name]
    same(getattr(bk, name)(x, y), expected, name)


def test_sizes_and_angles_of_special_numbers() -> None:
    z = grid()
    with numpy.errstate(all="ignore"):
        same(bk.abs(z), numpy.abs(z), "abs")
        same(bk.angle(z), numpy.angle(z), "angle")
        same(bk.conj(z), numpy.conj(z), "conj")
        same(bk.neg(z), -z, "neg")
    for name in ("isnan", "isinf", "isfinite"):
        assert numpy.array_equal(getattr(bk, name)(z), getattr(numpy, name)(z)), name


def test_what_would_overflow_on_the_way() -> None:
    for dtype in DTYPES:
        top, least = float(numpy.finfo(dtype).max), float(numpy.finfo(dtype).tiny)
        for size in (top / 4, least):
            z = numpy.array([complex(size, size), complex(-size, size / 2)], dtype)
            numpy.testing.assert_allclose(bk.abs(z), numpy.hypot(*(numpy.float64(each) for each in (z.real, z.imag))), rtol=3e-7)
            numpy.testing.assert_allclose(bk.div(z, z), [1, 1], rtol=3e-7)
            numpy.testing.assert_allclose(bk.sgn(z), bk.sgn((z / size).astype(dtype)), rtol=3e-7)


def test_a_division_by_zero_and_by_infinity() -> None:
    z = numpy.array([1 + 2j, -1 + 0j, 0j])
    with numpy.errstate(all="ignore"):
        same(bk.div(z, numpy.zeros(3, complex)), z / 0.0, "by zero")
    assert not bk.div(z, numpy.full(3, complex(math.inf, 1))).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_arrays(dtype: Any) -> None:
    (z,) = random(dtype, 1)
    for value in (2.5, 3, 1 - 2j, numpy.complex64(2j)):
        near = 4 * float(numpy.finfo(dtype).eps)
        for found, expected in (
            (bk.mul(z, value), z * value), (bk.sub(value, z), value - z), (bk.div(z, value), z / value),
            (bk.where(z.real > 0, z, value), numpy.where(z.real > 0, z, value)),
            (bt.mul(torch.from_numpy(z), value).numpy(), z * value),
        ):  # fmt: skip
            assert found.dtype == dtype
            numpy.testing.assert_allclose(found, expected, rtol=near, atol=near)
    real = numpy.arange(3, dtype=numpy.float32)
    assert bk.mul(real, 2j).dtype == numpy.complex64 and bk.mul(real, 2j).tolist() == (real * 2j).tolist()


def test_conjugates_and_layouts_in_torch() -> None:
    z, w = map(torch.from_numpy, random(numpy.complex64, 2))
    torch.testing.assert_close(bt.mul(z.conj(), w.T.clone().T), z.conj() * w)
    torch.testing.assert_close(bk.add(z[::2, 1:], w[1::2, :1].expand(4, 6)) if len(z[::2]) == 4 else bk.add(z, w), z + w)
    torch.testing.assert_close(bk.mul(z[:, ::3], w[:, 1::3][:, :1]), z[:, ::3] * w[:, 1:2])


def test_gradients_in_jax() -> None:
    """Its convention is the conjugate of PyTorch's."""
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        x, y = (jax.numpy.asarray(each) for each in random(numpy.complex64, 2))

        def loss(product: Any, size: Any) -> Any:
            return lambda z: jax.numpy.sum(size(product(z, y)) ** 2 + jax.numpy.real(product(y, z) * (1 + 2j)))

        found = jax.grad(loss(bk.mul, bk.abs))(x)
        expected = jax.grad(loss(jax.numpy.multiply, jax.numpy.abs))(x)
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
