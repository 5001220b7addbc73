"""Second derivatives and forward mode of the PyTorch operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from derivatives_of import HANDFUL, calls_of
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import derivatives, registry

from torch_calls import CALLS, call_of, differentiable, flat, with_gradients

WITHOUT = ("ssd_chunk_scan",)  # whose gradient has a body of its own
ROUNDED = ("reduce_precision", "round_decimals")  # which change in steps, that differences meet
ONLY = {"betainc": ("x",)}  # of other operands the gradient is NaN
EVERY = {name: function for name, function in registry.functions().items() if function.gradient}


def test_which_functions_have_them() -> None:
    assert [name for name, function in EVERY.items() if not derivatives.has_tangent(function)] == [*WITHOUT]
    assert [name for name, function in EVERY.items() if not derivatives.has_composition(function)] == [*WITHOUT]


def _has_derivative(result: Any) -> bool:
    return result.requires_grad or (forward_ad._current_level >= 0 and forward_ad.unpack_dual(result).tangent is not None)


def _check(name: str, values: dict[str, Any]) -> None:
    gradient = EVERY[name].backward()
    inputs = [
        each for each in gradient.results.values() if isinstance(values.get(each), torch.Tensor) and each in ONLY.get(name, (each,))
    ]
    given = tuple(values[each].detach().clone().requires_grad_() for each in inputs)

    def function(*arrays: torch.Tensor) -> Any:
        results = flat(getattr(bt, name)(**(values | dict(zip(inputs, arrays, strict=True)))))
        return tuple(each for each in results if _has_derivative(each))

    assert gradcheck(function, given, check_backward_ad=False, check_forward_ad=True, check_undefined_grad=False, fast_mode=True)
    assert gradgradcheck(function, given, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in WITHOUT])
def test_derivatives_of_telling_functions(name: str) -> None:
    for values in CALLS[name](torch.float64):
        _check(name, values)


@pytest.mark.parametrize("name", HANDFUL)
def test_derivatives_of_a_few_rows(name: str) -> None:
    for values in calls_of(name):
        _check(name, values)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if name not in (*CALLS, *HANDFUL, *ROUNDED)])
def test_derivatives_of_all_others(name: str) -> None:
    for values in calls_of(name):
        _check(name, values)


@pytest.mark.parametrize("name", WITHOUT)
def test_where_there_is_none_it_is_said(name: str) -> None:
    values = with_gradients(name, call_of(name, 0))
    inputs = differentiable(name, values)
    result = flat(getattr(bt, name)(**values))[0]
    gradients = torch.autograd.grad(result.square().sum(), list(inputs.values()), create_graph=True)
    with pytest.raises(bk.Unsupported, match=f"{name}_backward.*first derivatives"):
        gradients[0].sum().backward()
    first, given = next(iter(inputs.items()))
    with pytest.raises(bk.Unsupported, match=f"{name}.*reverse mode"):
        torch.func.jvp(lambda one: flat(getattr(bt, name)(**(values | {first: one})))[0], (given.detach(),), (given.detach(),))


def test_a_tangent_of_what_has_no_gradient_is_refused() -> None:
    q, mask = call_of("sdpa", 1)["q"], torch.zeros(5, 5, dtype=torch.float64, device=call_of("sdpa", 1)["q"].device)
    with pytest.raises(bk.Unsupported, match=r"mask.*no gradient"):
        torch.func.jvp(lambda mask: bt.sdpa(q, q, q, mask.expand(2, 4, 5, 5)), (mask,), (mask,))


def test_a_comparison_has_no_tangent() -> None:
    x = call_of("gelu", 0)["input"]
    result, tangent = torch.func.jvp(lambda x: bt.where(bt.gt(x, 0.0), x, 0.0), (x,), (x,))
    assert torch.equal(result, tangent)


def _energy(f: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """Something of everything, in terms of these functions."""
    return lambda x: (f["softmax"](f["gelu"](x) * x) * x).sum() + f["var"](x) + f["cumprod"](x).sum()


OURS = _energy({"softmax": bt.softmax, "gelu": bt.gelu, "var": bt.var, "cumprod": lambda x: bt.cumprod(x, 0)})
THEIRS = _energy(
    {"softmax": lambda x: x.softmax(-1), "gelu": torch.nn.functional.gelu, "var": torch.var, "cumprod": lambda x: x.cumprod(0)}
)
TWICE: dict[str, Callable[[Any], Any]] = {
    "forward over reverse": torch.func.hessian,
    "reverse over reverse": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
    "forward over forward": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
    "reverse over forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
    "three times": lambda f: torch.func.jacrev(torch.func.hessian(f)),
    "of a batch": lambda f: lambda x: torch.func.vmap(torch.func.hessian(f))(torch.stack([x, 2 * x])),
    "of autograd": lambda f: lambda x: torch.autograd.functional.hessian(f, x),
}


@pytest.mark.parametrize("how", TWICE)
def test_hessians_are_pytorchs(how: str) -> None:
    x = torch.tensor([0.3, -1.2, 0.8, 2.0], dtype=torch.float64)
    torch.testing.assert_close(TWICE[how](OURS)(x), TWICE[how](THEIRS)(x))


def test_vjp_after_the_transform_is_over() -> None:
    x = torch.tensor([0.3, -1.2, 0.8, 2.0], dtype=torch.float64)
    wanted = torch.func.jvp(THEIRS, (x,), (x,))[1]
    (gradient,) = torch.func.vjp(OURS, x)[1](torch.ones_like(wanted))
    torch.testing.assert_close((gradient * x).sum(), wanted)


def test_a_gradient_penalty_is_learned_from() -> None:
    """A loss that has the size of a gradient in it, as backward() of PyTorch sees it."""
    x, weight = torch.randn(5, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    found = []
    for norm in (lambda x, w: bt.rms_norm(x, w, eps=1e-5), lambda x, w: torch.nn.functional.rms_norm(x, (4,), w, 1e-5)):
        given, gamma = x.clone().requires_grad_(), weight.clone().requires_grad_()
        (slope,) = torch.autograd.grad(norm(given, gamma).square().sum(), given, create_graph=True)
        slope.norm().backward()
        found.append((given.grad, gamma.grad))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_elements_stay_what_they_are(dtype: torch.dtype) -> None:
    x = torch.linspace(-2, 2, 8).to(dtype)
    for function in (lambda x: bt.gelu(x), lambda x: bt.rms_norm(x), lambda x: bt.logsumexp(x, 0), lambda x: bt.std(x)):
        result, tangent = torch.func.jvp(function, (x,), (torch.ones_like(x),))
        assert result.dtype == tangent.dtype == dtype
        again = torch.func.grad(
            lambda x, function=function: torch.func.grad(lambda x: function(x).float().square().sum())(x).float().sum()
        )(x)
        assert again.dtype == dtype and again.isfinite().all()


def test_a_fused_formula() -> None:
    fused, x = bt.fuse(lambda x, y: bt.tanh(x) * y + 2.0 * x * x), torch.linspace(-1, 1, 5, dtype=torch.float64)
    given = (x.clone().requires_grad_(), (x + 0.5).requires_grad_())
    assert gradgradcheck(fused, given, check_fwd_over_rev=True)


def test_more_operands_than_a_formula_may_have() -> None:
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    product = bt.fuse(lambda a, b, c, d, e, f, g, h: a * b * c * d * e * f * g * h)
    (slope,) = torch.autograd.grad(product(*[x] * 8).sum(), x, create_graph=True)
    with pytest.raises(bk.Unsupported, match="at most 8 operands"):
        torch.autograd.grad(slope.sum(), x)
