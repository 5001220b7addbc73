"""Arguments by the names, and calls in the forms, that PyTorch, NumPy and JAX have: the same call to theirs and to ours, over every function
that has the parameter, gives the same shape, dtype and numbers."""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import torch
import torch.nn.functional as F

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.arrays.jax_arrays import wide_types
from baracuda_kernels.core import registry
from baracuda_kernels.core.arguments import SYNONYMS

GRADIENTS = {each.gradient for each in registry.functions().values()}
FORWARD = {name: each for name, each in registry.functions().items() if name not in GRADIENTS}
MODULES: dict[str, tuple[Any, ...]] = {  # of what is in two of them, the first takes tensors
    "PyTorch": (torch, torch.linalg, torch.special, F),
    "NumPy": (numpy, numpy.linalg),
    "JAX": (jnp, jnp.linalg, jax.nn, jax.scipy.special),
}
MAKE: dict[str, Callable[[Any], Any]] = {"PyTorch": torch.tensor, "NumPy": numpy.asarray, "JAX": jnp.asarray}
VALUES = numpy.random.default_rng(5).uniform(0.3, 1.7, (3, 4))
REQUIRED: dict[str, Any] = {"q": 0.3, "size": (3, 1), "ord": "fro"}
# Functions that have a framework's name and do something else, with what it is.
OTHERWISE = {
    ("NumPy", "median"): "the mean of two middle elements, and no index",
    ("JAX", "median"): "the mean of two middle elements, and no index",
    ("NumPy", "nanmedian"): "the mean of two middle elements, and no index",
    ("JAX", "nanmedian"): "the mean of two middle elements, and no index",
    ("JAX", "glu"): "halves are views of one memory, which JAX has not",
    ("PyTorch", "gradient"): "a tensor for every axis",
    ("NumPy", "gradient"): "an array for every axis",
    ("JAX", "gradient"): "an array for every axis",
    ("NumPy", "matrix_norm"): "no dim",
    ("JAX", "matrix_norm"): "no dim",
}


@pytest.fixture(autouse=True)
def with_64_bits() -> Iterator[None]:
    """JAX has 64-bit numbers."""
    with wide_types():
        yield


def theirs(framework: str, name: str) -> Any:
    found = (getattr(module, name, None) for module in MODULES[framework])
    return next((each for each in found if callable(each) and not isinstance(each, type)), None)


@contextlib.contextmanager
def theirs_may_warn() -> Iterator[None]:
    """Of no degrees of freedom, say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def accepts(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What theirs gives, or None where it has no such argument."""
    try:
        with theirs_may_warn():
            return call(*given, **named)
    except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
        return None


def assert_same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    """The same types, shapes, dtypes and numbers."""
    if isinstance(wanted, tuple | list) and not isinstance(found, type(wanted)):
        wanted = tuple(wanted)
    if isinstance(found, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, rtol)
        return
    assert isinstance(found, type(wanted)), f"{type(found)} and not {type(wanted)}"
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    ours, other = (numpy.asarray(each, numpy.float64) for each in (found, wanted))
    numpy.testing.assert_allclose(ours, other, rtol=rtol if found.dtype.itemsize < 8 else rtol**2, equal_nan=True)


def operands(function: Any, make: Callable[[Any], Any], values: Any = VALUES) -> list[Any]:
    needed = [name for name in function.inputs if function.public.parameters[name].default is inspect.Parameter.empty]
    if function.name in ("glu", "geglu", "reglu", "swiglu") and numpy.ndim(values) == 2:  # of halves along either axis
        values = values[:2]
    values = values.astype(numpy.int64) if function.name == "reduce_xor" else values
    return [make(numpy.ascontiguousarray(values + place)) for place in range(len(needed))]


def called(function: Any, framework: str = "PyTorch", **named: Any) -> dict[str, Any]:
    """These arguments, and those that the function cannot be called without, or that the framework has another default for."""
    own = {function.synonyms.get(name, name) for name in named}
    if framework != "PyTorch" and "correction" in function.options and "correction" not in own:
        named = {**named, "ddof": 1}
    needed = [name for name, option in function.options.items() if option.is_required and name not in own]
    return {**{name: REQUIRED.get(name, 0) for name in needed}, **named}


def own(function: Any, group: tuple[str, ...]) -> str | None:
    return next((name for name in group if name in function.options), None)


AXES, KEPT, CORRECTIONS = SYNONYMS[0], SYNONYMS[1], SYNONYMS[2]
WITH: dict[tuple[str, ...], list[str]] = {
    group: [name for name, each in FORWARD.items() if own(each, group)] for group in (AXES, KEPT, CORRECTIONS)
}


def _calls() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in WITH[AXES]:
        function = FORWARD[name]
        along = own(function, AXES)
        assert along is not None
        value: Any = (0, 1) if str(function.options[along].type).startswith("tuple") else 1
        for called in AXES:
            yield name, {called: value}
        for called in KEPT if own(function, KEPT) else ():
            yield name, {"axis" if called == "keepdims" else "dim": value, called: True}
    for name in WITH[KEPT]:
        yield from ((name, {called: True}) for called in KEPT)
    for name in WITH[CORRECTIONS]:
        for more in ({"correction": 0}, {"ddof": 0}, {"unbiased": False}, {"unbiased": True}):
            yield name, more


@pytest.mark.parametrize("framework", MODULES)
def test_the_same_call(framework: str) -> None:
    """By the names that a framework has, every function gives what the framework's does."""
    compared, make = set(), MAKE[framework]
    for name, more in _calls():
        call = theirs(framework, name)
        if call is None or (framework, name) in OTHERWISE:
            continue
        given = operands(FORWARD[name], make)
        named = called(FORWARD[name], framework, **more)
        wanted = accepts(call, *given, **named)
        if wanted is not None:
            try:
                assert_same(getattr(bk, name)(*given, **named), wanted)
            except AssertionError as wrong:
                raise AssertionError(f"{name} with {named}") from wrong
            compared.add((name, *more))
    assert {name for _, *names in compared for name in names} >= (
        {"dim", "keepdim", "correction", "unbiased"} if framework == "PyTorch" else {"axis", "keepdims", "ddof"}
    )
    assert len(compared) > 50


@pytest.mark.parametrize("name", sorted({*WITH[AXES], *WITH[KEPT], *WITH[CORRECTIONS]}))
def test_every_name_of_an_argument(name: str) -> None:
    """In functions and in operators alike, and never two of them at once."""
    function = FORWARD[name]
    values = VALUES[:, :3] if name == "cov" else VALUES
    given = operands(function, torch.tensor, values)
    groups = [(group, ours) for group in (AXES, KEPT, CORRECTIONS) if (ours := own(function, group))]
    for group, ours in groups:
        several = "tuple" in str(function.options[ours].type) and "None" not in str(function.options[ours].type)
        value: Any = {AXES: (0, 1) if several else 0, KEPT: True, CORRECTIONS: 0}[group]
        expected = getattr(bk, name)(*given, **called(function, **{ours: value}))
        for other in group:
            same = called(function, **{other: bool(value) if other == "unbiased" else value})
            for module in (bk, bt):
                torch.testing.assert_close(getattr(module, name)(*given, **same), expected, rtol=0, atol=0, equal_nan=True)
                if other != ours:
                    with pytest.raises(bk.InvalidProblem, match="must be left out"):
                        getattr(module, name)(*given, **same, **{ours: value})
    with pytest.raises(TypeError, match=r"axiss|missing"):
        getattr(bk, name)(*given, axiss=0)


def test_a_synonym_after_a_position() -> None:
    x = torch.tensor(VALUES)
    for module in (bk, bt):
        with pytest.raises(bk.InvalidProblem, match="axis must be left out: got 1, wanted one of dim and axis"):
            module.sum(x, 0, axis=1)
        with pytest.raises(bk.InvalidProblem, match=r"unbiased must be left out.*one of ddof and unbiased"):
            module.var(x, ddof=0, unbiased=True)
        with pytest.raises(bk.InvalidProblem, match="unbiased has the wrong type: got 2, wanted True or False"):
            module.var(x, unbiased=2)


def test_gradients_and_transforms_by_other_names() -> None:
    x = torch.tensor(VALUES, requires_grad=True)
    (found,) = torch.autograd.grad(bt.var(x, axis=0, ddof=0, keepdims=True).sum(), x)
    (wanted,) = torch.autograd.grad(torch.var(x, 0, correction=0).sum(), x)
    torch.testing.assert_close(found, wanted)
    rows = torch.vmap(lambda row: bt.softmax(row, dim=0))(x.detach())
    torch.testing.assert_close(rows, torch.softmax(x.detach(), 1))
    compiled = torch.compile(
        lambda x: bt.sum(x, axis=0, keepdims=True) + bt.std(x, unbiased=False), backend="aot_eager", fullgraph=True
    )
    torch.testing.assert_close(compiled(x.detach()), x.detach().sum(0, keepdim=True) + x.detach().std(correction=0))
    traced = jax.jit(jax.grad(lambda x: bk.var(x, axis=1, ddof=0, keepdims=True).sum()))(jnp.asarray(VALUES))
    numpy.testing.assert_allclose(traced, jax.grad(lambda x: jnp.var(x, axis=1).sum())(jnp.asarray(VALUES)))


def test_repeated_calls_by_other_names_are_found_again() -> None:
    x = numpy.asarray(VALUES)
    for call in (lambda: bk.sum(x, axis=1, keepdims=True), lambda: bk.rms_norm(x, (4,), x[0]), lambda: bk.polygamma(2, x)):
        first = call()
        before = [len(bk.sum.known.kept), len(bk.rms_norm.known.kept), len(bk.polygamma.known.kept)]
        numpy.testing.assert_array_equal(call(), first)
        assert [len(bk.sum.known.kept), len(bk.rms_norm.known.kept), len(bk.polygamma.known.kept)] == before


# --- rank 0 and no axes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", MODULES)
def test_rank_0(framework: str) -> None:
    """With an axis 0 or -1, or none named, as the framework has it."""
    make, compared = MAKE[framework], 0
    for name in WITH[AXES]:
        function, call = FORWARD[name], theirs(framework, name)
        if call is None or (framework, name) in OTHERWISE:
            continue
        given = operands(function, make, numpy.float64(0.7))
        for more in ({}, {"dim": 0}, {"axis": 0}, {"dim": -1}, {"axis": -1}):
            options = called(function, framework, **more)
            wanted = accepts(call, *given, **options)
            if wanted is not None:
                assert_same(getattr(bk, name)(*given, **options), wanted)
                compared += 1
    assert compared >= {"PyTorch": 60, "NumPy": 20, "JAX": 15}[framework]


@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sum", "median"]
)
def test_gradients_of_rank_0(name: str) -> None:
    x, y = (torch.tensor(0.7, dtype=torch.float64, requires_grad=True) for _ in range(2))
    found, wanted = getattr(bt, name)(x, -1), getattr(torch, name)(y, -1)
    for each, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
        assert each.shape == other.shape == () and each.item() == other.item()
    first, second = (r[0] if isinstance(r, tuple) else r for r in (found, wanted))
    first.backward()
    second.backward()
    assert x.grad is not None and y.grad is not None and torch.equal(x.grad, y.grad)


def test_rank_0_into_given_memory() -> None:
    out = torch.empty(())
    assert bk.cumsum(torch.tensor(3.0), 0, out=out) is out and out.item() == 3.0
    values, indices = numpy.zeros(()), numpy.zeros((), numpy.int64)
    assert bk.cummax(numpy.asarray(2.0), 0, out=(values, indices)) == (values, indices) and values == 2.0
    with pytest.raises(bk.InvalidProblem, match="dim is not an axis: got 1, wanted an int, -1 <= dim < 1"):
        bk.sum(torch.tensor(3.0), dim=1)


@pytest.mark.parametrize("framework", MODULES)
def test_no_axes(framework: str) -> None:
    """All of PyTorch's, but for `all` and `any`; none of NumPy's and JAX's."""
    make, compared = MAKE[framework], 0
    word = "dim" if framework == "PyTorch" else "axis"
    for name in WITH[AXES]:
        function, call = FORWARD[name], theirs(framework, name)
        if call is None or (framework, name) in OTHERWISE or "tuple" not in str(function.options[own(function, AXES)].type):
            continue
        given, options = operands(function, make), called(function, framework, **{word: ()})
        wanted = accepts(call, *given, **options)
        if wanted is not None:
            assert_same(getattr(bk, name)(*given, **options), wanted)
            compared += 1
    assert compared >= 12
    assert bt.sum(torch.ones(2, 3), dim=()).item() == 6 and bt.all(torch.ones(2, 3), dim=()).shape == (2, 3)


# --- dtype -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", MODULES)
@pytest.mark.parametrize("given", ["float32", "int32"])
def test_dtype(framework: str, given: str) -> None:
    """Every function that has one, and every one of theirs that does: floats in another float, integers as floats."""
    make, compared = MAKE[framework], set()
    for name, function in FORWARD.items():
        call = theirs(framework, name)
        if call is None or (framework, name) in OTHERWISE or name in ("cast", "bitcast"):
            continue
        along = own(function, AXES)
        word = "dim" if framework == "PyTorch" else "axis"
        arrays = operands(function, make, (VALUES * 4).astype(given))
        dtype = {"PyTorch": torch, "NumPy": numpy, "JAX": jnp}[framework].float64
        options = called(function, framework, **({word: 1} if along and along != "axes" else {}), dtype=dtype)
        if "dtype" in function.options:
            wanted = accepts(call, *arrays, **options)
            if wanted is not None:
                assert_same(getattr(bk, name)(*arrays, **options), wanted, 3e-4)  # NumPy and JAX round before
                compared.add(name)
    everywhere = {"sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod"}
    wanted = everywhere | (
        {"softmax", "log_softmax"} if framework == "PyTorch" else {"var", "std", "nanvar", "nanstd", "nanprod", "trace"}
    )
    wanted |= {"cov", "corrcoef"} if framework == "NumPy" else set()
    wanted -= {"nanmean"} if framework == "PyTorch" and given == "int32" else set()  # of integers PyTorch has none
    assert compared >= wanted


# --- results and operands of rank 0 in NumPy --------------------------------------------------------------------------------------


def test_results_of_rank_0_are_numpys_scalars() -> None:
    x = numpy.asarray(VALUES)
    for name in ("sum", "mean", "amax", "argmax", "all", "count_nonzero", "var"):
        found, wanted = getattr(bk, name)(x), getattr(numpy, name)(x)
        assert type(found) is type(wanted) and not isinstance(found, numpy.ndarray)
        assert type(getattr(bk, name)(x)) is type(wanted)  # also when it is repeated
    assert type(bk.sin(numpy.asarray(0.5))) is type(numpy.sin(numpy.asarray(0.5))) is numpy.float64
    assert [*map(type, bk.var_mean(x))] == [numpy.float64, numpy.float64]
    assert bk.sum(x, keepdims=True).shape == (1, 1) and isinstance(bk.sum(x, axis=0), numpy.ndarray)
    out = numpy.zeros(())
    assert bk.sum(x, out=out) is out and out == bk.sum(x)


def test_numpys_scalars_as_operands() -> None:
    x = numpy.asarray(VALUES)
    assert_same(bk.sin(numpy.float32(0.5)), numpy.sin(numpy.float32(0.5)))
    assert_same(bk.add(numpy.float64(1), numpy.float64(2)), numpy.float64(3))
    assert_same(bk.add(numpy.int32(1), 2), numpy.int32(3))
    assert_same(bk.sum(numpy.float64(3), axis=0), numpy.float64(3))
    assert_same(bk.sqrt(bk.sum(x)), numpy.sqrt(numpy.sum(x)))
    assert_same(bk.sum_backward(numpy.float64(2), x, numpy.sum(x)), numpy.full((3, 4), 2.0))
    for _ in range(2):
        assert_same(bk.mul(x, bk.sum(x)), x * numpy.sum(x))
    with pytest.raises(bk.InvalidProblem, match="numbers alone"):
        bk.add(2, 3)


# --- calls of several forms -------------------------------------------------------------------------------------------------------


X = torch.tensor(VALUES)
C = X > 1.0
FORMS: list[tuple[Callable[[Any], Any], Callable[[], Any]]] = [
    (lambda m: m.max(X), lambda: torch.max(X)),
    (lambda m: m.max(X, 1), lambda: torch.max(X, 1)),
    (lambda m: m.max(X, -1, True), lambda: torch.max(X, -1, True)),
    (lambda m: m.max(X, dim=0, keepdim=True), lambda: torch.max(X, dim=0, keepdim=True)),
    (lambda m: m.max(X, X.flip(0)), lambda: torch.max(X, X.flip(0))),
    (lambda m: m.max(X, other=X.flip(0)), lambda: torch.max(X, other=X.flip(0))),
    (lambda m: m.min(X), lambda: torch.min(X)),
    (lambda m: m.min(X, 1), lambda: torch.min(X, 1)),
    (lambda m: m.min(X, X.flip(0)), lambda: torch.min(X, X.flip(0))),
    (lambda m: m.max(torch.tensor(2.0), 0), lambda: torch.max(torch.tensor(2.0), 0)),
    *[
        (lambda m, p=p, dim=dim: m.norm(X, p, dim), lambda p=p, dim=dim: torch.norm(X, p, dim))
        for p in ("fro", None, math.inf, -math.inf, 0, 1, 3.5)
        for dim in (None, 1, (0, 1))
    ],
    (lambda m: m.norm(X, p="fro", keepdim=True), lambda: torch.norm(X, p="fro", keepdim=True)),
    (lambda m: m.vector_norm(X, 3, 0, True), lambda: torch.linalg.vector_norm(X, 3, 0, True)),
    (lambda m: m.quantile(X, torch.tensor([0.2, 0.7]).double(), 1), lambda: torch.quantile(X, torch.tensor([0.2, 0.7]).double(), 1)),
    (lambda m: m.quantile(X, q=torch.tensor(0.4).double()), lambda: torch.quantile(X, torch.tensor(0.4).double())),
    (lambda m: m.nanquantile(X, torch.tensor([0.5]).double()), lambda: torch.nanquantile(X, torch.tensor([0.5]).double())),
    (lambda m: m.rms_norm(X, (4,)), lambda: F.rms_norm(X, (4,))),
    (lambda m: m.rms_norm(X, [4], X[0], 0.1), lambda: F.rms_norm(X, [4], X[0], 0.1)),
    (lambda m: m.rms_norm(X, (3, 4), X.flip(0)), lambda: F.rms_norm(X, (3, 4), X.flip(0))),
    (lambda m: m.rms_norm(X.float(), (4,), weight=X[0].float()), lambda: F.rms_norm(X.float(), (4,), weight=X[0].float())),
    (lambda m: m.rms_norm(input=X, normalized_shape=(4,), eps=None), lambda: F.rms_norm(input=X, normalized_shape=(4,), eps=None)),
    (lambda m: m.polygamma(2, X), lambda: torch.polygamma(2, X)),
    (lambda m: m.polygamma(X, 2), lambda: torch.polygamma(2, X)),
    (lambda m: m.polygamma(n=1, input=X), lambda: torch.polygamma(1, X)),
    (lambda m: m.var(X, False), lambda: torch.var(X, False)),
    (lambda m: m.std(X, 1, False, True), lambda: torch.std(X, 1, False, True)),
    (lambda m: m.var_mean(X, 0, True), lambda: torch.var_mean(X, 0, True)),
    *[
        (lambda m, a=a, b=b: m.where(C, a, b), lambda a=a, b=b: torch.where(C, a, b))
        for a, b in ((1, 2), (1.5, 2), (1, 2.5), (True, False), (True, 3))
    ],
    (lambda m: m.where(C, input=1, other=2.5), lambda: torch.where(C, 1, 2.5)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(FORMS)))
def test_forms_of_calls(place: int) -> None:
    ours, wanted = FORMS[place]
    for module in (bk, bt, bk):  # and the same again
        torch.testing.assert_close(ours(module), _plain(wanted()), rtol=1e-6, atol=0)


def _plain(results: Any) -> Any:
    return tuple(results) if isinstance(results, tuple) else results


def test_gradients_of_forms() -> None:
    calls: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
        (lambda x: bt.max(x), lambda x: torch.max(x)),
        (lambda x: bt.max(x, 1)[0], lambda x: torch.max(x, 1)[0]),
        (lambda x: bt.min(x, x.flip(0).detach()), lambda x: torch.min(x, x.flip(0).detach())),
        (lambda x: bt.rms_norm(X, (3, 4), x), lambda x: F.rms_norm(X, (3, 4), x)),
        (lambda x: bt.rms_norm(x, (4,), X[0]), lambda x: F.rms_norm(x, (4,), X[0])),
        (
            lambda x: bt.quantile(x, torch.tensor([0.2, 0.7]).double(), 1),
            lambda x: torch.quantile(x, torch.tensor([0.2, 0.7]).double(), 1),
        ),
        (lambda x: bt.norm(x, "fro", 1), lambda x: torch.norm(x, "fro", 1)),
        (lambda x: bt.polygamma(2, x), lambda x: torch.polygamma(2, x)),
        (lambda x: bt.var(x, 1, False), lambda x: torch.var(x, 1, False)),
    ]
    for ours, theirs in calls:
        x, y = (X.clone().requires_grad_() for _ in range(2))
        (ours(x) ** 2).sum().backward()
        (theirs(y) ** 2).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_forms_in_numpy_and_jax() -> None:
    x = numpy.asarray(VALUES)
    for make, module in ((numpy.asarray, numpy), (jnp.asarray, jnp)):
        given = make(x)
        for name in ("max", "min"):
            for more in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": ()}):
                assert_same(getattr(bk, name)(given, **more), getattr(module, name)(given, **more))
            values, indices = getattr(bk, name)(given, dim=1)
            assert_same(values, getattr(module, name)(given, axis=1))
            assert_same(indices, getattr(module, f"arg{name}")(given, axis=1))
        assert_same(
            bk.quantile(given, make(numpy.array([0.2, 0.7])), axis=1), module.quantile(given, make(numpy.array([0.2, 0.7])), axis=1)
        )
        for a, b in ((1, 2), (1.5, 2), (True, 3)):
            assert_same(bk.where(given > 1, a, b), module.where(given > 1, a, b))
    jitted = jax.jit(lambda x: (bk.max(x, axis=1), bk.where(x > 1, 1, 2.5), bk.rms_norm(x, (4,), x[0]), bk.polygamma(1, x)))
    for found, wanted in zip(
        jitted(jnp.asarray(x)),
        (x.max(1), numpy.where(x > 1, 1, 2.5), F.rms_norm(X, (4,), X[0]), torch.polygamma(1, X)),
        strict=True,
    ):
        numpy.testing.assert_allclose(numpy.asarray(found), numpy.asarray(wanted), rtol=1e-6)


def test_forms_that_are_compiled() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return bt.max(x, 1)[0].sum() + bt.rms_norm(x, (4,), x[0]) + bt.polygamma(1, x) + bt.norm(x, "fro") + bt.var(x, False)

    wanted = X.max(1)[0].sum() + F.rms_norm(X, (4,), X[0]) + torch.polygamma(1, X) + torch.norm(X) + X.var(correction=0)
    torch.testing.assert_close(torch.compile(call, backend="aot_eager", fullgraph=True)(X), wanted)
    torch.testing.assert_close(torch.vmap(lambda row: bt.max(row, 0)[0])(X), X.max(1)[0])


def test_plans_of_names_that_functions_share() -> None:
    assert isinstance(bk.max.select(X), bk.ReducePlan)
    assert isinstance(bk.max.select(X, 0), bk.ReducePairPlan)
    assert isinstance(bk.max.select(X, X), bk.BinaryPlan)


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: m.clamp(X), r"(?s)min is missing.*max is missing"),
    (lambda m: m.rms_norm(X, (3,)), r"normalized_shape has the wrong shape: got \(3,\), wanted the last extents of x, \(4,\)"),
    (lambda m: m.rms_norm(X, ()), "normalized_shape has the wrong shape"),
    (lambda m: m.rms_norm(X, (4,), X), "weight has the wrong shape"),
    (lambda m: m.rms_norm(X, (4,), axes=1), "one of axes and normalized_shape"),
    (lambda m: m.quantile(X, X), "q has the wrong type: got an array of rank 2"),
    (lambda m: m.quantile(X, torch.tensor([0.5], requires_grad=True)), "requires_grad=True"),
    (lambda m: m.quantile(X, torch.tensor([1.5])), "q is out of range"),
    (lambda m: m.max(X, 2), "dim is not an axis"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_refused(place: int) -> None:
    call, says = REFUSED[place]
    for module in (bk, bt):
        with pytest.raises(bk.InvalidProblem, match=says):
            call(module)
