"""Functions: the same results as their plans give, in every framework, and a clear word for what they do not take."""

from __future__ import annotations

import contextlib
import gc
import inspect
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.check.trial import random_inputs, run_trial
from baracuda_kernels.core import call as call_module
from baracuda_kernels.core import registry
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.framework import framework_of
from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.view import View
from baracuda_kernels.interop.numpy_arrays import dtype_of
from baracuda_kernels.interop.torch_views import DTYPES

try:
    import jax
except ImportError:  # an optional framework
    jax = None

FUNCTIONS = registry.functions()
CPU = bk.Stream.cpu()
F32 = bk.ElementKind.F32
with_jax = pytest.mark.skipif(jax is None, reason="JAX is not installed")


# --- frameworks ------------------------------------------------------------------------------------------------------------------


def numpy_array(values: Any, element: bk.ElementKind) -> Any:
    return numpy.asarray(values).astype(dtype_of(element))


def torch_array(values: Any, element: bk.ElementKind) -> Any:
    return torch.from_numpy(numpy.array(values)).to(DTYPES[element])


def jax_array(values: Any, element: bk.ElementKind) -> Any:
    return jax.device_put(numpy_array(values, element))


FRAMEWORKS: dict[str, Callable[[Any, bk.ElementKind], Any]] = {"NumPy": numpy_array, "PyTorch": torch_array, "JAX": jax_array}
FRAMEWORK_NAMES = ["NumPy", "PyTorch", pytest.param("JAX", marks=with_jax)]


def bits(array: Any) -> bytes:
    if isinstance(array, torch.Tensor):
        return bytes(array.contiguous().reshape(-1).view(torch.uint8).numpy()) if array.numel() else b""
    return numpy.asarray(array).tobytes()


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    """JAX has 64-bit numbers."""
    with jax.enable_x64(True) if jax is not None else contextlib.nullcontext():
        yield


# --- every function on the problems of its plan -------------------------------------------------------------------------------------


def last_axes(problem: Any) -> tuple[int, ...]:
    return tuple(range(-problem.norm_rank, 0))


# Options that are not a field of the descriptor under the same name.
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "axis": lambda problem: problem.softmax_axis - len(problem.input_shape),
    "axes": last_axes,
    "return_rms": lambda problem: True,
    "return_attn": lambda problem: True,
    "return_final_state": lambda problem: problem.has_final_state,
}


def options_for(each: Function, problem: Any) -> dict[str, Any]:
    return {name: OPTIONS[name](problem) if name in OPTIONS else getattr(problem, name) for name in each.options}


def problems(each: Function, element: bk.ElementKind, count: int) -> list[tuple[Any, dict[str, Any]]]:
    """Problems that the function states as they are, with inputs."""
    random, rng = Random(f"{each.name} {element}"), numpy.random.default_rng(len(each.name))
    found: list[tuple[Any, dict[str, Any]]] = []
    while len(found) < count:
        problem = each.plan.cases.draw(random, element)
        inputs = random_inputs(each.plan, problem, rng, with_optional=random.random() < 0.5)
        views = {
            name: View(each.name, name, operand.contiguous_layout(problem, bk.Device.cpu())) if name in inputs else None
            for name, operand in each.inputs.items()
        }
        stated = each.describe(**views, **options_for(each, problem))
        if getattr(stated, "kind", None) is getattr(problem, "kind", None):  # softmax is not log_softmax
            # What is stored in wider elements than the drawn problem's has other inputs.
            inputs = random_inputs(each.plan, stated, rng, with_optional=len(found) % 2 == 0)
            found.append((stated, inputs))
    return found


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("framework", FRAMEWORK_NAMES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_the_plans(name: str, framework: str, element: bk.ElementKind) -> None:
    """Bit for bit, of the same kind, twice: worked out, and remembered. The trial compares with the float64 reference."""
    each, make = FUNCTIONS[name], FRAMEWORKS[framework]
    for problem, inputs in problems(each, element, 4):
        expected = run_trial(each.plan.select(CPU, problem), inputs).bits
        arrays = {name: make(values, each.inputs[name].element(problem)) for name, values in inputs.items()}
        given = dict.fromkeys(each.inputs) | arrays
        options = options_for(each, problem)
        for _ in range(2):
            results = each(**given, **options)
            named = dict(zip(each.returned(options), results if isinstance(results, tuple) else (results,), strict=True))
            there = each.results(problem, options)
            assert {name for name, array in named.items() if array is not None} == set(there)
            for output in there:
                assert type(named[output]) is type(next(iter(arrays.values())))
                assert tuple(named[output].shape) == each.outputs[output].shapes(problem)[0]
                assert bk.TensorRef.of(named[output]).element is each.outputs[output].element(problem)
                assert bits(named[output]) == expected[output], output


@pytest.mark.parametrize("framework", ["NumPy", "PyTorch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_go_where_they_are_wanted(name: str, framework: str) -> None:
    each, make = FUNCTIONS[name], FRAMEWORKS[framework]
    (problem, inputs), *_ = problems(each, F32, 1)
    arrays = dict.fromkeys(each.inputs) | {
        name: make(values, each.inputs[name].element(problem)) for name, values in inputs.items()
    }
    options = options_for(each, problem)
    names = each.returned(options)
    results = each(**arrays, **options)
    results = results if isinstance(results, tuple) else (results,)
    out = tuple(
        None if result is None else make(numpy.full(result.shape, numpy.nan), bk.TensorRef.of(result).element) for result in results
    )
    for form in (
        out if len(out) > 1 else out[0],
        list(out),
        {name: array for name, array in zip(names, out, strict=True) if array is not None},
    ):
        for array in out:
            if array is not None:
                array[...] = math.nan
        again = each(**arrays, **options, out=form)
        again = again if isinstance(again, tuple) else (again,)
        for array, result, expected in zip(out, again, results, strict=True):
            assert result is array
            assert array is None or bits(array) == bits(expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stub_and_the_package_know_it(name: str) -> None:
    assert getattr(bk, name) is FUNCTIONS[name]
    assert FUNCTIONS[name].__doc__
    parameters = list(inspect.signature(getattr(bk, name)).parameters)
    assert parameters[-3:] == ["out", "preference", "stream"]
    assert parameters[:-3] == list(inspect.signature(FUNCTIONS[name].describe).parameters)


def test_every_plan_has_a_function() -> None:
    assert {each.plan for each in FUNCTIONS.values()} == set(registry.plans().values())


# --- the public face ----------------------------------------------------------------------------------------------------------------


def x_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_softmax_is_pytorchs() -> None:
    x = x_of(4, 5, 6)
    for axis in (-3, -2, -1, 0, 1, 2):
        torch.testing.assert_close(bk.softmax(x, axis), torch.softmax(x, axis))
        torch.testing.assert_close(bk.log_softmax(x, axis=axis), torch.log_softmax(x, axis))
    torch.testing.assert_close(bk.softmax(x), torch.softmax(x, -1))


def test_rms_norm_is_pytorchs() -> None:
    x, gamma = x_of(4, 6, 8), x_of(8)
    torch.testing.assert_close(bk.rms_norm(x, gamma), torch.nn.functional.rms_norm(x, (8,), gamma, 1e-6))
    torch.testing.assert_close(bk.rms_norm(x, axes=(-2, 2), eps=0.1), torch.nn.functional.rms_norm(x, (6, 8), None, 0.1))
    torch.testing.assert_close(bk.rms_norm(x, axes=[1, 2], eps=0.1), torch.nn.functional.rms_norm(x, (6, 8), None, 0.1))


def test_the_root_mean_square_of_halves_is_kept_in_f32() -> None:
    y, rms = bk.rms_norm(x_of(4, 8).bfloat16(), return_rms=True)
    assert (y.dtype, rms.dtype, rms.shape) == (torch.bfloat16, torch.float32, (4, 1))


def test_sdpa_is_pytorchs() -> None:
    q, k, v = x_of(2, 4, 5, 8), x_of(2, 4, 7, 8, seed=1), x_of(2, 4, 7, 3, seed=2)
    own = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(bk.sdpa(q, k, v), own(q, k, v))
    torch.testing.assert_close(bk.sdpa(q, k, v, scale=0.3, is_causal=True), own(q, k, v, scale=0.3, is_causal=True))
    mask = x_of(2, 4, 5, 7)
    y, attn = bk.sdpa(q, k, v, mask, return_attn=True)
    torch.testing.assert_close(y, own(q, k, v, mask))
    torch.testing.assert_close(attn, torch.softmax(q @ k.mT * 8**-0.5 + mask, -1))
    torch.testing.assert_close(bk.sdpa(q, k[:, :2], v[:, :2]), own(q, k[:, :2], v[:, :2], enable_gqa=True))


def test_rope_turns_as_llamas_code_does() -> None:
    x = x_of(2, 3, 5, 8)
    angles = torch.arange(5.0)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    turned = torch.cat([-x[..., 4:], x[..., :4]], -1)
    for style in ("half", bk.RopeStyle.HALF):
        torch.testing.assert_close(bk.rope(x, style=style), x * cos + turned * sin)
    torch.testing.assert_close(bk.rope(x, torch.arange(5)), bk.rope(x))
    torch.testing.assert_close(bk.rope_backward(bk.rope(x)), x)


def test_a_scan_goes_on_from_its_final_state() -> None:
    x, dt, a = x_of(1, 10, 2, 4), x_of(1, 10, 2).abs(), -x_of(2).abs()
    b, c = x_of(1, 10, 1, 3, seed=1), x_of(1, 10, 1, 3, seed=2)
    whole, last = bk.ssd_chunk_scan(x, dt, a, b, c, chunk_size=4, return_final_state=True)
    _, state = bk.ssd_chunk_scan(x[:, :6], dt[:, :6], a, b[:, :6], c[:, :6], return_final_state=True)
    rest, end = bk.ssd_chunk_scan(x[:, 6:], dt[:, 6:], a, b[:, 6:], c[:, 6:], initial_state=state, return_final_state=True)
    torch.testing.assert_close(rest, whole[:, 6:])
    torch.testing.assert_close(end, last)


@pytest.mark.parametrize("name", [name for name, each in FUNCTIONS.items() if each.gradient is not None])
def test_gradients_are_the_slopes(name: str) -> None:
    """Along a random direction in float64; what the backward reads is found by the names of its operands."""
    each, rng = FUNCTIONS[name], numpy.random.default_rng(3)
    gradient = each.backward()
    assert gradient is not None
    for problem, inputs in problems(each, bk.ElementKind.F64, 6):
        if any(array.size == 0 for array in inputs.values()):
            continue
        options = gradient.saving(options_for(each, problem))
        given = dict.fromkeys(each.inputs) | inputs
        of_input = {moved: result for result, moved in gradient.results.items() if moved in inputs}

        def results(moved: dict[str, Any], options: Any = options) -> dict[str, Any]:
            found = each(**moved, **options)
            return dict(zip(each.returned(options), found if isinstance(found, tuple) else (found,), strict=True))

        there = results(given)
        upstream = {
            name: rng.standard_normal(there[output].shape)
            for name, output in gradient.upstream.items()
            if there.get(output) is not None
        }
        back = gradient.function
        saved = {name: given[name] for name in gradient.saved_inputs} | {name: there[name] for name in gradient.saved_outputs}
        slopes = back(**(dict.fromkeys(back.inputs) | saved | upstream), **{name: options[name] for name in gradient.options})
        slopes = dict(zip(back.outputs, slopes if isinstance(slopes, tuple) else (slopes,), strict=True))
        for moved, result in of_input.items():
            direction, step = rng.standard_normal(inputs[moved].shape), 1e-6
            ahead, behind = (results(given | {moved: inputs[moved] + sign * step * direction}) for sign in (1, -1))
            measured = sum(
                float((upstream[each_upstream] * (ahead[output] - behind[output])).sum()) / (2 * step)
                for each_upstream, output in gradient.upstream.items()
                if each_upstream in upstream
            )
            assert float((slopes[result] * direction).sum()) == pytest.approx(measured, rel=1e-5, abs=1e-6)


# --- memory -------------------------------------------------------------------------------------------------------------------------


def test_in_place() -> None:
    x = x_of(4, 8)
    expected = torch.softmax(x, -1)
    assert bk.softmax(x, out=x) is x
    torch.testing.assert_close(x, expected)
    with pytest.raises(bk.InvalidProblem, match="overlaps another operand"):
        bk.softmax(x[:3], out=x[1:])
    q = x_of(1, 1, 4, 4)
    with pytest.raises(bk.InvalidProblem, match="overlaps another operand"):
        bk.sdpa(q, q, q, out=q)


def test_any_strides_are_fine_where_the_plan_takes_them() -> None:
    x = x_of(8, 6)
    torch.testing.assert_close(bk.softmax(x.t()), torch.softmax(x.t(), -1))
    torch.testing.assert_close(bk.softmax(x[::2, 1:4]), torch.softmax(x[::2, 1:4], -1))
    torch.testing.assert_close(bk.softmax(x[0].expand(3, 6), 0), torch.full((3, 6), 1 / 3))
    numpy.testing.assert_allclose(bk.softmax(x.numpy()[::-1]), torch.softmax(x, -1).numpy()[::-1], rtol=1e-6)


def test_scratch_of_the_callers() -> None:
    q = x_of(1, 2, 4, 8)
    _, attn = bk.sdpa(q, q, q, return_attn=True)
    room = torch.full_like(attn, torch.nan)
    expected = bk.sdpa_backward(q, q, q, attn, q)
    for ours, theirs in zip(bk.sdpa_backward(q, q, q, attn, q, out={"dscores_ws": room}), expected, strict=True):
        assert torch.equal(ours, theirs)
    assert not room.isnan().any()


def test_scalars_of_a_wrong_address_are_refused_with_advice() -> None:
    room = numpy.zeros(4 * 9 + 1, numpy.uint8)[1:]
    x = room[: 4 * 8].view(numpy.float32)
    with pytest.raises(bk.MisalignedOperand, match=r"pass numpy\.ascontiguousarray\(x\)"):
        bk.softmax(x)


# --- what is refused ----------------------------------------------------------------------------------------------------------------

X = x_of(4, 8)
Q = x_of(1, 2, 4, 8)

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a list": (lambda: bk.softmax([1.0]), bk.InvalidProblem, "x cannot be seen as an array: got builtins.list"),
    "nothing": (lambda: bk.softmax(None), bk.InvalidProblem, "x is missing"),
    "a view": (lambda: bk.softmax(bk.TensorRef.of(X)), bk.InvalidProblem, "TensorRef, wanted an array of NumPy, PyTorch, JAX or CuPy"),
    "two frameworks": (
        lambda: bk.softmax_backward(X, X.numpy()), bk.InvalidProblem, "y belongs to another framework: got an array of NumPy"),
    "two elements": (lambda: bk.softmax_backward(X, X.double()), bk.InvalidProblem, "dy has the wrong element: got f32, wanted f64"),
    "another shape": (lambda: bk.rms_norm(X, X[0, :3]), bk.InvalidProblem, r"gamma has the wrong shape: got \(3,\), wanted \(8,\)"),
    "another rank": (lambda: bk.rope(X), bk.InvalidProblem, r"rope: x has the wrong rank: got shape \(4, 8\), wanted a rank of 4"),
    "an element nobody serves": (lambda: bk.softmax(X.int()), bk.Unsupported, "no kernel serves this problem"),
    "a device nobody serves": (lambda: bk.softmax(X.to("meta")), bk.InvalidProblem, "device meta is not served"),
    "no such axis": (lambda: bk.softmax(X, 2), bk.InvalidProblem, "axis is not an axis: got 2, wanted an int, -2 <= axis < 2"),
    "a fractional axis": (lambda: bk.softmax(X, 1.0), bk.InvalidProblem, "axis is not an axis: got 1.0"),
    "a true axis": (lambda: bk.softmax(X, True), bk.InvalidProblem, "axis is not an axis: got True"),
    "an array for an axis": (lambda: bk.softmax(X, numpy.array(1)), bk.InvalidProblem, "axis has the wrong type: got a ndarray"),
    "axes in the front": (lambda: bk.rms_norm(X, axes=0), bk.InvalidProblem, "a non-empty suffix"),
    "an axis twice": (lambda: bk.rms_norm(X, axes=(1, -1)), bk.InvalidProblem, "no axis twice"),
    "no such style": (lambda: bk.rope(Q, style="whole"), bk.InvalidProblem, "got 'whole', wanted RopeStyle.INTERLEAVED or"),
    "a strange scale": (lambda: bk.sdpa(Q, Q, Q, scale="big"), bk.InvalidProblem, "scale has the wrong type"),
    "columns that lie apart": (
        lambda: bk.rope(Q.transpose(2, 3)), bk.InvalidProblem, r"stride 8 on the last axis, wanted stride 1: pass x\.contiguous\(\)"),
    "a gradient": (lambda: bk.softmax(X.clone().requires_grad_()), bk.InvalidProblem, r"wanted baracuda_kernels\.torch\.softmax"),
    "a preference of another kind": (lambda: bk.softmax(X, preference=3), bk.InvalidProblem, "preference has the wrong type"),
    "a preference that cannot be looked up": (lambda: bk.softmax(X, preference=[]), bk.InvalidProblem, "preference has the wrong type"),
    "a preference that cannot be met": (
        lambda: bk.softmax(X, preference=bk.PlanPreference(prefer_backend="triton")), bk.Unsupported, "does not run on this device"),
    "a stream of another kind": (lambda: bk.softmax(X, stream=3), bk.InvalidProblem, "stream has the wrong type"),
    "a stream elsewhere": (lambda: bk.softmax(X, stream=bk.Stream.cuda()), bk.InvalidProblem, "stream is on the wrong device"),
    "an output of another framework": (lambda: bk.softmax(X, out=X.numpy()), bk.InvalidProblem, "y belongs to another framework"),
    "an output of another shape": (lambda: bk.softmax(X, out=X[0]), bk.InvalidProblem, "y has the wrong shape"),
    "an output of no kind": (lambda: bk.softmax(X, out=7), bk.InvalidProblem, "y belongs to another framework: got a int"),
    "one output for two": (
        lambda: bk.rms_norm(X, return_rms=True, out=X), bk.InvalidProblem, "out has the wrong type: got Tensor, wanted a tuple or dict of"),
    "three outputs for two": (lambda: bk.rms_norm(X, return_rms=True, out=(X,) * 3), bk.InvalidProblem, "one for each of y, rms"),
    "an output nobody knows": (lambda: bk.softmax(X, out={"z": X}), bk.InvalidProblem, "z is not an operand"),
    "an option nobody knows": (lambda: bk.softmax(X, dim=1), TypeError, "softmax: got an unexpected keyword argument 'dim'"),
    "no array at all": (lambda: bk.softmax(), TypeError, "softmax: missing a required argument: 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("is_known", [False, True])
def test_refused(case: str, is_known: bool) -> None:
    """Whether a call like it was answered before or not."""
    if is_known:
        bk.softmax(X), bk.softmax(X, 1), bk.rms_norm(X, axes=1), bk.rope(Q), bk.sdpa(Q, Q, Q), bk.rms_norm(X, return_rms=True)
    else:
        for each in FUNCTIONS.values():
            each.known.clear()
    call, error, message = REFUSED[case]
    before = X.clone()
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, bk.Error | TypeError)
    assert torch.equal(X, before)


def test_tensors_that_require_a_gradient() -> None:
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert torch.equal(bk.softmax(x), bk.softmax(X))
    assert torch.equal(bk.softmax.compute(x), bk.softmax(X))
    assert not bk.softmax.compute(x).requires_grad
    for _ in range(2):
        with pytest.raises(bk.InvalidProblem, match="needs a gradient"):
            bk.softmax(x)


def test_a_parameter_gives_a_tensor() -> None:
    with torch.no_grad():
        assert type(bk.softmax(torch.nn.Parameter(X))) is torch.Tensor


def test_outputs_that_are_read_only() -> None:
    y = numpy.zeros((4, 8), numpy.float32)
    y.flags.writeable = False
    with pytest.raises(bk.InvalidProblem, match="y is read-only memory"):
        bk.softmax(X.numpy(), out=y)


# --- plans are kept -------------------------------------------------------------------------------------------------------------------


def test_a_plan_is_selected_once() -> None:
    for each in FUNCTIONS.values():
        each.known.clear()
    call_module._plans.clear()
    with bk.record() as recording:
        for x in (X, X.clone(), X.numpy(), X.t().contiguous().t()):
            bk.softmax(x), bk.softmax(x, 1), bk.softmax(x, axis=-1)
    (entry,) = recording.entries()
    assert (entry.selected, entry.runs) == (1, 12)


def test_the_plan_of_a_call() -> None:
    plan = bk.softmax.select(X, axis=0)
    assert plan is bk.softmax.select(X.numpy(), -2)
    assert (plan.descriptor.softmax_axis, plan.sku.name) == (0, "numba.softmax")
    assert bk.softmax.select(X, preference=bk.PlanPreference(prefer_backend="aten")).sku.name == "aten.softmax"
    with pytest.raises(bk.InvalidProblem, match="axis is not an axis"):
        bk.softmax.select(X, 2)


def test_a_preference_is_kept_apart() -> None:
    with bk.record() as recording:
        for _ in range(2):
            bk.softmax(X), bk.softmax(X, preference=bk.PlanPreference(prefer_backend="aten"))
    assert {entry.plan.sku.backend: entry.runs for entry in recording.entries()} == {
        bk.BackendKind.NUMBA: 2,
        bk.BackendKind.ATEN: 2,
    }


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bk.softmax.known, "most", 5)
    monkeypatch.setattr(call_module._plans, "most", 7)
    for extent in range(1, 40):
        x = x_of(2, extent)
        torch.testing.assert_close(bk.softmax(x), torch.softmax(x, -1))
        assert len(bk.softmax.known) <= 5
        assert len(call_module._plans) <= 7


def test_other_wisdom_means_another_choice() -> None:
    bk.softmax(X)
    bk.forget_wisdom()
    assert len(bk.softmax.known) == 0 and len(call_module._plans) == 0


def test_a_forgotten_store_of_calls_is_not_held() -> None:
    before = len(Bounded._all)
    Bounded(1)
    gc.collect()
    assert len(Bounded._all) == before


def test_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They meet new and known problems together, while what is kept is thrown away again and again."""
    monkeypatch.setattr(bk.softmax.known, "most", 3)
    monkeypatch.setattr(call_module._plans, "most", 4)
    inputs = [x_of(3, extent, seed=extent) for extent in range(1, 9)]
    expected = [torch.softmax(x, -1) for x in inputs]
    start = threading.Barrier(8)

    def work(turn: int) -> None:
        start.wait()
        for step in range(100):
            which = (turn + step) % len(inputs)
            torch.testing.assert_close(bk.softmax(inputs[which]), expected[which])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_threads_that_meet_a_new_problem_select_one_plan() -> None:
    call_module._plans.clear()
    bk.softmax.known.clear()
    start = threading.Barrier(8)

    def work(_: int) -> None:
        start.wait()
        bk.softmax(X)

    with bk.record() as recording, ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    (entry,) = recording.entries()
    assert (entry.selected, entry.runs) == (1, 8)


# --- declaring ------------------------------------------------------------------------------------------------------------------------


def test_a_function_reads_what_its_plan_reads() -> None:
    def half(dy: View, axis: int = -1) -> Any: ...

    with pytest.raises(TypeError, match="half: SoftmaxBackwardPlan also reads y"):
        function(bk.SoftmaxBackwardPlan)(half)


def test_a_gradient_is_of_something() -> None:
    wrong = Function(FUNCTIONS["rope"].describe, bk.RopePlan, "sdpa_backward")
    registry.register_function(FUNCTIONS["rope"])
    with pytest.raises(TypeError, match="sdpa_backward: q is no gradient of y"):
        wrong.backward()


def test_what_the_gradients_read() -> None:
    gradient = bk.ssd_chunk_scan.backward()
    assert gradient.saved_inputs == ("x", "dt", "a", "b", "c", "initial_state") and gradient.saved_outputs == ()
    assert gradient.upstream == {"dy": "y", "d_final_state": "final_state"}
    assert gradient.results["d_dt"] == "dt" and gradient.options == ("chunk_size",)
    assert bk.rms_norm.backward().saving({"eps": 1.0, "return_rms": False}) == {"eps": 1.0, "return_rms": True}


def test_arrays_of_frameworks_are_told_by_their_type() -> None:
    named = {"NumPy": numpy.zeros(1), "PyTorch": torch.zeros(1)}
    assert {name: framework_of(array).name for name, array in named.items()} == {name: name for name in named}
    assert framework_of(numpy.zeros(1, ml_dtypes.bfloat16)).name == "NumPy"
    assert framework_of(1.0) is None and framework_of(None) is None
