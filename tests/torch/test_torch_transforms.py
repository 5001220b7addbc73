"""The PyTorch operators compiled, exported, under vmap and functorch."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry

from conftest import TELLING
from torch_calls import (
    ALL_CALLS,
    FORWARD,
    FUNCTIONS,
    call_of,
    differentiable,
    flat,
    launches,
    objective,
    runs,
    tensor,
    with_gradients,
)


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
    """A function of every family."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = bt.rope(bt.rms_norm(x, axes=-1))
        x = x + bt.sdpa(x, x, bt.softmax(x)) + bt.log_softmax(x, 1)
        x = x + bt.diff(x)[..., :1] + bt.corrcoef(bt.cov(x[0, 0]))[0, 0]
        steps = x.transpose(1, 2)
        return bt.ssd_chunk_scan(steps, x.new_ones(steps.shape[:3]), -x.new_ones(2), steps, steps)


def test_exported_with_a_dynamic_batch() -> None:
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(Block(), (tensor(3, 2, 5, 4),), dynamic_shapes=({0: batch},))
    called = [str(node.target).split(".")[1] for node in program.graph.nodes if "baracuda" in str(node.target)]
    families = {name: registry.family(FUNCTIONS[name].plan) for name in FORWARD if name not in TELLING}
    assert {families[name] for name in called} == set(families.values())
    x = tensor(7, 2, 5, 4)
    assert torch.equal(program.module()(x), Block()(x))


@pytest.mark.parametrize(("name", "place"), ALL_CALLS)
def test_vmap_and_functional_gradients(name: str, place: int) -> None:
    values = call_of(name, place)
    function, inputs = getattr(bt, name), differentiable(name, values)

    def total(given: dict[str, torch.Tensor]) -> torch.Tensor:
        results = flat(function(**(values | given)))
        weights = torch.linspace(1, 2, results[0].numel(), dtype=torch.float64, device=results[0].device)
        return (results[0] * weights.view(results[0].shape)).sum()

    tracked = with_gradients(name, values)
    kept = {each: tracked[each] for each in inputs}
    expected = dict(zip(inputs, torch.autograd.grad(total(kept), list(kept.values())), strict=True))
    found = torch.func.grad(total)(inputs)
    assert all(torch.equal(found[each], expected[each]) for each in inputs)

    first = next(iter(inputs))
    several = torch.stack([inputs[first], 2 * inputs[first], 3 * inputs[first]], dim=1)
    with bk.record() as recording:
        mapped = flat(torch.vmap(lambda one: function(**(values | {first: one})), in_dims=1)(several))
    assert runs(recording) == launches(name, values, [first], 3)
    alone = [flat(function(**(values | {first: several[:, index]}))) for index in range(3)]
    for result, parts in zip(mapped, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(result, torch.stack(parts), rtol=1e-12, atol=1e-12)

    everything = {each: torch.stack([value, 2 * value]) for each, value in inputs.items()}
    ones = [torch.func.grad(total)({each: value[index] for each, value in everything.items()}) for index in range(2)]
    with bk.record() as recording:
        mapped_gradients = torch.vmap(torch.func.grad(total))(everything)
    assert runs(recording) == launches(name, values, inputs, 2) + launches(FUNCTIONS[name].gradient, values, inputs, 2)
    gradients_of_mapped = torch.func.grad(lambda given: torch.vmap(total)(given).sum())(everything)
    with torch.no_grad():
        assert not any(each.requires_grad for each in torch.func.grad(total)(kept).values())
    for each in inputs:
        for gradients in (mapped_gradients, gradients_of_mapped):
            torch.testing.assert_close(gradients[each], torch.stack([one[each] for one in ones]), rtol=1e-12, atol=1e-12)
