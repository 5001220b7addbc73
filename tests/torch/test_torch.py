"""The PyTorch operators: results, registration, gradients, layouts, errors, determinism."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry
from baracuda_kernels.core.function import function as declare
from baracuda_kernels.core.view import View
from baracuda_kernels.torch.operators import operator
from baracuda_kernels.torch.schema import Schema

from torch_calls import (
    ALL_CALLS,
    CALLS,
    FIRST_CALLS,
    FORWARD,
    FUNCTIONS,
    LAYOUTS,
    WHERE,
    backward_call,
    call_of,
    differentiable,
    flat,
    laid_out,
    tensor,
    with_gradients,
)


def test_every_function_is_there_with_its_signature() -> None:
    assert set(CALLS) == set(FORWARD)
    stub = Path(bt.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    named = {line.split(" as ")[1] for line in stub.splitlines() if " as " in line}
    assert named | set(registry.functions()) == set(bt.__all__)
    for name, function in FUNCTIONS.items():
        assert list(inspect.signature(getattr(bt, name)).parameters) == list(function.public.parameters)
        assert getattr(bt, name).__doc__ == function.__doc__


def test_every_plan_with_a_gradient_has_a_function_here() -> None:
    """A new plan of a table would be tested by nothing here otherwise."""
    differentiable = {registry.op_name(each.plan) for each in registry.functions().values() if each.gradient}
    elsewhere = {"cast", "complex", "binary_pair"}  # test_cast, test_complex, test_pairs
    assert {registry.op_name(FUNCTIONS[name].plan) for name in FORWARD} == differentiable - elsewhere


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_results_are_those_of_the_function(name: str, place: int) -> None:
    values = call_of(name, place, torch.float32)
    expected = flat(getattr(bk, name)(**values))
    recorded = flat(getattr(bt, name)(**with_gradients(name, values)))
    dispatched = flat(operator(name).dispatch((), dict(values)))
    assert [each.requires_grad for each in recorded] != [False] * len(recorded)
    for results in (flat(getattr(bt, name)(**values)), recorded, dispatched):
        assert all(torch.equal(one, other) for one, other in zip(results, expected, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_opcheck(name: str, place: int, layout: str) -> None:
    of = operator(name)
    values = laid_out(name, call_of(name, place), layout)
    arguments = of.schema.plain(of.schema.bind((), with_gradients(name, values)))
    torch.library.opcheck(of.overload, tuple(arguments))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "place"), FIRST_CALLS)
def test_opcheck_of_the_backward(name: str, place: int, layout: str) -> None:
    of = operator(FUNCTIONS[name].gradient or "")
    arguments = of.schema.plain(of.schema.bind((), laid_out(name, backward_call(name, call_of(name, place)), layout)))
    torch.library.opcheck(of.overload, tuple(arguments))


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_gradients(name: str, place: int) -> None:
    values = with_gradients(name, call_of(name, place))
    names = list(differentiable(name, values))

    def function(*inputs: torch.Tensor) -> Any:
        results = flat(getattr(bt, name)(**(values | dict(zip(names, inputs, strict=True)))))
        return tuple(each for each in results if each.requires_grad)

    assert torch.autograd.gradcheck(function, tuple(values[each] for each in names))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "place"), FIRST_CALLS)
def test_any_layout_gives_the_same(name: str, place: int, layout: str) -> None:
    values = laid_out(name, call_of(name, place, torch.float32), layout)
    tracked = with_gradients(name, values)
    results = getattr(bt, name)(**tracked)
    expected = flat(getattr(bk, name)(**laid_out(name, values, "contiguous")))
    assert all(each.is_contiguous() for each in flat(results))
    for one, other in zip(flat(results), expected, strict=True):
        # On CUDA what cannot be read in vectors is summed in another order.
        torch.testing.assert_close(one, other, **({} if WHERE.startswith("cuda") else {"rtol": 0.0, "atol": 0.0}))
    flat(results)[0].sum().backward()  # whose gradient is expanded
    assert all(tracked[each].grad.shape == tracked[each].shape for each in differentiable(name, values))


def test_outputs_that_are_not_used() -> None:
    values = with_gradients("ssd_chunk_scan", call_of("ssd_chunk_scan", 1))
    inputs = list(differentiable("ssd_chunk_scan", values).values())
    y, final_state = bt.ssd_chunk_scan(**values)
    only_y = torch.autograd.grad(y.sum(), inputs, retain_graph=True)
    only_state = torch.autograd.grad(final_state.sum(), inputs, retain_graph=True)
    both = torch.autograd.grad(y.sum() + final_state.sum(), inputs)
    for one, other, together in zip(only_y, only_state, both, strict=True):
        torch.testing.assert_close(one + other, together)


def test_results_for_the_backward_alone_carry_no_gradient() -> None:
    q = tensor(1, 2, 3, 4).requires_grad_()
    y, attn = bt.sdpa(q, q, q, return_attn=True)
    assert y.requires_grad and not attn.requires_grad


def test_an_input_without_a_gradient_must_not_want_one() -> None:
    q = tensor(1, 2, 3, 4)
    with pytest.raises(bk.InvalidProblem, match="mask needs a gradient"):
        bt.sdpa(q, q, q, tensor(1, 2, 3, 3).requires_grad_())


def test_errors_are_those_of_the_function() -> None:
    x = tensor(3, 4)
    for wrong in (lambda: bt.softmax(x, axis=2), lambda: bt.softmax(x.requires_grad_(), 2), lambda: bt.softmax(x.to("meta"), 2)):
        with pytest.raises(bk.InvalidProblem, match="axis"):
            wrong()
    for device in ("cpu", "meta"):
        with pytest.raises(bk.InvalidProblem, match=r"x cannot be seen as an array: .*torch\.uint16"):
            bt.softmax(torch.zeros(3, 4, dtype=torch.uint16, device=device))
    for unknown in ({"dim": 1}, {"out": x}, {"x": x}):
        with pytest.raises(TypeError, match=next(iter(unknown))):
            bt.softmax(x, **unknown)
    with pytest.raises(TypeError, match="too many"):
        bt.softmax(x, 1, 2)
    with pytest.raises(TypeError, match="missing"):
        bt.softmax()
    for other in (x.detach().cpu().numpy(), [1.0], None):
        with pytest.raises(bk.InvalidProblem, match=r"x cannot be seen as an array: got .*, wanted a torch\.Tensor"):
            bt.softmax(other)
    with pytest.raises(bk.InvalidProblem, match="gamma belongs to another framework"):
        bt.rms_norm(x.detach(), numpy.ones(4))
    for alone in (lambda: bt.clamp(2.0, 1.0), lambda: bt.clamp(None), lambda: bt.add(2.0, 1.0)):
        with pytest.raises(bk.InvalidProblem, match="input"):
            alone()


def test_an_option_without_a_form_in_schemas_is_refused() -> None:
    @declare(bk.SoftmaxPlan)
    def odd(x: View, table: dict[str, int] | None = None) -> bk.SoftmaxDescriptor:
        return bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, x.shape, 0, x.element)

    with pytest.raises(TypeError, match="the option table"):
        Schema(odd)


def test_who_watches_sees_the_operator() -> None:
    seen, x = [], tensor(2, 3)

    class Watcher(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(called))
            return called(*args, **(kwargs or {}))

    with Watcher():
        bt.softmax(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        bt.softmax(x)
    assert seen == ["baracuda.softmax.default"]
    assert "baracuda::softmax" in {event.name for event in profile.events()}
    assert bt.softmax(tensor(2, 3).to("meta")).is_meta
    with torch.inference_mode():
        assert bt.softmax(tensor(2, 3)).is_inference()


@pytest.fixture
def deterministic() -> Any:
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


def test_determinism_is_asked_for(deterministic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tensor(3, 17).requires_grad_()
    expected = bt.softmax(x)
    with bk.record() as recording:
        deterministic(True)
        assert torch.equal(bt.softmax(x), expected)
    assert {entry.plan.preference.determinism for entry in recording.entries()} == {bk.Determinism.RUN_TO_RUN}

    # No kernel of the library breaks this promise on the CPU, so a function without any stands in.
    def undetermined(*given: Any, preference: Any = None, **named: Any) -> torch.Tensor:
        if preference is not None:
            raise bk.Unsupported("softmax", [bk.Reason(bk.ReasonCode.NOT_DETERMINISTIC, "a.kernel", "atomics", "a fixed order")])
        return expected

    monkeypatch.setattr(operator("softmax").function, "compute", undetermined)
    with pytest.raises(bk.Unsupported, match="is not deterministic"):
        bt.softmax(x.detach())
    deterministic(True, warn_only=True)
    with pytest.warns(UserWarning, match="is not deterministic"):
        assert bt.softmax(x.detach()) is expected
