"""Functions: the same results as their plans give, in every framework, and as PyTorch's own functions give."""

from __future__ import annotations

import contextlib
import copy
import csv
import inspect
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.arrays.numpy_arrays import dtype_of
from baracuda_kernels.core import registry
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.view import View
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.verify.trial import random_inputs, run_trial

import conftest
from conftest import DEVICE, STREAM, own_functions
from covering import one_of_each

try:
    import jax

    from baracuda_kernels.arrays.jax_arrays import wide_types
except ImportError:  # an optional framework
    jax = None

FUNCTIONS, OWN = registry.functions(), own_functions()
ON_CUDA = DEVICE.kind is bk.DeviceKind.CUDA
F32 = bk.ElementKind.F32


# --- frameworks ------------------------------------------------------------------------------------------------------------------


def numpy_array(values: Any, element: bk.ElementKind) -> Any:
    return numpy.asarray(values).astype(dtype_of(element))


def torch_array(values: Any, element: bk.ElementKind) -> Any:
    return torch.from_numpy(numpy.array(values)).to(str(DEVICE), DTYPES[element])


def jax_array(values: Any, element: bk.ElementKind) -> Any:
    return jax.device_put(numpy_array(values, element))


def cupy_array(values: Any, element: bk.ElementKind) -> Any:
    if element is bk.ElementKind.BF16:
        pytest.skip("CuPy has no bf16")
    return pytest.importorskip("cupy").asarray(numpy_array(values, element))


FRAMEWORKS: dict[str, Callable[[Any, bk.ElementKind], Any]] = {
    "NumPy": numpy_array,
    "PyTorch": torch_array,
    "JAX": jax_array,
    "CuPy": cupy_array,
}
WRITABLE = ["PyTorch", "CuPy"] if ON_CUDA else ["NumPy", "PyTorch"]
FRAMEWORK_NAMES = WRITABLE if ON_CUDA or jax is None else [*WRITABLE, "JAX"]


def bits(array: Any) -> bytes:
    if isinstance(array, torch.Tensor):
        return bytes(array.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()) if array.numel() else b""
    return bytes(array.tobytes()) if hasattr(array, "tobytes") else numpy.asarray(array).tobytes()


@pytest.fixture(autouse=True)
def with_64_bits() -> Iterator[None]:
    """JAX has 64-bit numbers."""
    with wide_types() if jax is not None else contextlib.nullcontext():
        yield


# --- every function on the problems of its plan -------------------------------------------------------------------------------------


def last_axes(problem: Any) -> tuple[int, ...]:
    return tuple(range(-problem.norm_rank, 0))


# Options that are not a field of the descriptor under the same name.
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "axis": lambda problem: problem.softmax_axis - len(problem.input_shape),
    "axes": last_axes,
    "dim": lambda problem: problem.axis,
    "return_rms": lambda problem: True,
    "return_attn": lambda problem: True,
    "return_final_state": lambda problem: problem.has_final_state,
}


def options_for(each: Function, problem: Any) -> dict[str, Any]:
    return {name: OPTIONS[name](problem) if name in OPTIONS else getattr(problem, name) for name in each.options}


def problems(each: Function, element: bk.ElementKind, count: int, may_be_empty: bool = True) -> list[tuple[Any, dict[str, Any]]]:
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
            if may_be_empty or all(array.size for array in inputs.values()):
                found.append((stated, inputs))
    return found


def _tried() -> Iterator[Any]:
    """Every function in every framework and element; unless everything is asked for in each of both, but not in each with each."""
    every = [(name, element) for name in FRAMEWORK_NAMES for element in FLOATS]
    for turn, function in enumerate(OWN):
        few = one_of_each([set(enumerate(each)) for each in every], turn)
        for name, element in every if conftest.SLOW else (every[place] for place in few):
            yield pytest.param(function, name, element, id=f"{function}-{name}-{element}")


@pytest.mark.parametrize(("name", "framework", "element"), list(_tried()))
def test_results_are_the_plans(name: str, framework: str, element: bk.ElementKind) -> None:
    """Bit for bit, of the same kind, twice: worked out, and remembered. The trial compares with the float64 reference."""
    each, make = FUNCTIONS[name], FRAMEWORKS[framework]
    for problem, inputs in problems(each, element, 4):
        expected = run_trial(each.plan.select(STREAM, problem), inputs).bits
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


@pytest.mark.parametrize("framework", WRITABLE)
@pytest.mark.parametrize("name", OWN)
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
    declared = inspect.signature(FUNCTIONS[name].describe).parameters
    assert parameters[:-3] == [each for each in declared if each not in FUNCTIONS[name].scalars.values()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_travels_by_name(name: str) -> None:
    assert pickle.loads(pickle.dumps(FUNCTIONS[name])) is copy.deepcopy(FUNCTIONS[name]) is FUNCTIONS[name]


def test_every_plan_has_a_function() -> None:
    fused = {bk.FusedPlan, bk.FusedBackwardPlan}  # whose functions are made by `fuse`
    assert {each.plan for each in FUNCTIONS.values()} == set(registry.plans().values()) - fused


# --- the public face ----------------------------------------------------------------------------------------------------------------


def x_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(str(DEVICE))


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
    cos, sin = angles.cos().repeat(1, 2).to(x), angles.sin().repeat(1, 2).to(x)
    turned = torch.cat([-x[..., 4:], x[..., :4]], -1)
    for style in ("half", bk.RopeStyle.HALF):
        torch.testing.assert_close(bk.rope(x, style=style), x * cos + turned * sin)
    torch.testing.assert_close(bk.rope(x, torch.arange(5, device=x.device)), bk.rope(x))
    torch.testing.assert_close(bk.rope_backward(bk.rope(x)), x)


def test_a_scan_goes_on_from_its_final_state() -> None:
    x, dt, a = x_of(1, 10, 2, 4), x_of(1, 10, 2).abs(), -x_of(2).abs()
    b, c = x_of(1, 10, 1, 3, seed=1), x_of(1, 10, 1, 3, seed=2)
    whole, last = bk.ssd_chunk_scan(x, dt, a, b, c, chunk_size=4, return_final_state=True)
    _, state = bk.ssd_chunk_scan(x[:, :6], dt[:, :6], a, b[:, :6], c[:, :6], return_final_state=True)
    rest, end = bk.ssd_chunk_scan(x[:, 6:], dt[:, 6:], a, b[:, 6:], c[:, 6:], initial_state=state, return_final_state=True)
    torch.testing.assert_close(rest, whole[:, 6:])
    torch.testing.assert_close(end, last)


@pytest.mark.parametrize("name", [name for name, each in OWN.items() if each.gradient is not None])
def test_gradients_are_the_slopes(name: str) -> None:
    """Along a random direction in float64; what the backward reads is found by the names of its operands."""
    each, rng = FUNCTIONS[name], numpy.random.default_rng(3)
    gradient = each.backward()
    assert gradient is not None
    compared = 0
    for problem, inputs in problems(each, bk.ElementKind.F64, 6, may_be_empty=False):
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
            # Of few observations nothing varies, and all is NaN.
            assert float((slopes[result] * direction).sum()) == pytest.approx(measured, rel=1e-5, abs=1e-6, nan_ok=True)
            compared += math.isfinite(measured)
    assert compared >= 3


CATEGORIES = ("UnaryElementwise", "BinaryElementwise", "TernaryElementwise", "GatedActivation", "Reduction", "Scan")


def test_every_primitive_of_a_category_that_is_done_can_be_called() -> None:
    """By the inventory's own names, here and as operators of PyTorch."""
    import baracuda_kernels.torch as bt

    with (Path(__file__).parents[2] / "docs" / "op_inventory.csv").open(encoding="utf-8", newline="") as file:
        names = [each["primitive"] for each in csv.DictReader(file) if each["category"] in CATEGORIES and each["tier"] in "12"]
    assert len(names) == 223
    assert [name for name in names if not callable(getattr(bk, name, None)) or not callable(getattr(bt, name, None))] == []
