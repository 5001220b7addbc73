"""Operands of different dtypes: as the arrays' own framework promotes them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.arrays import numpy_arrays, torch_arrays
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.view import View
from baracuda_kernels.ops.elementwise.tables import BINARY, UNARY

from conftest import DEVICE, STREAM

WHERE = str(DEVICE)
E = bk.ElementKind
DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool,
)  # fmt: skip
PLAIN = "efdbhilB?"  # NumPy's dtypes
NUMBERS = (True, 3, 2.5)


def tensor(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return (torch.arange(12.0)[: 1 if not shape else shape[0]] % 3).reshape(shape).to(WHERE, dtype)


# --- PyTorch -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pairs_of_tensors(dtype: torch.dtype) -> None:
    """Of all dtypes, with axes and without."""
    for other, mine, its in itertools.product(DTYPES, ((5,), ()), ((5,), ())):
        x, y = tensor(dtype, *mine), tensor(other, *its)
        torch.testing.assert_close(bk.mul(x, y), torch.mul(x, y), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beside_tensors(number: Any, dtype: torch.dtype) -> None:
    for shape in ((5,), ()):
        x = tensor(dtype, *shape)
        for found, wanted in ((bk.mul(x, number), x * number), (bk.mul(number, x), number * x), (bt.mul(x, number), x * number)):
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def described(name: str, framework: Any, *operands: tuple[E, tuple[int, ...]]) -> E:
    """The dtype of a function's result, of which nothing is compiled."""
    function = getattr(bk, name)
    views = [
        View(name, each, Layout.of(element, shape, row_major(shape), bk.Device.cpu()), framework)
        for each, (element, shape) in zip(function.inputs, operands, strict=True)
    ]
    options = {option.name: None if option.is_required else option.default for option in function.options.values()}
    problem = function.describe(**dict(zip(function.inputs, views, strict=True)), **options)
    return function.plan.args_type.OPERANDS[-1].element(problem)


CALLED_OTHERWISE = ("div", "rsub", "imag", "polygamma", "prelu", "threshold")
AS_IN_TORCH = [name for name in (*UNARY, *BINARY) if hasattr(torch, name) and name not in CALLED_OTHERWISE]


@pytest.mark.parametrize("name", AS_IN_TORCH)
def test_results_of_every_row_have_the_dtype_that_pytorch_gives_them(name: str) -> None:
    """Where PyTorch serves such operands, and the row does."""
    row = UNARY[name] if name in UNARY else BINARY[name]
    pairs = [(dtype,) for dtype in DTYPES] if name in UNARY else list(itertools.product(DTYPES, DTYPES))
    served = 0
    for dtypes in pairs:
        operands = [tensor(dtype, 3) + 1 if dtype is not torch.bool else tensor(dtype, 3) for dtype in dtypes]
        if torch.bool in dtypes and E.BOOL not in row.elements and row.elements != FLOATS:
            continue
        try:
            wanted = getattr(torch, name)(*operands)
        except (RuntimeError, TypeError):
            continue
        if not isinstance(wanted, torch.Tensor):
            continue
        found = described(name, torch_arrays.FRAMEWORK, *((E.of(dtype), (3,)) for dtype in dtypes))
        assert found is E.of(wanted.dtype), f"{name} of {dtypes}: got {found}, wanted {wanted.dtype}"
        served += 1
    assert served


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "sigmoid", "atan2", "div", "xlogy"])
def test_floats_of_integers(name: str) -> None:
    for dtype in (torch.int32, torch.uint8, torch.bool):
        x = tensor(dtype, 5)
        operands = (x,) if name in UNARY else (x, tensor(torch.int16, 5) + 1)
        torch.testing.assert_close(getattr(bk, name)(*operands), getattr(torch, name)(*operands))


def test_a_tensor_of_one_number_is_taken_in_place_of_it() -> None:
    x, alpha = tensor(torch.bfloat16, 5), torch.tensor(2.5, dtype=torch.float64, device=WHERE)
    torch.testing.assert_close(bk.mul(x, alpha), x * alpha, rtol=0, atol=0)
    torch.testing.assert_close(bk.clamp(x, max=alpha), torch.clamp(x, max=alpha), rtol=0, atol=0)
    torch.testing.assert_close(bk.where(x > 1, x, alpha), torch.where(x > 1, x, alpha), rtol=0, atol=0)


def test_choices_are_promoted() -> None:
    condition = tensor(torch.bool, 5)
    for dtype, other in itertools.product((torch.float16, torch.int32, torch.bool), DTYPES):
        x, y = tensor(dtype, 5), tensor(other, 5)
        torch.testing.assert_close(bk.where(condition, x, y), torch.where(condition, x, y), rtol=0, atol=0)
    torch.testing.assert_close(
        bk.where(condition, tensor(torch.int32, 5), 0.5), torch.where(condition, tensor(torch.int32, 5), 0.5)
    )


def test_gradients_have_their_operands_dtypes() -> None:
    def gradients(of: Any, *functions: Any) -> list[Any]:
        mul, atan2, where = functions
        x, y = (tensor(dtype, 5).add(1).requires_grad_() for dtype in (torch.float32, torch.bfloat16))
        z = tensor(torch.int32, 5)
        result = mul(where(z > 1, atan2(x, y), y), z)
        return [result.detach(), *torch.autograd.grad(result.double().sum(), (x, y))]

    ours, theirs = gradients(bt, bt.mul, bt.atan2, bt.where), gradients(torch, torch.mul, torch.atan2, torch.where)
    for mine, its in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, its)


def test_a_result_in_another_dtype() -> None:
    x, whole = tensor(torch.float32, 5) + 0.1, tensor(torch.int64, 5) * 100
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        found, wanted = (torch.empty(5, dtype=dtype, device=WHERE) for _ in range(2))
        assert bk.mul(x, 3.3, out=found) is found
        torch.testing.assert_close(found, torch.mul(x, 3.3, out=wanted), rtol=0, atol=0)
    found, wanted = (torch.empty(5, dtype=torch.int8, device=WHERE) for _ in range(2))
    torch.testing.assert_close(bk.mul(whole, whole, out=found), torch.mul(whole, whole, out=wanted), rtol=0, atol=0)
    with pytest.raises(bk.InvalidProblem, match="result has the wrong dtype: got i32, wanted f32"):
        bk.mul(x, x, out=torch.empty(5, dtype=torch.int32, device=WHERE))
    found = torch.empty(5, device=WHERE)
    assert bk.gt(x, 1, out=found).tolist() == (x > 1).float().tolist()


# --- NumPy -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="NumPy is on the CPU")
@pytest.mark.parametrize("code", PLAIN)
def test_pairs_of_arrays_of_numpy(code: str) -> None:
    x = numpy.arange(5).astype(code)
    for other in PLAIN:
        for y in (numpy.arange(5).astype(other), *([] if other == "?" else [numpy.dtype(other).type(1)])):
            found, wanted = bk.mul(x, y), numpy.multiply(x, y)
            assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist(), (code, other)
    for number in NUMBERS:
        found, wanted = bk.mul(x, number), x * number
        assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist(), (code, number)


@pytest.mark.parametrize("name", ["sin", "atan2", "div", "hypot", "logaddexp", "copysign", "exp2", "cbrt"])
def test_floats_of_integers_of_numpy(name: str) -> None:
    theirs = {"atan2": "arctan2", "div": "divide"}.get(name, name)
    for code in "bhilB?":
        count = len(getattr(bk, name).inputs)
        found = described(name, numpy_arrays.FRAMEWORK, *[(E.of(numpy.dtype(code)), (3,))] * count)
        assert found is E.of(getattr(numpy, theirs)(*[numpy.ones(3, code)] * count).dtype), code


def test_dtypes_that_numpy_does_not_promote() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.ones(3, ml_dtypes.bfloat16)
    assert bk.mul(x, 2.5).dtype == x.dtype and bk.mul(x, numpy.ones(3, "f")).dtype == numpy.float32
    with pytest.raises(
        bk.InvalidProblem, match="mul: input and other has the wrong dtype: got bf16 and f16, wanted dtypes that are"
    ):
        bk.mul(x, numpy.ones(3, "e"))


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="NumPy is on the CPU")
def test_results_that_numpy_casts() -> None:
    x, narrow = numpy.arange(4.0), numpy.empty(4, "f")
    assert bk.exp(x, out=narrow) is narrow and narrow.tolist() == numpy.exp(x).astype("f").tolist()
    with pytest.raises(bk.InvalidProblem, match="result has the wrong dtype: got i32, wanted f64"):
        bk.exp(x, out=numpy.empty(4, "i"))


# --- JAX ---------------------------------------------------------------------------------------------------------------------------


def test_pairs_of_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    kinds = (jnp.float32, jnp.float16, jnp.bfloat16, jnp.int8, jnp.int16, jnp.int32, jnp.uint8, jnp.bool_)
    with jax.default_device(jax.devices("cpu")[0]):
        for kind in kinds:
            x = jnp.arange(5).astype(kind)
            assert bk.sin(x).dtype == jnp.sin(x).dtype
            for y in (*(jnp.arange(5).astype(other) for other in kinds), *NUMBERS):
                found, wanted = bk.mul(x, y), jnp.multiply(x, y)
                assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist(), (kind, y)


def test_gradients_inside_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    with jax.default_device(jax.devices("cpu")[0]):
        x, y, z = jnp.float32([1.5, 2.0]), jnp.bfloat16([3.0, 0.5]), jnp.int32([2, 3])

        def total(mul: Any) -> Any:
            return lambda x, y: mul(mul(x, y), z).sum()

        ours, theirs = (jax.grad(total(mul), (0, 1))(x, y) for mul in (bk.mul, jnp.multiply))
        for mine, its in zip(ours, theirs, strict=True):
            assert mine.dtype == its.dtype and mine.tolist() == its.tolist()


# --- plans, and what stays an error ------------------------------------------------------------------------------------------------


def test_plans_name_each_dtype() -> None:
    problem = bk.BinaryDescriptor(bk.BinaryKind.ADD, (5,), E.F32, other_element=E.BF16)
    assert bk.BinaryDescriptor.of_plain(problem.plain()) == problem and problem.elements == (E.F32, E.BF16)
    x, y, result = tensor(torch.float32, 5), tensor(torch.bfloat16, 5), tensor(torch.float32, 5)
    plan = bk.BinaryPlan.select(STREAM, problem)
    plan.run(STREAM, bk.Workspace.none(), bk.BinaryArgs(input=x, other=y, result=result))
    torch.testing.assert_close(result, x + y, rtol=0, atol=0)
    with pytest.raises(bk.InvalidProblem, match="other has the wrong dtype: got f32, wanted bf16"):
        plan.run(STREAM, bk.Workspace.none(), bk.BinaryArgs(input=x, other=x, result=result))


def test_arrays_of_two_frameworks() -> None:
    with pytest.raises(bk.InvalidProblem, match=r"other .*an array of PyTorch, wanted an array of NumPy"):
        bk.mul(numpy.ones(3, "f"), torch.ones(3))


def test_nothing_is_converted_in_memory() -> None:
    """The plan reads operands as they are."""
    x, y = tensor(torch.float32, 5), tensor(torch.bfloat16, 5)
    assert bk.mul.select(x, y).descriptor.elements == (E.F32, E.BF16)
