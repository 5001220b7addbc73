"""Complex numbers of two real ones: values, gradients beside PyTorch's and JAX's, conjugates, errors; and how complex results are judged."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.verify.bounds import error_bound, relative_error, ulps
from baracuda_kernels.verify.trial import random_inputs, run_trial

PAIRS = {"complex": (bt.complex, torch.complex), "polar": (bt.polar, torch.polar)}
WIDE = {torch.float32: torch.complex64, torch.float64: torch.complex128}
SPECIAL = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan]


def operands(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(7, 33, generator=generator, dtype=dtype) + 0.1, torch.randn(33, generator=generator, dtype=dtype)]


def broadcast(function: Any, *given: Any) -> Any:
    return function(*torch.broadcast_tensors(*given))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_values_are_pytorchs(name: str, dtype: torch.dtype) -> None:
    ours, theirs = PAIRS[name]
    result = ours(*operands(dtype))
    assert result.dtype is WIDE[dtype]
    near = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(result, broadcast(theirs, *operands(dtype)), rtol=near, atol=near)


@pytest.mark.parametrize("name", PAIRS)
def test_special_numbers_stay_in_their_part(name: str) -> None:
    first, second = numpy.meshgrid(SPECIAL, SPECIAL)
    result = getattr(bk, name)(first, second)
    expected = PAIRS[name][1](torch.tensor(first), torch.tensor(second)).numpy()
    for ours, theirs in ((result.real, expected.real), (result.imag, expected.imag)):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-15)
        if name == "complex":
            assert numpy.array_equal(numpy.signbit(ours), numpy.signbit(theirs))


@pytest.mark.parametrize("conjugated", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_pytorchs(name: str, conjugated: bool) -> None:
    """A conjugate is a name for other numbers in the same memory."""
    found = []
    for function in (PAIRS[name][0], lambda *given: broadcast(PAIRS[name][1], *given)):
        given = [each.requires_grad_() for each in operands()]
        result = function(*given)
        upstream = torch.complex(*(torch.linspace(-2, high, 7 * 33, dtype=torch.float64).view(7, 33) for high in (1, 3)))
        found.append(torch.autograd.grad(result, given, upstream.conj() if conjugated else upstream))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_the_slopes(name: str) -> None:
    given = [each[..., :3].clone().requires_grad_() for each in operands()]
    given[0].data[0, 0] = -0.7  # where PyTorch's gradient of polar has the other sign
    assert torch.autograd.gradcheck(PAIRS[name][0], given)


def test_the_gradient_by_a_size_of_nothing() -> None:
    size, angle = torch.zeros(3), torch.tensor([0.0, 1.0, 2.0])
    along, across = bk.polar_backward(torch.ones(3, dtype=torch.complex64), size, angle)
    torch.testing.assert_close(along, angle.cos())
    assert torch.equal(across, torch.zeros(3))


def test_under_vmap_and_compile() -> None:
    size, angle = operands()
    expected = bt.polar(size, angle)
    assert torch.equal(torch.vmap(bt.polar, (0, None))(size, angle), expected)
    assert torch.equal(torch.compile(bt.polar, backend="aot_eager")(size, angle), expected)
    torch.library.opcheck(torch.ops.baracuda.polar.default, (size.requires_grad_(), angle))


def test_conjugates_are_not_taken_for_what_they_name() -> None:
    d = torch.tensor([1 + 2j, 3 - 4j])
    with pytest.raises(bk.InvalidProblem, match="conjugate bit"):
        bk.complex_backward(d.conj())
    assert torch.equal(bt.complex_backward(d.conj())[1], -d.imag)
    assert torch.equal(bt.neg(d.conj().imag), d.imag)  # whose negative bit is set


def test_strides_and_given_memory() -> None:
    room = torch.zeros(5, 9, 2, dtype=torch.complex64)
    real, imag = torch.randn(9, 5).t(), torch.randn(5, 18)[:, ::2]
    bk.complex(real, imag, out=room[..., 1])
    assert torch.equal(room[..., 1], torch.complex(real, imag)) and not room[..., 0].any()
    backwards = numpy.arange(6, dtype=numpy.float32)[::-1]
    assert numpy.array_equal(bk.complex(backwards, backwards[::-1]), backwards + 1j * backwards[::-1])


@pytest.mark.parametrize("name", PAIRS)
def test_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    from baracuda_kernels.arrays.jax_arrays import wide_types

    with wide_types(), jax.default_device(jax.devices("cpu")[0]):
        given = [jax.numpy.asarray(each.numpy()) for each in operands()]
        ours = getattr(bk, name)

        def theirs(first: Any, second: Any) -> Any:
            first, second = jax.numpy.broadcast_arrays(first, second)
            return first + 1j * second if name == "complex" else first * jax.numpy.exp(1j * second)

        result = ours(*given)
        assert isinstance(result, jax.Array) and result.dtype == numpy.complex128
        numpy.testing.assert_allclose(result, theirs(*given), rtol=1e-12)
        weights = jax.numpy.linspace(1, 2, result.size).reshape(result.shape) * (2 - 1j)
        for mine, other in zip(
            *(jax.jit(jax.grad(lambda a, b, f=f: (f(a, b) * weights).real.sum(), (0, 1)))(*given) for f in (ours, theirs)),
            strict=True,
        ):
            numpy.testing.assert_allclose(mine, other, rtol=1e-9)


def test_halves_have_no_complex_numbers_here() -> None:
    x = torch.ones(3, dtype=torch.float16)
    with pytest.raises(bk.Unsupported, match="does not support this dtype: got f16, wanted f32 or f64"):
        bk.complex(x, x)
    with pytest.raises(bk.InvalidProblem, match="imag has the wrong dtype: got f64, wanted f32"):
        bk.complex(torch.ones(3), torch.ones(3).double())
    with pytest.raises(bk.InvalidProblem, match="angle has the wrong shape"):
        bk.polar(torch.ones(3), torch.ones(2))
    with pytest.raises(bk.InvalidProblem, match="d_result has the wrong dtype"):
        bk.complex_backward(torch.ones(3))


def test_complex_results_are_judged_by_their_parts() -> None:
    exact = numpy.array([1 + 1e-3j, complex(math.inf, 2)])
    assert relative_error(exact, exact) == 0.0
    assert relative_error(numpy.array([1 + 1e-3j, complex(math.inf, math.inf)]), exact) == math.inf
    assert ulps(exact[:1] + 2.0**-33 * 1j, exact[:1], bk.ElementKind.C64).tolist() == [0.0, 1.0]
    descriptor = bk.ComplexDescriptor(bk.ComplexKind.POLAR, (40,), bk.ElementKind.F32)
    assert error_bound(bk.ComplexPlan.cases, descriptor, bk.ElementKind.C64) == error_bound(bk.ComplexPlan.cases, descriptor)
    plan = bk.ComplexBackwardPlan.select(
        bk.Stream.cpu(), bk.ComplexBackwardDescriptor(bk.ComplexKind.POLAR, (40,), bk.ElementKind.F64)
    )
    inputs = random_inputs(bk.ComplexBackwardPlan, plan.descriptor, numpy.random.default_rng(0))
    assert abs(inputs["d_result"].imag).min() > 0
    assert max(run_trial(plan, inputs).errors.values()) < 1e-15
