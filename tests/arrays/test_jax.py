"""Functions inside JAX's transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk

from conftest import own_functions

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def wide_types_on_the_cpu() -> Iterator[None]:
    """Within transformations JAX's own devices do not matter: functions are served on the CPU there."""
    from baracuda_kernels.arrays.jax_arrays import wide_types

    with wide_types(), jax.default_device(jax.devices("cpu")[0]):
        yield


def drawn(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape))


def rms_norm(x: Any, gamma: Any) -> Any:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma


def sdpa(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v


def rope(x: Any) -> Any:
    angles = jnp.arange(x.shape[2])[:, None] * 10000.0 ** (-jnp.arange(0, x.shape[3], 2) / x.shape[3])
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * jnp.cos(angles) - odd * jnp.sin(angles), odd * jnp.cos(angles) + even * jnp.sin(angles)
    return jnp.stack(turned, -1).reshape(x.shape)


def scan(x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    def step(state: Any, now: Any) -> tuple[Any, Any]:
        x, dt, b, c = now
        state = jnp.exp(dt * a)[:, :, None, None] * state + (dt[..., None] * x)[..., None] * b[:, :, None, :]
        return state, (state * c[:, :, None, :]).sum(-1)

    first = jnp.zeros((x.shape[0], x.shape[2], x.shape[3], b.shape[3]))
    _, y = jax.lax.scan(step, first, tuple(jnp.moveaxis(each, 1, 0) for each in (x, dt, b, c)))
    return jnp.moveaxis(y, 0, 1)


def running_integral(y: Any, x: Any) -> Any:
    return jnp.cumsum((y[..., 1:] + y[..., :-1]) * jnp.diff(x) / 2, -1)


# Ours, theirs, and what they are called with.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (bk.softmax, jax.nn.softmax, ((4, 8),)),
    "log_softmax": (bk.log_softmax, jax.nn.log_softmax, ((4, 8),)),
    "rms_norm": (bk.rms_norm, rms_norm, ((4, 8), (8,))),
    "rope": (bk.rope, rope, ((2, 3, 5, 8),)),
    "sdpa": (bk.sdpa, sdpa, ((1, 2, 4, 8), (1, 2, 5, 8), (1, 2, 5, 3))),
    "diff": (bk.diff, jnp.diff, ((4, 8),)),
    "cov": (bk.cov, jnp.cov, ((4, 8),)),
    "corrcoef": (bk.corrcoef, jnp.corrcoef, ((4, 8),)),
    "cumulative_trapezoid": (bk.cumulative_trapezoid, running_integral, ((4, 8), (8,))),
    "gradient": (bk.gradient, lambda x: jnp.gradient(x, axis=-1), ((4, 8),)),
    "trapezoid": (bk.trapezoid, jnp.trapezoid, ((4, 8), (8,))),
    "ssd_chunk_scan": (bk.ssd_chunk_scan, scan, ((1, 6, 2, 3), (1, 6, 2), (2,), (1, 6, 2, 4), (1, 6, 2, 4))),
}


def test_every_differentiable_function_is_here() -> None:
    assert set(PAIRS) == {name for name, each in own_functions().items() if each.gradient is not None}


def inputs(name: str) -> tuple[Any, ...]:
    return tuple(drawn(*shape, seed=seed) for seed, shape in enumerate(PAIRS[name][2]))


def squared(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: (function(*arrays) ** 2).sum()


def close(ours: Any, theirs: Any) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", PAIRS)
def test_jit(name: str) -> None:
    ours, theirs, _ = PAIRS[name]
    arrays = inputs(name)
    close(jax.jit(ours)(*arrays), theirs(*arrays))
    assert numpy.array_equal(jax.jit(ours)(*arrays), ours(*arrays))


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_grad(name: str, is_compiled: bool) -> None:
    """By every input at once, or by one alone."""
    ours, theirs, _ = PAIRS[name]
    arrays = inputs(name)
    argnums = tuple(range(len(arrays))) if is_compiled else (len(arrays) - 1,)
    slopes = jax.grad(squared(ours), argnums)
    for mine, other in zip(
        (jax.jit(slopes) if is_compiled else slopes)(*arrays), jax.jit(jax.grad(squared(theirs), argnums))(*arrays), strict=True
    ):
        close(mine, other)


@pytest.mark.parametrize("name", PAIRS)
def test_vmap(name: str) -> None:
    ours, theirs, _ = PAIRS[name]
    several = tuple(jnp.stack([array, 2 * array, -array]) for array in inputs(name))
    close(jax.jit(jax.vmap(ours))(*several), jax.jit(jax.vmap(theirs))(*several))
    close(jax.jit(jax.vmap(jax.grad(squared(ours))))(*several), jax.jit(jax.vmap(jax.grad(squared(theirs))))(*several))


def test_optional_results_and_operands() -> None:
    q, mask = drawn(1, 2, 4, 8), drawn(1, 2, 4, 4)
    y, attn = jax.jit(lambda q: bk.sdpa(q, q, q, mask, return_attn=True))(q)
    assert y.shape == q.shape and attn.shape == mask.shape
    dx, dgamma = jax.jit(lambda x, rms: bk.rms_norm_backward(x, x, None, rms))(q, jnp.ones((1, 2, 4, 1)))
    assert dx.shape == q.shape and dgamma is None
    x, dt, a, b, _ = inputs("ssd_chunk_scan")
    y, state = jax.jit(lambda x: bk.ssd_chunk_scan(x, dt, a, b, b, return_final_state=True))(x)
    close(state, bk.ssd_chunk_scan(x, dt, a, b, b, return_final_state=True)[1])


def test_the_gradient_of_a_final_state_is_heard() -> None:
    x, dt, a, b, c = inputs("ssd_chunk_scan")

    def total(first: Any) -> Any:
        y, last = bk.ssd_chunk_scan(x, dt, a, b, c, initial_state=first, return_final_state=True)
        return (last**2).sum() + y.sum()

    first, direction, step = drawn(1, 2, 3, 4, seed=7), drawn(1, 2, 3, 4, seed=8), 1e-6
    measured = (total(first + step * direction) - total(first - step * direction)) / (2 * step)
    assert float((jax.grad(total)(first) * direction).sum()) == pytest.approx(float(measured), rel=1e-7)


def test_positions_stay_whole_numbers() -> None:
    x, positions = drawn(1, 2, 5, 8), jnp.arange(5)
    close(jax.jit(jax.grad(lambda x, p: (bk.rope(x, p) * x).sum()))(x, positions), jax.grad(lambda x: (bk.rope(x) * x).sum())(x))


def test_halves() -> None:
    x = drawn(4, 8).astype(jnp.bfloat16)
    assert jax.jit(bk.softmax)(x).dtype == jnp.bfloat16
    assert jax.grad(lambda x: bk.rms_norm(x).astype(jnp.float32).sum())(x).dtype == jnp.bfloat16


def test_wide_numbers_stay_wide_where_jax_would_narrow_them() -> None:
    from baracuda_kernels.arrays.jax_arrays import wide_types

    x = drawn(4, 8)
    with wide_types(False):
        assert bk.softmax(x).dtype == jnp.float64


def test_results_are_on_the_device_of_the_inputs() -> None:
    x = jax.device_put(drawn(4, 8), jax.devices("cpu")[-1])
    assert bk.softmax(x).devices() == x.devices()


X, Q = numpy.zeros((4, 8)), numpy.zeros((1, 2, 4, 8))
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no such axis": (lambda: jax.jit(lambda x: bk.softmax(x, 2))(X), "axis is not an axis: got 2"),
    "another shape": (lambda: jax.jit(lambda x: bk.rms_norm(x, x[0, :3]))(X), "gamma has the wrong shape"),
    "another framework": (lambda: jax.jit(lambda x: bk.softmax_backward(x, X))(X), "y belongs to another framework"),
    "an output": (lambda: jax.jit(lambda x: bk.softmax(x, out=x))(X), "out is read-only memory"),
    "an output that is there": (lambda: bk.softmax(jnp.asarray(X), out=jnp.asarray(X)), "y is read-only memory"),
    "a stream": (lambda: jax.jit(lambda x: bk.softmax(x, stream=bk.Stream.cpu()))(X), "stream has the wrong type"),
    "a traced option": (lambda: jax.jit(lambda x, axis: bk.softmax(x, axis))(X, 1), "axis has the wrong type"),
    "the gradient of a mask": (
        lambda: jax.grad(lambda mask: bk.sdpa(*(jnp.asarray(Q),) * 3, mask).sum())(jnp.zeros((1, 2, 4, 4))),
        r"mask needs a gradient.*stop_gradient\(mask\)",
    ),
    "the gradient of weights": (
        lambda: jax.grad(lambda q: bk.sdpa(q, q, q, return_attn=True)[1].sum())(jnp.asarray(Q)),
        r"attn needs a gradient.*stop_gradient\(attn\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """While tracing, before anything runs."""
    call, message = REFUSED[case]
    with pytest.raises(bk.InvalidProblem, match=message):
        call()


def test_another_platform_is_refused_and_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(None), pytest.raises(bk.Unsupported, match=r'jax\.default_device\(jax\.devices\("cpu"\)\[0\]\)'):
        jax.jit(lambda x: bk.softmax(x))(X)
    with jax.default_device(jax.devices("cpu")[0]):
        assert jax.jit(lambda x: bk.softmax(x))(X).shape == (4, 8)


WITHOUT = ("ssd_chunk_scan",)  # second derivatives and forward mode


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in WITHOUT])
def test_forward_mode_and_second_derivatives(name: str) -> None:
    ours, theirs, _ = PAIRS[name]
    arrays = inputs(name)
    tangents = tuple(0.5 - 0.1 * array for array in arrays)
    close(jax.jvp(ours, arrays, tangents)[1], jax.jvp(theirs, arrays, tangents)[1])
    both = [jax.jvp(jax.grad(squared(each)), arrays, tangents)[1] for each in (ours, theirs)]
    close(*both)
    again = [jax.grad(lambda *given, each=each: (jax.grad(squared(each))(*given) ** 2).sum())(*arrays) for each in (ours, theirs)]
    close(*again)


def test_hessians() -> None:
    x = jnp.linspace(-1.0, 2.0, 4)

    def ours(x: Any) -> Any:
        return (bk.softmax(bk.gelu(x) * x) * x).sum() + bk.var(x) + bk.cumprod(x, 0).sum()

    def theirs(x: Any) -> Any:
        return (jax.nn.softmax(jax.nn.gelu(x, approximate=False) * x) * x).sum() + x.var(ddof=1) + jnp.cumprod(x).sum()

    for twice in (
        jax.hessian,
        lambda f: jax.jacrev(jax.jacrev(f)),
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: jax.jacrev(jax.jacfwd(f)),
    ):
        close(jax.jit(twice(ours))(x), jax.jit(twice(theirs))(x))
    close(jax.vmap(jax.hessian(ours))(jnp.stack([x, 2 * x])), jax.vmap(jax.hessian(theirs))(jnp.stack([x, 2 * x])))
    _, along = jax.linearize(ours, x)
    close(along(x), jax.jvp(theirs, (x,), (x,))[1])
    close(jax.linear_transpose(along, x)(1.0)[0], jax.grad(theirs)(x))


def test_where_there_are_none_it_is_said() -> None:
    x, *rest = inputs("ssd_chunk_scan")
    scan = squared(lambda x: bk.ssd_chunk_scan(x, *rest))
    with pytest.raises(bk.Unsupported, match="reverse mode"):
        jax.jvp(scan, (x,), (x,))
    with pytest.raises(bk.Unsupported, match="first derivatives"):
        jax.grad(lambda x: jax.grad(scan)(x).sum())(x)
    q = drawn(1, 2, 4, 8)
    with pytest.raises(bk.Unsupported, match="attn needs a gradient"):
        jax.jvp(lambda q: bk.sdpa(q, q, q, return_attn=True), (q,), (q,))


def test_what_steps_has_no_tangent() -> None:
    x = jnp.linspace(-1.0, 1.0, 5)
    close(jax.jvp(lambda x: bk.where(bk.gt(x, 0.0), x, 0.0), (x,), (x,))[1], jnp.maximum(x, 0.0))


@pytest.mark.parametrize(("options", "named"), [({"axis": {}}, "axis"), ({"preference": {}}, "preference")])
def test_nonsense_inside_jit_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(bk.InvalidProblem, match=named):
        jax.jit(lambda x: bk.softmax(x, **options))(jax.numpy.ones((2, 3)))
