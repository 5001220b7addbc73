"""The PyTorch operators: eager, compiled, exported, under autocast, vmap and functorch, and their gradients."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
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

FUNCTIONS = registry.functions()
FORWARD = [name for name, function in FUNCTIONS.items() if function.gradient]


def tensor(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def _scan(dtype: torch.dtype, **more: Any) -> dict[str, Any]:
    x, b, c = tensor(2, 5, 4, 3, dtype=dtype), tensor(2, 5, 2, 6, dtype=dtype), tensor(2, 5, 2, 6, dtype=dtype)
    dt, a = tensor(2, 5, 4, dtype=dtype).sigmoid(), -tensor(4, dtype=dtype).exp()
    return {"x": x, "dt": dt, "a": a, "b": b, "c": c, "chunk_size": 2, **more}


# Calls that between them have every optional input and every optional output.
CALLS: dict[str, Callable[[torch.dtype], list[dict[str, Any]]]] = {
    "softmax": lambda dtype: [{"x": tensor(3, 4, 5, dtype=dtype)}, {"x": tensor(3, 4, 5, dtype=dtype), "axis": 1}],
    "log_softmax": lambda dtype: [{"x": tensor(3, 4, 5, dtype=dtype), "axis": 0}],
    "rms_norm": lambda dtype: [
        {"x": tensor(3, 4, 5, dtype=dtype), "gamma": tensor(5, dtype=dtype), "return_rms": True},
        {"x": tensor(3, 4, 5, dtype=dtype), "axes": (1, 2), "eps": 0.5},
    ],
    "rope": lambda dtype: [
        {"x": tensor(2, 3, 5, 8, dtype=dtype), "positions": torch.tensor([3, 1, -4, 1, 5])},
        {"x": tensor(2, 3, 5, 8, dtype=dtype), "style": bk.RopeStyle.HALF, "rotary_dim": 4, "base": 100.0},
    ],
    "sdpa": lambda dtype: [
        {"q": tensor(2, 4, 3, 6, dtype=dtype), "k": tensor(2, 2, 5, 6, dtype=dtype), "v": tensor(2, 2, 5, 7, dtype=dtype),
         "mask": tensor(2, 4, 3, 5, dtype=dtype), "return_attn": True},
        {"q": tensor(2, 4, 5, 6, dtype=dtype), "k": tensor(2, 4, 5, 6, dtype=dtype), "v": tensor(2, 4, 5, 7, dtype=dtype),
         "is_causal": True, "scale": 0.3},
    ],
    "ssd_chunk_scan": lambda dtype: [
        _scan(dtype),
        _scan(dtype, initial_state=tensor(2, 4, 3, 6, dtype=torch.float32 if dtype.itemsize == 2 else dtype), return_final_state=True),
    ],
}  # fmt: skip
FIRST_CALLS = [pytest.param(name, 0, id=name) for name in FORWARD]
ALL_CALLS = [
    pytest.param(name, place, id=f"{name}-{place}") for name in FORWARD for place in range(len(CALLS[name](torch.float64)))
]


def call_of(name: str, place: int, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    return CALLS[name](dtype)[place]


def differentiable(name: str, values: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The inputs of a call that have a gradient."""
    gradient = FUNCTIONS[name].backward()
    return {of: values[of] for of in gradient.results.values() if values.get(of) is not None}


def with_gradients(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return values | {of: value.detach().requires_grad_() for of, value in differentiable(name, values).items()}


def backward_call(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """A call of the backward, as a call of the forward leads to it."""
    function = FUNCTIONS[name]
    gradient = function.backward()
    flags = {flag: True for flag in function.options if flag.startswith("return_")}
    outputs = getattr(bk, name)(**(values | flags))
    everything = dict(zip(function.outputs, outputs if isinstance(outputs, tuple) else (outputs,), strict=True))
    saved = {of: values.get(of) for of in gradient.saved_inputs} | {of: everything[of] for of in gradient.saved_outputs}
    upstream = {of: torch.ones_like(everything[output]) for of, output in gradient.upstream.items()}
    return saved | upstream | {option: values[option] for option in gradient.options if option in values}


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda given: given.contiguous(),
    "permuted": lambda given: given.transpose(0, -1).contiguous().transpose(0, -1),
    "expanded": lambda given: given[..., :1].expand(given.shape) if given.is_floating_point() else given,
}


def laid_out(values: dict[str, Any], layout: str) -> dict[str, Any]:
    return {name: LAYOUTS[layout](value) if isinstance(value, torch.Tensor) else value for name, value in values.items()}


def flat(results: Any) -> list[torch.Tensor]:
    return [each for each in (results if isinstance(results, tuple) else (results,)) if each is not None]


def objective(results: Any) -> torch.Tensor:
    """A number to differentiate, with another derivative by every element, that depends on it."""
    parts = [each for each in flat(results) if each.requires_grad]
    return sum(((each.float() ** 2 * torch.linspace(1, 2, each.numel()).view(each.shape)).sum() for each in parts), torch.zeros(()))


def test_every_function_is_there_with_its_signature() -> None:
    assert set(CALLS) == set(FORWARD)
    stub = Path(bt.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert {line.split(" as ")[1] for line in stub.splitlines()} == set(bt.__all__)
    for name, function in FUNCTIONS.items():
        assert list(inspect.signature(getattr(bt, name)).parameters) == list(function.declared.parameters)
        assert getattr(bt, name).__doc__ == function.__doc__


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
    values = laid_out(call_of(name, place), layout)
    arguments = of.schema.plain(of.schema.bind((), with_gradients(name, values)))
    torch.library.opcheck(of.overload, tuple(arguments))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "place"), FIRST_CALLS)
def test_opcheck_of_the_backward(name: str, place: int, layout: str) -> None:
    of = operator(FUNCTIONS[name].gradient or "")
    arguments = of.schema.plain(of.schema.bind((), laid_out(backward_call(name, call_of(name, place)), layout)))
    torch.library.opcheck(of.overload, tuple(arguments))


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_gradients(name: str, place: int) -> None:
    values = with_gradients(name, call_of(name, place))
    names = list(differentiable(name, values))

    def function(*inputs: torch.Tensor) -> Any:
        results = flat(getattr(bt, name)(**(values | dict(zip(names, inputs, strict=True)))))
        return tuple(each for each in results if each.requires_grad)

    assert torch.autograd.gradcheck(function, tuple(values[each] for each in names))


@pytest.fixture
def compiler() -> Any:
    """torch.compile without what earlier tests have left in it."""
    torch.compiler.reset()
    yield functools.partial(torch.compile, fullgraph=True, dynamic=True)
    torch.compiler.reset()


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_compiled_in_one_graph(name: str, place: int, compiler: Any) -> None:
    values = with_gradients(name, call_of(name, place, torch.float32))
    function = getattr(bt, name)
    compiled = compiler(lambda given: function(**given), backend="aot_eager")
    inputs = list(differentiable(name, values).values())
    results = []
    for each in (function(**values), compiled(values)):
        results.append([*flat(each), *torch.autograd.grad(objective(each), inputs)])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_symbolic_shapes_are_compiled_once(compiler: Any) -> None:
    compilations = 0

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        nonlocal compilations
        compilations += 1
        return graph

    attend = compiler(lambda q, gamma: bt.sdpa(bt.rms_norm(q, gamma), q, bt.rope(q)), backend=backend)
    for batch, steps in ((5, 3), (6, 4), (7, 9)):
        attend(tensor(batch, 2, steps, 8), tensor(8))
    assert compilations == 1


class Block(torch.nn.Module):
    """Every forward function once."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = bt.rope(bt.rms_norm(x, axes=-1))
        x = x + bt.sdpa(x, x, bt.softmax(x)) + bt.log_softmax(x, 1)
        steps = x.transpose(1, 2)
        return bt.ssd_chunk_scan(steps, x.new_ones(steps.shape[:3]), -x.new_ones(2), steps, steps)


def test_exported_with_a_dynamic_batch() -> None:
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(Block(), (tensor(3, 2, 5, 4),), dynamic_shapes=({0: batch},))
    called = {str(node.target) for node in program.graph.nodes if "baracuda" in str(node.target)}
    assert called == {f"baracuda.{name}.default" for name in FORWARD}
    x = tensor(7, 2, 5, 4)
    assert torch.equal(program.module()(x), Block()(x))


@pytest.mark.parametrize("name", FORWARD)
def test_autocast_takes_mixed_elements(name: str) -> None:
    values = with_gradients(name, call_of(name, 0, torch.float32))
    first, *others = differentiable(name, values)
    values[first] = values[first].detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = getattr(bt, name)(**values)
    assert flat(results)[0].dtype is torch.bfloat16  # as PyTorch's own are on the CPU
    total, inputs = objective(results), [values[each] for each in (first, *others)]
    outside = torch.autograd.grad(total, inputs, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.float16):
        within = torch.autograd.grad(total, inputs)
    assert [each.dtype for each in outside] == [each.dtype for each in inputs]
    assert all(torch.equal(one, other) for one, other in zip(outside, within, strict=True))


def test_autocast_leaves_f64_alone() -> None:
    x = tensor(1, 2, 3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bt.sdpa(x, x, x).dtype is torch.float64
        assert bt.sdpa(x.float(), x.float(), x.float()).dtype is torch.bfloat16
        assert bt.softmax(x.float()).dtype is torch.float32


def test_autocast_on_cuda() -> None:
    with torch._subclasses.FakeTensorMode():
        x = torch.empty(1, 2, 3, 4, dtype=torch.bfloat16, device="cuda")
    found = {}
    enabled, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_dtype("cuda", torch.float16)
    torch.set_autocast_enabled("cuda", True)  # as torch.autocast does where there is CUDA
    try:
        found = {"softmax": bt.softmax(x), "rms_norm": bt.rms_norm(x), "rope": bt.rope(x), "sdpa": bt.sdpa(x, x.float(), x)}
    finally:
        torch.set_autocast_enabled("cuda", enabled)
        torch.set_autocast_dtype("cuda", dtype)
    wide, own, lower = torch.float32, torch.bfloat16, torch.float16
    assert {name: y.dtype for name, y in found.items()} == {"softmax": wide, "rms_norm": wide, "rope": own, "sdpa": lower}


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_vmap_and_functional_gradients(name: str, place: int) -> None:
    values = call_of(name, place)
    function, inputs = getattr(bt, name), differentiable(name, values)

    def total(given: dict[str, torch.Tensor]) -> torch.Tensor:
        results = flat(function(**(values | given)))
        return (results[0] * torch.linspace(1, 2, results[0].numel(), dtype=torch.float64).view(results[0].shape)).sum()

    tracked = with_gradients(name, values)
    kept = {each: tracked[each] for each in inputs}
    expected = dict(zip(inputs, torch.autograd.grad(total(kept), list(kept.values())), strict=True))
    found = torch.func.grad(total)(inputs)
    assert all(torch.equal(found[each], expected[each]) for each in inputs)

    first = next(iter(inputs))
    several = torch.stack([inputs[first], 2 * inputs[first], 3 * inputs[first]], dim=1)
    mapped = flat(torch.vmap(lambda one: function(**(values | {first: one})), in_dims=1)(several))
    alone = [flat(function(**(values | {first: several[:, index]}))) for index in range(3)]
    for result, parts in zip(mapped, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(result, torch.stack(parts), rtol=1e-12, atol=1e-12)

    everything = {each: torch.stack([value, 2 * value]) for each, value in inputs.items()}
    ones = [torch.func.grad(total)({each: value[index] for each, value in everything.items()}) for index in range(2)]
    mapped_gradients = torch.vmap(torch.func.grad(total))(everything)
    gradients_of_mapped = torch.func.grad(lambda given: torch.vmap(total)(given).sum())(everything)
    with torch.no_grad():
        assert not any(each.requires_grad for each in torch.func.grad(total)(kept).values())
    for each in inputs:
        for gradients in (mapped_gradients, gradients_of_mapped):
            torch.testing.assert_close(gradients[each], torch.stack([one[each] for one in ones]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "place"), FIRST_CALLS)
def test_any_layout_gives_the_same(name: str, place: int, layout: str) -> None:
    values = laid_out(call_of(name, place, torch.float32), layout)
    tracked = with_gradients(name, values)
    results = getattr(bt, name)(**tracked)
    expected = flat(getattr(bk, name)(**laid_out(values, "contiguous")))
    assert all(each.is_contiguous() for each in flat(results))
    assert all(torch.equal(one, other) for one, other in zip(flat(results), expected, strict=True))
    flat(results)[0].sum().backward()  # whose gradient is expanded
    assert all(tracked[each].grad.shape == tracked[each].shape for each in differentiable(name, values))


@pytest.mark.parametrize("name", FORWARD)
def test_other_derivatives_are_refused(name: str) -> None:
    values = with_gradients(name, call_of(name, 0))
    inputs = differentiable(name, values)
    gradients = torch.autograd.grad(objective(getattr(bt, name)(**values)), list(inputs.values()), create_graph=True)
    with pytest.raises(bk.Unsupported, match=f"{name}_backward.*first derivatives"):
        gradients[0].sum().backward()

    first, given = next(iter(inputs.items()))
    given = given.detach()

    def total(one: torch.Tensor) -> torch.Tensor:
        return flat(getattr(bt, name)(**(values | {first: one})))[0].square().sum()

    with pytest.raises(bk.Unsupported, match=f"{name}_backward.*first derivatives"):
        torch.func.grad(lambda one: torch.func.grad(total)(one).sum())(given)
    for forward in (lambda: torch.func.jvp(total, (given,), (given,)), lambda: torch.func.jacfwd(torch.func.grad(total))(given)):
        with pytest.raises(bk.Unsupported, match=f"{name}.*reverse mode"):
            forward()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(bk.Unsupported, match=f"{name}.*reverse mode"):
        total(torch.autograd.forward_ad.make_dual(given, given))


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
    for other in (x.detach().numpy(), [1.0], None):
        with pytest.raises(bk.InvalidProblem, match=r"x cannot be seen as an array: got .*, wanted a torch\.Tensor"):
            bt.softmax(other)
    with pytest.raises(bk.InvalidProblem, match="gamma belongs to another framework"):
        bt.rms_norm(x.detach(), numpy.ones(4))


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
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
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
