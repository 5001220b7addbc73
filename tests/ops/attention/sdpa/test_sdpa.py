"""What is particular to attention: its rules, hidden keys, fully masked rows, shared heads, and the derivative itself."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.ops.attention.sdpa import (
    SdpaArgs,
    SdpaBackwardArgs,
    SdpaBackwardDescriptor,
    SdpaBackwardPlan,
    SdpaDescriptor,
    SdpaPlan,
)
from baracuda_kernels.verify.bounds import relative_error
from baracuda_kernels.verify.trial import random_inputs, run_trial

CPU, NONE = bk.Stream.cpu(), bk.Workspace.none()
F32, F64 = bk.ElementKind.F32, bk.ElementKind.F64
FIELDS = {"batch_size": 2, "num_heads": 4, "query_len": 5, "key_len": 7, "d_k": 3, "d_v": 6, "scale": 0.5, "element": F64}


def _attend(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: float = 0.5) -> tuple[Any, Any]:
    """The forward plan on NumPy arrays; outputs hold NaN before."""
    (batch, heads, queries, width), (_, kv_heads, keys, values) = q.shape, v.shape
    element = bk.ElementKind.of(q.dtype)
    descriptor = SdpaDescriptor(batch, heads, queries, keys, width, values, scale, causal, mask is not None, element, kv_heads)
    y, attn = (numpy.full(shape, numpy.nan, q.dtype) for shape in ((batch, heads, queries, values), (batch, heads, queries, keys)))
    SdpaPlan.select(CPU, descriptor).run(CPU, NONE, SdpaArgs(q=q, k=k, v=v, mask=mask, y=y, attn=attn))
    return y, attn


def _gradients(q: Any, k: Any, v: Any, attn: Any, dy: Any, scale: float = 0.5) -> tuple[Any, Any, Any]:
    (batch, heads, queries, width), (_, kv_heads, keys, values) = q.shape, v.shape
    element = bk.ElementKind.of(q.dtype)
    descriptor = SdpaBackwardDescriptor(batch, heads, queries, keys, width, values, scale, element, kv_heads)
    dq, dk, dv, scratch = (numpy.full(x.shape, numpy.nan, q.dtype) for x in (q, k, v, attn))
    args = SdpaBackwardArgs(q=q, k=k, v=v, attn=attn, dy=dy, dscores_ws=scratch, dq=dq, dk=dk, dv=dv)
    SdpaBackwardPlan.select(CPU, descriptor).run(CPU, NONE, args)
    return dq, dk, dv


def _operands(rng: Any, sizes: tuple[int, ...] = (2, 4, 5, 7, 3, 6), kv_heads: int | None = None, dtype: Any = float) -> list[Any]:
    batch, heads, queries, keys, width, values = sizes
    shared = heads if kv_heads is None else kv_heads
    shapes = (
        (batch, heads, queries, width),
        (batch, shared, keys, width),
        (batch, shared, keys, values),
        (batch, heads, queries, values),
    )
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


# --- what is refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        *[({name: -1}, name) for name in ("batch_size", "num_heads", "query_len", "key_len", "d_k", "d_v", "num_kv_heads")],
        *[({"scale": scale}, "scale") for scale in (numpy.inf, -numpy.inf, numpy.nan)],
        *[({"num_kv_heads": heads}, "num_kv_heads") for heads in (3, 8, 0)],
    ],
)
@pytest.mark.parametrize("kind", [SdpaDescriptor, SdpaBackwardDescriptor])
def test_nonsense(kind: Any, changed: dict[str, Any], field: str) -> None:
    fields = FIELDS | ({"is_causal": False, "has_mask": False} if kind is SdpaDescriptor else {})
    kind(**fields)
    with pytest.raises(bk.InvalidProblem) as refusal:
        kind(**(fields | changed))
    assert field in {reason.where for reason in refusal.value.reasons}


def _backward_arrays(rng: Any) -> dict[str, Any]:
    q, k, v, dy = _operands(rng)
    return {"q": q, "k": k, "v": v, "attn": numpy.ones((2, 4, 5, 7)), "dy": dy, "dscores_ws": numpy.zeros((2, 4, 5, 7))} | {
        "dq": q.copy(), "dk": k.copy(), "dv": v.copy()
    }  # fmt: skip


def test_layouts_that_are_refused(rng: numpy.random.Generator) -> None:
    forward = SdpaPlan.select(CPU, SdpaDescriptor(**FIELDS, is_causal=False, has_mask=False))
    backward = SdpaBackwardPlan.select(CPU, SdpaBackwardDescriptor(**FIELDS))
    arrays = _backward_arrays(rng)
    names = {forward: ("q", "k", "v", "attn"), backward: tuple(arrays)}
    for plan, args_type in ((forward, SdpaArgs), (backward, SdpaBackwardArgs)):
        given = {name: arrays[name] for name in names[plan]}
        if plan is forward:
            given["y"] = arrays["dy"]
        assert plan.can_implement(args_type(**given))
        for name, array in given.items():
            spread = numpy.zeros((*array.shape[:-1], 2 * array.shape[-1]))[..., ::2]
            error = bk.Unsupported if name in ("attn", "dscores_ws") else bk.InvalidProblem
            with pytest.raises(error, match=name):
                plan.run(CPU, NONE, args_type(**(given | {name: spread})))


def test_a_mask_must_be_there_exactly_when_declared(rng: numpy.random.Generator) -> None:
    q, k, v, y = _operands(rng)
    attn = numpy.zeros((2, 4, 5, 7))
    for declared, mask in ((True, None), (False, attn.copy())):
        plan = SdpaPlan.select(CPU, SdpaDescriptor(**FIELDS, is_causal=False, has_mask=declared))
        with pytest.raises(bk.InvalidProblem, match="mask"):
            plan.run(CPU, NONE, SdpaArgs(q=q, k=k, v=v, mask=mask, y=y, attn=attn))


# --- hidden keys ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [axes for count in range(5) for axes in itertools.combinations(range(4), count)])
def test_a_mask_may_be_broadcast_along_any_axis(axes: tuple[int, ...], rng: numpy.random.Generator) -> None:
    q, k, v, _ = _operands(rng, (2, 4, 33, 37, 8, 8))
    mask = rng.standard_normal(tuple(1 if axis in axes else extent for axis, extent in enumerate((2, 4, 33, 37))))
    mask = numpy.broadcast_to(mask, (2, 4, 33, 37))
    for got, wanted in zip(_attend(q, k, v, mask), _attend(q, k, v, numpy.array(mask)), strict=True):
        assert numpy.array_equal(got, wanted)


@pytest.mark.parametrize("sizes", [(1, 2, 5, 7, 3, 4), (1, 1, 150, 150, 20, 70), (2, 1, 9, 300, 5, 3), (1, 1, 4, 4500, 3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("bad", [numpy.nan, numpy.inf, -numpy.inf])
def test_a_hidden_key_reaches_nobody_that_cannot_see_it(sizes: Any, dtype: str, bad: float, rng: numpy.random.Generator) -> None:
    """NaN and infinities in a hidden key or value leave every bit of the other queries as it was."""
    q, k, v, _ = _operands(rng, sizes, dtype=dtype)
    queries, keys = sizes[2], sizes[3]
    for causal in (False, True):
        mask = rng.standard_normal((sizes[0], sizes[1], queries, keys)).astype(dtype)
        key = min(queries - 2, keys - 1)
        if not causal:
            mask[:, :, ::2, key] = -numpy.inf
        blind = numpy.arange(queries) < key if causal else numpy.arange(queries) % 2 == 0
        clean = _attend(q, k, v, None if causal else mask, causal)
        for spoil_key in (True, False):
            k_bad, v_bad = k.copy(), v.copy()
            (k_bad if spoil_key else v_bad)[:, :, key] = bad
            got = _attend(q, k_bad, v_bad, None if causal else mask, causal)
            for after, before in zip(got, clean, strict=True):
                assert numpy.array_equal(after[:, :, blind], before[:, :, blind])
            if not spoil_key:
                assert not numpy.isfinite(got[0][:, :, ~blind]).any()
            elif numpy.isnan(bad):
                assert numpy.isnan(got[0][:, :, ~blind]).all()
                assert numpy.isnan(got[1][:, :, ~blind][..., : key + 1]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_fully_masked_row_is_zero_and_passes_no_gradient(dtype: str, rng: numpy.random.Generator) -> None:
    q, k, v, dy = _operands(rng, (2, 2, 9, 40, 8, 5), dtype=dtype)
    mask = numpy.zeros((2, 2, 9, 40), dtype)
    mask[:, :, 3] = -numpy.inf
    mask[1, 1] = -numpy.inf
    y, attn = _attend(q, k, v, mask)
    dq, dk, dv = _gradients(q, k, v, attn, dy)
    assert not y[:, :, 3].any() and not attn[:, :, 3].any() and not dq[:, :, 3].any()
    assert not any(x[1, 1].any() for x in (y, attn, dq, dk, dv))
    assert all(numpy.isfinite(x).all() for x in (y, attn, dq, dk, dv))
    assert y[0, 0, 2].any() and dk[0, 0].any()


def test_scores_of_minus_infinity_without_a_mask() -> None:
    """An overflowing product is a score like any other; a NaN beside it shows."""
    q, v = numpy.array([[[[1.0]]]]), numpy.ones((1, 1, 3, 2))
    for keys, expected in (
        ([-numpy.inf] * 3, 0.0),
        ([-numpy.inf, numpy.nan, -numpy.inf], numpy.nan),
        ([numpy.inf, 0, 0], numpy.nan),
    ):
        y, attn = _attend(q, numpy.array(keys, float).reshape(1, 1, 3, 1), v)
        assert numpy.array_equal(y, numpy.full(y.shape, expected), equal_nan=True)
        assert numpy.array_equal(attn, numpy.full(attn.shape, expected), equal_nan=True) or keys[0] == numpy.inf


def test_large_scores_do_not_overflow(rng: numpy.random.Generator) -> None:
    q, k, v, _ = _operands(rng, (1, 2, 6, 50, 4, 4), dtype="float32")
    y, attn = _attend(q * 1000, k * 1000, v, scale=-3.0)
    assert numpy.isfinite(y).all()
    assert numpy.allclose(attn.sum(-1), 1)


# --- empty extents -------------------------------------------------------------------------------------------------------------


def test_sums_over_nothing_are_zero(rng: numpy.random.Generator) -> None:
    q, k, v, dy = _operands(rng, (2, 4, 5, 0, 3, 6))
    y, attn = _attend(q, k, v)
    assert not y.any() and attn.shape == (2, 4, 5, 0)
    assert not _gradients(q, k, v, attn, dy)[0].any()
    q, k, v, dy = _operands(rng, (2, 4, 0, 7, 3, 6))
    _, dk, dv = _gradients(q, k, v, numpy.zeros((2, 4, 0, 7)), dy)
    assert not dk.any() and not dv.any()
    q, k, v, _ = _operands(rng, (2, 4, 5, 7, 0, 6))
    y, attn = _attend(q, k, v)
    assert numpy.allclose(attn, 1 / 7) and numpy.allclose(y, v.mean(2, keepdims=True))


# --- shared heads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kv_heads", [1, 2, 3])
def test_a_group_reads_and_sums_into_one_head(dtype: str, kv_heads: int, rng: numpy.random.Generator) -> None:
    q, k, v, dy = _operands(rng, (2, 6, 130, 100, 20, 12), kv_heads, dtype)
    group = 6 // kv_heads
    repeated = [numpy.repeat(x, group, axis=1) for x in (k, v)]
    y, attn = _attend(q, k, v)
    for got, wanted in zip((y, attn), _attend(q, *repeated), strict=True):
        assert numpy.array_equal(got, wanted)
    dq, dk, dv = _gradients(q, k, v, attn, dy)
    one_by_one = _gradients(q, *repeated, attn, dy)
    assert numpy.array_equal(dq, one_by_one[0])
    for got, each in zip((dk, dv), one_by_one[1:], strict=True):
        wanted = each.astype(float).reshape(2, kv_heads, group, *each.shape[2:]).sum(2)
        assert relative_error(got, wanted) < (1e-6 if dtype == "float32" else 1e-14)


def _shared(array: Any, heads: int) -> Any:
    """The one head of `array`, seen as `heads` heads with stride 0."""
    strides = (array.strides[0], 0, *array.strides[2:])
    return numpy.lib.stride_tricks.as_strided(array, (array.shape[0], heads, *array.shape[2:]), strides)


@pytest.mark.parametrize("share_k", [False, True])
@pytest.mark.parametrize("share_v", [False, True])
def test_heads_may_share_one_slot_by_stride_zero(share_k: bool, share_v: bool, rng: numpy.random.Generator) -> None:
    q, k, v, dy = _operands(rng, (2, 3, 150, 110, 7, 9))
    k1, v1 = k[:, :1].copy(), v[:, :1].copy()
    k, v = _shared(k1, 3) if share_k else k, _shared(v1, 3) if share_v else v
    _, attn = _attend(q, k, v)
    expected = SdpaBackwardPlan.reference(SdpaBackwardDescriptor(2, 3, 150, 110, 7, 9, 0.5, F64), q, k, v, attn, dy)
    dk, dv = (numpy.full_like(x[:, :1] if share else x, numpy.nan) for x, share in ((k, share_k), (v, share_v)))
    dq, scratch = numpy.full_like(q, numpy.nan), numpy.full_like(attn, numpy.nan)
    args = SdpaBackwardArgs(
        q=q, k=k, v=v, attn=attn, dy=dy, dscores_ws=scratch, dq=dq,
        dk=_shared(dk, 3) if share_k else dk, dv=_shared(dv, 3) if share_v else dv,
    )  # fmt: skip
    plan = SdpaBackwardPlan.select(CPU, SdpaBackwardDescriptor(2, 3, 150, 110, 7, 9, 0.5, F64))
    seen = set()
    for _ in range(3):
        plan.run(CPU, NONE, args)
        seen.add(dk.tobytes() + dv.tobytes())
    assert len(seen) == 1
    assert relative_error(dq, expected[0]) < 1e-13
    for got, each, share in ((dk, expected[1], share_k), (dv, expected[2], share_v)):
        assert relative_error(got, each.sum(1, keepdims=True) if share else each) < 1e-13


# --- bits ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("causal", [False, True])
def test_a_row_does_not_depend_on_its_batch(element: bk.ElementKind, causal: bool, rng: numpy.random.Generator) -> None:
    """A head alone, and the first queries alone, have the bits they have among the others."""
    whole = SdpaDescriptor(2, 3, 203, 150, 20, 33, 0.3, causal, True, element)
    inputs = random_inputs(SdpaPlan, whole, rng)
    together = run_trial(SdpaPlan.select(CPU, whole), inputs).operands
    for batch, head, queries in ((0, 0, 203), (1, 2, 203), (1, 1, 1), (0, 2, 97)):
        alone = SdpaDescriptor(1, 1, queries, 150, 20, 33, 0.3, causal, True, element)
        part = {name: values[batch : batch + 1, head : head + 1] for name, values in inputs.items()}
        part |= {name: part[name][:, :, :queries] for name in ("q", "mask")}
        trial = run_trial(SdpaPlan.select(CPU, alone), part, "gaps")
        for name in ("y", "attn"):
            assert numpy.array_equal(trial.operands[name].values[0, 0], together[name].values[batch, head, :queries])


@pytest.mark.parametrize("element", FLOATS)
def test_gradients_of_a_head_do_not_depend_on_the_others(element: bk.ElementKind, rng: numpy.random.Generator) -> None:
    whole = SdpaBackwardDescriptor(2, 4, 140, 150, 20, 33, 0.3, element, 2)
    inputs = random_inputs(SdpaBackwardPlan, whole, rng)
    together = run_trial(SdpaBackwardPlan.select(CPU, whole), inputs).operands
    alone = SdpaBackwardDescriptor(1, 2, 140, 150, 20, 33, 0.3, element, 1)
    part = {name: values[1:, 1:] if values.shape[1] == 2 else values[1:, 2:] for name, values in inputs.items()}
    trial = run_trial(SdpaBackwardPlan.select(CPU, alone), part)
    for name, first in (("dq", 2), ("dk", 1), ("dv", 1)):
        assert numpy.array_equal(trial.operands[name].values[0], together[name].values[1, first:])


def test_large_problems_have_the_same_bits_on_any_number_of_threads(rng: numpy.random.Generator, threads: Any) -> None:
    q, k, v, dy = _operands(rng, (2, 4, 300, 330, 32, 32), 2, "float32")
    seen = set()
    for count in (1, 2, 5):
        threads(count)
        y, attn = _attend(q, k, v, causal=True)
        seen.add(b"".join(x.tobytes() for x in (y, attn, *_gradients(q, k, v, attn, dy))))
    assert len(seen) == 1


def test_offsets_are_64_bit(rng: numpy.random.Generator) -> None:
    """Heads more than 2^31 elements apart; the memory between is never touched."""
    room = numpy.empty((1 << 31) + 4096, numpy.float16)
    far = numpy.lib.stride_tricks.as_strided(room, (1, 2, 3, 8), (0, 1 << 32, 16, 2))
    q, k, v, _ = _operands(rng, (1, 2, 3, 5, 8, 8), dtype="float16")
    far[...] = q
    wanted, got = _attend(q, k, v), _attend(far, k, v)
    assert all(numpy.array_equal(a, b) for a, b in zip(got, wanted, strict=True))


# --- the derivative --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("causal", "masked", "kv_heads"), [(False, False, 2), (True, False, 1), (False, True, 1), (True, True, 2)])
def test_backward_is_the_derivative_of_forward(causal: bool, masked: bool, kv_heads: int, rng: numpy.random.Generator) -> None:
    """Central differences of the forward kernel in f64, independent of the backward's formulas."""
    q, k, v, dy = _operands(rng, (1, 2, 4, 5, 3, 2), kv_heads)
    mask = numpy.where(rng.random((1, 2, 4, 5)) < 0.3, -numpy.inf, rng.standard_normal((1, 2, 4, 5))) if masked else None
    if mask is not None:
        mask[0, 0, 2] = -numpy.inf
    attn = _attend(q, k, v, mask, causal)[1]
    point = {"q": q, "k": k, "v": v}
    for name, gradient in zip("qkv", _gradients(q, k, v, attn, dy), strict=True):
        for index in numpy.ndindex(gradient.shape):
            losses = []
            for step in (1e-6, -1e-6):
                moved = point | {name: point[name].copy()}
                moved[name][index] += step
                losses.append(float((_attend(**moved, mask=mask, causal=causal)[0] * dy).sum()))
            assert gradient[index] == pytest.approx((losses[0] - losses[1]) / 2e-6, abs=2e-8)


@pytest.mark.parametrize("causal", [False, True])
def test_agrees_with_pytorch(causal: bool, rng: numpy.random.Generator) -> None:
    q, k, v, dy = _operands(rng, (2, 3, 70, 70, 16, 24))
    leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal, scale=0.5)
    y.backward(torch.tensor(dy))
    ours, attn = _attend(q, k, v, causal=causal)
    assert numpy.allclose(ours, y.detach().numpy(), atol=1e-12)
    for got, leaf in zip(_gradients(q, k, v, attn, dy), leaves, strict=True):
        assert leaf.grad is not None
        assert numpy.allclose(got, leaf.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("features", "kv_heads", "against"),
    [((256, 256), None, []), ((16, 129), 4, []), ((128, 128), None, ["d_k and d_v"]), ((256, 256), 2, ["num_kv_heads"])],
)
def test_where_cublas_takes_the_gradients_of_halves(features: tuple[int, int], kv_heads: int | None, against: list[str]) -> None:
    problem = bk.SdpaBackwardDescriptor(1, 4, 8, 8, *features, 1.0, bk.ElementKind.BF16, kv_heads)
    (kernel,) = (kernel for kernel in bk.SdpaBackwardPlan.kernels if kernel.name == "aten.sdpa_backward_wide_cuda")
    assert [reason.where for limit in kernel.limits for reason in limit(problem)] == against
    names = [kernel.name for kernel in bk.SdpaBackwardPlan.kernels]
    assert names.index(kernel.name) < names.index("triton.sdpa_backward")  # the first that serves is taken
