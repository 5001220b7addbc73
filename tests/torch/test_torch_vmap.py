"""Every function under `torch.vmap` gives what a loop of single calls gives, and in one launch where the op can."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Collection, Iterator
from types import NoneType, SimpleNamespace
from typing import Any, get_args

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry
from baracuda_kernels.core.function import function
from baracuda_kernels.core.sku import OpCategory
from baracuda_kernels.core.view import View
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.torch.operators import entry

from conftest import DEVICE
from torch_calls import WHERE, flat, launches, runs, tensor

FUNCTIONS = registry.functions()

# --- calls of every function -----------------------------------------------------------------------------------------------------

SIZE = 4  # of batches, and every extent of square operands: which axis is which shows in the numbers alone
RANKS = {"rope": 4, "sdpa": 4, "ssd": 4}  # by family; others are given matrices
OBLONG = (1, 2, 3, 4)
ELEMENTS = (bk.ElementKind.F64, bk.ElementKind.I64)  # the first that the op is served in
OWN_ELEMENTS = {"fweights": bk.ElementKind.I64, "positions": bk.ElementKind.I64}
GIVEN = {"q": (0.1, 0.25, 0.5, 0.75), "size": (1, SIZE), "dtype": "int64", "input_element": "float64"}
ALONG = {"dim": (0, 1), "axis": (0, 1), "axes": ((1,), (0, 1))}  # options that name axes
PLANES = {"matrix_norm": ((0, 1),), "matrix_norm_backward": ((0, 1),)}  # which name two


def options(name: str) -> Iterator[dict[str, Any]]:
    """Those that have to be given, along every axis."""
    own = FUNCTIONS[name].options
    needed = {each: GIVEN[each] for each, option in own.items() if option.is_required and each in GIVEN}
    along = [each for each in ALONG if each in own and FUNCTIONS[name].plan.category is not OpCategory.GATED_ACTIVATION]
    for axes in PLANES.get(name, ALONG[along[0]]) if along else ():
        yield needed | {along[0]: axes}
    if not along:
        yield needed


Forms = dict[str, tuple[tuple[int, ...], bk.ElementKind]]


def forms(name: str, shape: tuple[int, ...], given: dict[str, Any], left_out: Collection[str] = ()) -> Forms:
    """Shapes and elements of the operands: those of the shape, as far as they may, in the first element that is served."""
    each = FUNCTIONS[name]
    everything = {option.name: given.get(option.name, option.default) for option in each.options.values()}
    there = [of for of in each.inputs if of not in left_out]
    for element in ELEMENTS:
        views = {of: View(name, of, SimpleNamespace(shape=shape, element=OWN_ELEMENTS.get(of, element))) for of in there}  # type: ignore[arg-type]
        problem = each.describe(**dict.fromkeys(each.inputs) | views, **everything)
        if any(not any(kernel.reasons_against_problem(problem)) for kernel in each.plan.kernels if kernel.device is DEVICE.kind):
            return {of: (each.inputs[of].shapes(problem)[0], each.inputs[of].element(problem)) for of in there}
    raise AssertionError(f"{name} is served in none of {ELEMENTS}")


def calls(name: str) -> Iterator[tuple[Forms, dict[str, Any]]]:
    """Operands and options: square operands and oblong ones, small ones beside a large one, and calls without what may be left out."""
    each, rank = FUNCTIONS[name], RANKS.get(registry.family(FUNCTIONS[name].plan), 2)
    small = [of for of, operand in each.inputs.items() if operand.broadcasts][1:]
    parameters = inspect.signature(each.describe, eval_str=True).parameters
    left_out = [of for of in each.inputs if of not in each.scalars and NoneType in get_args(parameters[of].annotation)]
    for given in options(name):
        square, oblong = forms(name, (SIZE,) * rank, given), forms(name, OBLONG[-rank:], given)
        yield square, given
        yield oblong, given
        if small:
            yield square | {of: (((SIZE,), (SIZE, 1))[place % 2], square[of][1]) for place, of in enumerate(small)}, given
        if left_out:
            yield forms(name, OBLONG[-rank:], given, left_out), given | dict.fromkeys(left_out)


def drawn(shape: tuple[int, ...], element: bk.ElementKind, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if element.is_float or element.is_complex:
        return torch.rand(shape, generator=generator, dtype=torch.float64).to(WHERE, DTYPES[element])
    low, high = (0, 2) if element is bk.ElementKind.BOOL else (1, SIZE)  # so that they may be indices
    return torch.randint(low, high, shape, generator=generator).to(WHERE, DTYPES[element])


def in_dims(ranks: list[int]) -> Iterator[list[int]]:
    """The first axis of all operands, the second and so on, the last; and of each one another."""
    for axis in range(max(ranks) + 1):
        yield [min(axis, rank) for rank in ranks]
    if len(ranks) > 1:
        yield [place % (rank + 1) for place, rank in enumerate(ranks)]


def compare(found: Any, expected: list[torch.Tensor], *recordings: bk.Recording) -> None:
    """Bit for bit where the kernels promise it."""
    exact = all(each.plan.precision_guarantee.batch_invariant for recording in recordings for each in recording.entries())
    bound = 0.0 if exact else 1e-12
    for one, other in zip(flat(found), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=bound, atol=bound, equal_nan=True)


# --- every function --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_what_its_problems_are(name: str) -> None:
    """A batch of each operand along each of its axes, and of all of them together."""
    of_tensors = getattr(bt, name)
    for operands, given in calls(name):
        single = {of: drawn(*form, seed) for seed, (of, form) in enumerate(operands.items())}
        several = {of: drawn((SIZE, *shape), element, 31 + len(of)) for of, (shape, element) in operands.items()}
        for batched in [*([of] for of in operands), [*operands]][: len(operands) + (len(operands) > 1)]:

            def call(*ones: Any, batched: Any = batched, single: Any = single, given: Any = given) -> Any:
                return tuple(flat(of_tensors(**single | dict(zip(batched, ones, strict=True)), **given)))

            with bk.record() as by_one:
                alone = [call(*ones) for ones in zip(*(several[of] for of in batched), strict=True)]
            expected = [torch.stack(parts) for parts in zip(*alone, strict=True)]
            for axes in in_dims([single[of].ndim for of in batched]):
                with bk.record() as together:
                    moved = [several[of].movedim(0, axis) for of, axis in zip(batched, axes, strict=True)]
                    found = torch.vmap(call, tuple(axes))(*moved)
                compare(found, expected, by_one, together)
                assert runs(together) == launches(name, single, batched, SIZE), (batched, axes, given)


# --- batches of batches, of one and of none ---------------------------------------------------------------------------------------

NESTED: dict[str, tuple[dict[str, Any], int]] = {
    "mul": ({}, 1),
    "softmax_backward": ({"axis": 0}, 1),
    "rms_norm": ({"axes": 0}, 2),  # one for each gamma
    "average": ({"dim": 0}, 6),
    "cosine_similarity": ({"dim": 0}, 6),
}  # with options, and how many launches there are


@pytest.mark.parametrize("name", NESTED)
def test_a_batch_of_batches(name: str) -> None:
    """Of the first operand along two axes, of the second along one."""
    given, count = NESTED[name]
    of_tensors, first, second = getattr(bt, name), tensor(3, 5, 2), tensor(2, 5).exp()
    with bk.record() as recording:
        found = torch.vmap(torch.vmap(lambda x, y: of_tensors(x, y, **given), (0, None)), (2, 0), 1)(first, second)
    expected = [torch.stack([of_tensors(x, y, **given) for x, y in zip(row, second, strict=True)]) for row in first.mT]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-12, atol=1e-12)
    assert runs(recording) == count


@pytest.mark.parametrize(("name", "given"), [("exp", {}), ("softmax", {"axis": 0}), ("sum", {"dim": 0}), ("cumsum", {"dim": 0})])
def test_where_batches_come_in_and_go_out(name: str, given: dict[str, Any]) -> None:
    of_tensors, x = getattr(bt, name), tensor(3, 4, 5)
    for at, to in itertools.product((0, 1, 2, -1), (0, 1, -1)):
        found = torch.vmap(lambda one: of_tensors(one, **given), at, to)(x)
        expected = torch.stack([of_tensors(one, **given) for one in x.unbind(at)], to)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", ["exp", "median", "rms_norm", "sdpa", "softmax", "ssd_chunk_scan_backward", "sum"])
def test_a_batch_of_none_and_of_one(name: str, size: int) -> None:
    operands, given = next(calls(name))
    single = [drawn(*form, seed) for seed, form in enumerate(operands.values())]
    expected = [each[None][:size] for each in flat(getattr(bt, name)(*single, **given))]
    several = [each[None][:size] for each in single]
    several[0].requires_grad_()
    found = flat(torch.vmap(lambda *ones: getattr(bt, name)(*ones, **given))(*several))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    if FUNCTIONS[name].gradient:
        sum(each.sum() for each in found if each.requires_grad).backward()
        assert several[0].grad is not None and several[0].grad.shape == several[0].shape


@pytest.mark.parametrize("name", ["exp", "rms_norm", "softmax"])
def test_problems_of_as_many_axes_as_are_served(name: str) -> None:
    """One more axis would be one too many."""
    x = tensor(2, *(1, 2) * 4)
    with bk.record() as recording:
        found = torch.vmap(getattr(bt, name))(x)
    torch.testing.assert_close(found, torch.stack([getattr(bt, name)(one) for one in x]), rtol=0, atol=0)
    assert runs(recording) == 2


def test_positions_of_each_batch_go_into_one_launch() -> None:
    x, positions = tensor(3, 2, 4, 5, 6), torch.arange(30, device=WHERE).view(3, 2, 5)
    with bk.record() as recording:
        found = torch.vmap(bt.rope)(x, positions)
    assert torch.equal(found, torch.stack([bt.rope(*each) for each in zip(x, positions, strict=True)]))
    assert runs(recording) == 1


def test_a_batch_of_unknown_size_is_compiled_once() -> None:
    graphs: list[list[str]] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append([str(node.target) for node in graph.graph.nodes if "baracuda" in str(node.target)])
        return graph

    torch.compiler.reset()
    mapped = torch.vmap(lambda x: bt.mul(bt.softmax(x, 0), bt.rope(x[None, None])), 1)
    compiled = torch.compile(mapped, backend=aot_autograd(fw_compiler=backend), fullgraph=True, dynamic=True)
    for size in (3, 5):
        assert torch.equal(compiled(tensor(7, size, 4)), mapped(tensor(7, size, 4)))
    torch.compiler.reset()
    (operators,) = graphs
    assert sorted(operators) == [f"baracuda.{name}.default" for name in ("mul", "rope", "softmax")]


# --- what is no larger problem ------------------------------------------------------------------------------------------------------


def test_operands_that_fit_the_larger_problem_alone_are_refused() -> None:
    q, k = tensor(3, 1, 2, 5, 4), tensor(3, 2, 5, 4)
    with pytest.raises(bk.InvalidProblem, match=r"k has the wrong shape: got \(3, 2, 5, 4\), wanted \(1, 2, 5, 4\)"):
        torch.vmap(lambda one: bt.sdpa(one, k, k))(q)


@function(bk.SoftmaxPlan)
def softmax_over(x: View, over: int = -1) -> bk.SoftmaxDescriptor:
    """Softmax whose axis has a name that nobody knows."""
    return bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, x.shape, x.axis(over, "over"), x.element)


@pytest.mark.parametrize(("over", "count"), [(-1, 1), (0, SIZE)])
def test_a_call_that_states_another_problem_is_not_made(over: int, count: int) -> None:
    of_tensors, x = entry(softmax_over.name), tensor(SIZE, SIZE, SIZE)
    with bk.record() as recording:
        found = torch.vmap(lambda one: of_tensors(one, over))(x)
    torch.testing.assert_close(found, torch.softmax(x, over % 2 + 1), rtol=1e-12, atol=1e-12)
    assert runs(recording) == count


# --- gradients ------------------------------------------------------------------------------------------------------------------------

DIFFERENTIATED: dict[str, dict[str, Any]] = {
    "average": {"dim": 0},
    "cosine_similarity": {"dim": 0},
    "cumprod": {"dim": 0},
    "dist": {},
    "logsumexp": {"dim": 1},
    "median": {"dim": 0},
    "mul": {},
    "pairwise_distance": {},
    "polar": {},
    "rms_norm": {},
    "softmax": {"axis": 0},
    "std": {"dim": 1},
    "where": {},
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_jacobians_are_gradients_one_by_one(name: str) -> None:
    """`jacrev` takes the backward of all results in one batch; by every operand, also where one is a batch and the others are not."""
    each, given = FUNCTIONS[name], DIFFERENTIATED[name]
    single = {of: drawn(*form, 3 + seed) for seed, (of, form) in enumerate(forms(name, (SIZE, SIZE), given).items())}
    moved = [of for of in each.backward().results.values() if of in single]

    def call(*ones: torch.Tensor) -> torch.Tensor:
        result = flat(getattr(bt, name)(**single | dict(zip(moved, ones, strict=True)), **given))[0]
        return torch.view_as_real(result) if result.is_complex() else result

    places = tuple(range(len(moved)))
    inputs = [single[of].requires_grad_() for of in moved]
    results = call(*inputs)
    rows = [torch.autograd.grad(one, inputs, retain_graph=True) for one in results.flatten()]
    for found, expected in zip(torch.func.jacrev(call, places)(*inputs), zip(*rows, strict=True), strict=True):
        torch.testing.assert_close(
            found.flatten(0, results.ndim - 1) if results.ndim else found[None], torch.stack(expected), rtol=1e-12, atol=1e-12
        )

    slopes = torch.func.grad(lambda *ones: (call(*ones) ** 2).sum(), places)
    several = [torch.stack([one, one.flip(0), -one]).detach() for one in inputs]
    for batched in [*([place] for place in places), list(places)]:
        dims = tuple(0 if place in batched else None for place in places)
        mapped = torch.vmap(slopes, dims)(*(several[place] if place in batched else inputs[place] for place in places))
        alone = [slopes(*(several[place][index] if place in batched else inputs[place] for place in places)) for index in range(3)]
        for found, expected in zip(mapped, zip(*alone, strict=True), strict=True):
            torch.testing.assert_close(found, torch.stack(expected), rtol=1e-12, atol=1e-12)
