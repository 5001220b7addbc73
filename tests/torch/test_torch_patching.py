"""torch.nn.functional served by plans within a context."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import baracuda_kernels as bk
import baracuda_kernels.torch as bt

ORIGINALS = {name: getattr(F, name) for name in ("softmax", "log_softmax", "rms_norm", "scaled_dot_product_attention")}
X, Q = torch.randn(2, 3, 8), torch.randn(2, 4, 5, 8)
KV = torch.randn(2, 2, 5, 8)
LOWER = torch.ones(5, 5, dtype=torch.bool).tril()

SERVED: dict[str, tuple[str, str, Callable[[], torch.Tensor]]] = {
    "softmax": ("softmax", "numba.softmax", lambda: F.softmax(X, dim=1)),
    "nn.Softmax": ("softmax", "numba.softmax", lambda: torch.nn.Softmax(-1)(X)),
    "log_softmax": ("log_softmax", "numba.softmax", lambda: F.log_softmax(X, -1)),
    "rms_norm": ("rms_norm", "numba.rms_norm", lambda: F.rms_norm(X, (8,))),
    "two axes": ("rms_norm", "numba.rms_norm", lambda: F.rms_norm(X, (3, 8), X[0], 0.5)),
    "half": ("rms_norm", "numba.rms_norm", lambda: F.rms_norm(X.bfloat16(), (8,))),
    "permuted": ("scaled_dot_product_attention", "numba.sdpa", lambda: F.scaled_dot_product_attention(Q.mT, Q.mT, Q.mT)),
    "causal": ("scaled_dot_product_attention", "numba.sdpa", lambda: F.scaled_dot_product_attention(Q, Q, Q, is_causal=True)),
    "bool mask": ("scaled_dot_product_attention", "numba.sdpa", lambda: F.scaled_dot_product_attention(Q, Q, Q, LOWER)),
    "mask": ("scaled_dot_product_attention", "numba.sdpa", lambda: F.scaled_dot_product_attention(Q, Q, Q, Q[:, :1, :, :5], scale=0.1)),
    "groups": ("scaled_dot_product_attention", "numba.sdpa", lambda: F.scaled_dot_product_attention(Q, KV, KV, enable_gqa=True)),
}  # fmt: skip
LEFT_ALONE: dict[str, tuple[str, str, Callable[[], torch.Tensor]]] = {
    "dtype": ("softmax", "dtype must be left out: got torch.float64", lambda: F.softmax(X, -1, dtype=torch.float64)),
    "axis": ("softmax", "axis is not an axis: got 7", lambda: F.softmax(X, 7)),
    "integers": ("softmax", "numba.softmax does not support this dtype: got i64", lambda: F.softmax(X.long(), -1)),
    "unknown": ("softmax", "x cannot be seen as an array", lambda: F.softmax(X.abs().to(torch.uint16), -1)),
    "meta": ("softmax", "x has the wrong type: got a Tensor", lambda: F.softmax(X.to("meta"), -1)),
    "mixed": ("rms_norm", "gamma has the wrong dtype: got f64, wanted f32", lambda: F.rms_norm(X, (8,), X[0, 0].double())),
    "extents": ("rms_norm", "normalized_shape is out of range: got (7,)", lambda: F.rms_norm(X, (7,))),
    "dropout": ("scaled_dot_product_attention", "dropout_p is out of range: got 0.5", lambda: F.scaled_dot_product_attention(Q, Q, Q, dropout_p=0.5)),
    "rank": ("scaled_dot_product_attention", "query has the wrong rank: got rank 3", lambda: F.scaled_dot_product_attention(X, X, X)),
    "trained mask": ("scaled_dot_product_attention", "attn_mask needs a gradient",
                     lambda: F.scaled_dot_product_attention(Q, Q, Q, torch.zeros(5, 5, requires_grad=True))),
    "lengths": ("scaled_dot_product_attention", "k has the wrong shape", lambda: F.scaled_dot_product_attention(Q, Q, Q[:, :, :3])),
}  # fmt: skip


@pytest.mark.parametrize("case", SERVED)
def test_served(case: str) -> None:
    name, kernel, call = SERVED[case]
    expected = call()
    with bt.patched() as report:
        found = call()
    assert report.served == {name: {kernel: 1}} and not report.left_alone
    assert f"{name}: 1 by {kernel}" in str(report)
    torch.testing.assert_close(found, expected, rtol=1e-2 if found.dtype is torch.bfloat16 else 1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    name, why, call = LEFT_ALONE[case]

    def outcome() -> Any:
        torch.manual_seed(1)
        try:
            return call()
        except (RuntimeError, IndexError) as error:
            return str(error)

    expected = outcome()
    with bt.patched() as report:
        found = outcome()
    (reason,) = report.left_alone[name]
    assert reason.startswith(why) and not report.served
    if isinstance(expected, torch.Tensor) and not expected.is_meta:
        assert torch.equal(found, expected)
    else:
        assert str(found) == str(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: F.softmax([1.0], -1),
        lambda: F.softmax(X, -1, unknown=1),
        lambda: F.rms_norm(X, (8,), [1.0] * 8),
        lambda: F.scaled_dot_product_attention(Q, None, Q),
    ],
)
def test_wrong_calls_raise_what_they_always_did(wrong: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as expected:
        wrong()
    with bt.patched() as report, pytest.raises(expected.type) as found:
        wrong()
    assert str(found.value) == str(expected.value) and str(report) == "no calls"


def test_gradients_are_recorded() -> None:
    x, gamma = X.clone().requires_grad_(), X[0, 0].clone().requires_grad_()
    expected = torch.autograd.grad(F.rms_norm(x, (8,), gamma).square().sum(), (x, gamma))
    with bt.patched() as report:
        found = torch.autograd.grad(F.rms_norm(x, (8,), gamma).square().sum(), (x, gamma))
    assert report.served == {"rms_norm": {"numba.rms_norm": 1}}
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
def test_under_autocast_elements_are_those_of_pytorch() -> None:
    calls = [SERVED["softmax"][2], SERVED["causal"][2], lambda: F.rms_norm(X.bfloat16(), (8,), X[0, 0])]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = [call().dtype for call in calls]
    with torch.autocast("cpu", dtype=torch.bfloat16), bt.patched() as report:
        assert [call().dtype for call in calls] == expected
    assert not report.left_alone


def test_everything_is_restored() -> None:
    def is_original() -> bool:
        return all(getattr(F, name) is original for name, original in ORIGINALS.items())

    with pytest.raises(ZeroDivisionError), bt.patched() as outer:
        with bt.patched() as inner:
            F.softmax(X, -1)
        assert not is_original()
        F.softmax(X, -1)
        raise ZeroDivisionError
    assert is_original()
    assert (inner.served, outer.served) == ({"softmax": {"numba.softmax": 1}}, {"softmax": {"numba.softmax": 2}})


def test_what_others_put_over_it_stays() -> None:
    try:
        with bt.patched() as report:
            below = F.softmax
            F.softmax = theirs = lambda *args, **named: below(*args, **named)
            F.softmax(X, -1)
        assert F.softmax is theirs
        assert torch.equal(F.softmax(X, -1), ORIGINALS["softmax"](X, -1))
        assert report.served == {"softmax": {"numba.softmax": 1}}
    finally:
        F.softmax = ORIGINALS["softmax"]


def test_other_threads_are_left_alone() -> None:
    inside, done = threading.Event(), threading.Event()
    reports = []

    def elsewhere() -> None:
        inside.wait(30)
        F.softmax(X, -1)
        with bt.patched() as report:
            F.softmax(X, -1)
            reports.append(report)
            done.set()
            closed.wait(30)
            F.softmax(X, -1)

    closed = threading.Event()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    with bt.patched() as report:
        inside.set()
        assert done.wait(30)
    closed.set()
    thread.join(30)
    assert not report.served and reports[0].served == {"softmax": {"numba.softmax": 2}}
    assert F.softmax is ORIGINALS["softmax"]


def test_nothing_that_is_compiled_is_patched() -> None:
    torch.compiler.reset()
    compiled = torch.compile(lambda x: F.softmax(x, -1), fullgraph=True, backend="aot_eager")
    with bt.patched() as report, bk.record() as recording:
        assert torch.equal(compiled(X), ORIGINALS["softmax"](X, -1))
    assert not report.served and not recording.entries()
    torch.compiler.reset()
