"""Calls of functions: memory, what is refused, what is kept, how functions are declared, frameworks that are not there."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import call as call_module
from baracuda_kernels.core import registry
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.framework import framework_of
from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.view import View
from baracuda_kernels.core.workspace import ALIGNMENT

try:
    import jax
except ImportError:  # an optional framework
    jax = None

FUNCTIONS = registry.functions()
F32 = bk.ElementKind.F32


def x_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_large_arrays_of_numpy_begin_with_a_cache_line() -> None:
    y = bk.softmax(numpy.zeros((64, 1024), numpy.float32))
    assert y.ctypes.data % 64 == 0 and y.flags.writeable and y[0, 0] == 1 / 1024


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


def test_autograd_notices_what_was_written() -> None:
    x, y = X.clone().requires_grad_(), torch.zeros(4, 8)
    product = (x * y).sum()  # saves y
    bk.softmax(X, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    with torch.inference_mode():
        y = torch.zeros(4, 8)
        assert bk.softmax(X, out=y) is y


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
    "two elements": (lambda: bk.softmax_backward(X, X.double()), bk.InvalidProblem, "dy has the wrong dtype: got f32, wanted f64"),
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
    "a stream that is nothing": (lambda: bk.softmax(X, stream=0), bk.InvalidProblem, "stream has the wrong type"),
    "a stream elsewhere": (lambda: bk.softmax(X, stream=bk.Stream.cuda()), bk.InvalidProblem, "stream is on the wrong device"),
    "an output of another framework": (lambda: bk.softmax(X, out=X.numpy()), bk.InvalidProblem, "y belongs to another framework"),
    "an output of another shape": (lambda: bk.softmax(X, out=X[0]), bk.InvalidProblem, "y has the wrong shape"),
    "an output of no kind": (lambda: bk.softmax(X, out=7), bk.InvalidProblem, "y belongs to another framework: got a int"),
    "an output that gradients are taken of": (
        lambda: bk.softmax(X, out=torch.zeros(4, 8, requires_grad=True)), bk.InvalidProblem, "y needs a gradient"),
    "one output for two": (
        lambda: bk.rms_norm(X, return_rms=True, out=X), bk.InvalidProblem, "out has the wrong type: got Tensor, wanted a tuple or dict of"),
    "three outputs for two": (lambda: bk.rms_norm(X, return_rms=True, out=(X,) * 3), bk.InvalidProblem, "one for each of y, rms"),
    "an output nobody knows": (lambda: bk.softmax(X, out={"z": X}), bk.InvalidProblem, "z is not an operand"),
    "an option nobody knows": (lambda: bk.softmax(X, dim=1), bk.InvalidType, "got one with an unexpected keyword argument 'dim'"),
    "no array at all": (lambda: bk.softmax(), bk.InvalidType, "got one missing a required argument: 'x'"),
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


# --- frameworks whose devices are not there ---------------------------------------------------------------------------------------------


class FakeCuPy:
    """As much of CuPy as is used, writing down what it is asked for."""

    class ndarray: ...

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.cuda = self
        self.Stream = type("Stream", (), {"from_external": self.from_external})

    def from_external(self, stream: Any) -> Any:
        return self.ExternalStream(stream.__cuda_stream__()[1], int(self.asked[-1][-1]))

    @contextlib.contextmanager
    def Device(self, index: int) -> Iterator[None]:
        self.asked.append(f"on device {index}")
        yield
        self.asked.append("back")

    def ExternalStream(self, handle: int, index: int) -> Any:
        self.asked.append((handle, index))
        return contextlib.nullcontext()

    def get_current_stream(self) -> Any:
        return type("Stream", (), {"ptr": 77})

    def empty(self, shape: Any, dtype: Any) -> Any:
        self.asked.append((shape, dtype))
        return self.ndarray()


def test_cupy_is_asked_for_memory_and_its_stream_on_the_right_device(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, device = FakeCuPy(), bk.Device.cuda(1)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.delitem(sys.modules, "baracuda_kernels.arrays.cupy_arrays", raising=False)
    cupy = framework_of(fake.ndarray())
    assert cupy is not None and cupy.name == "CuPy" and cupy.queued_on is not None
    assert isinstance(cupy.maker((2, 3), F32, device)(), fake.ndarray)
    assert fake.asked == ["on device 1", ((2, 3), numpy.dtype("float32")), "back"]
    stream = cupy.current_stream(device)
    assert (stream.device, stream.handle) == (device, 77)
    with cupy.queued_on(stream):
        assert fake.asked[-2:] == [(77, 1), "back"]
    fake.Stream = type("Stream", (), {})  # before CuPy 14
    with cupy.queued_on(stream):
        assert fake.asked[-1] == (77, 1)
    with pytest.raises(bk.InvalidProblem, match="got bf16, wanted a dtype that CuPy has"):
        cupy.maker((2, 3), bk.ElementKind.BF16, device)
    sys.modules.pop("baracuda_kernels.arrays.cupy_arrays")


@pytest.mark.skipif(jax is None, reason="JAX is not installed")
def test_jax_elsewhere_is_refused_and_says_how() -> None:
    jax_framework = framework_of(jax.numpy.zeros(1))
    assert jax_framework is not None
    with pytest.raises(bk.Unsupported, match=r"torch\.from_dlpack\(array\)"):
        jax_framework.maker((2,), F32, bk.Device.cuda())


# --- derivatives ---------------------------------------------------------------------------------------------------------------------


def test_tangents_are_not_lost() -> None:
    """A dual tensor is refused by functions that record nothing, also after the same call without one was kept."""
    x = x_of(3)
    for _ in range(2):
        plain = bk.exp(x)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
            with pytest.raises(bk.InvalidProblem, match=r"got a tangent, wanted baracuda_kernels\.torch\.exp"):
                bk.exp(dual)
            with pytest.raises(bk.InvalidProblem, match="got a tangent, wanted memory that no gradient is taken of"):
                bk.exp(x, out=dual)
            assert torch.equal(bk.exp(x), plain)
    with pytest.raises(bk.InvalidProblem):
        torch.func.jvp(bk.exp, (x,), (x,))


# --- the way of a repeated call ------------------------------------------------------------------------------------------------------


def frames_of(call: Callable[[], object]) -> list[str]:
    """The Python functions that a call enters, beside itself."""
    entered: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered[1:]


def test_a_repeated_call_of_numpy_passes_five_frames() -> None:
    x = X.numpy()
    bk.softmax(x)
    assert len(frames := frames_of(lambda: bk.softmax(x))) <= 5, frames


def test_a_repeated_call_that_records_passes_22_frames_and_its_backward_17() -> None:
    x, gamma = X.clone().requires_grad_(), torch.ones(8, requires_grad=True)
    bt.rms_norm(x, gamma).backward(X)
    assert len(frames := frames_of(lambda: bt.rms_norm(x, gamma))) <= 22, frames
    y = bt.rms_norm(x, gamma)
    frames = frames_of(lambda: y.backward(X))
    ours = frames[frames.index("BackwardCFunction.apply") :]  # before it come PyTorch's own
    assert len(ours) <= 17, ours


@contextlib.contextmanager
def launching(called: Any, plan: Any, launch: Callable[..., None]) -> Iterator[None]:
    """The plan's launches are another meanwhile."""
    before = dict(plan._launches)
    plan._launches.update(dict.fromkeys(before, launch))
    called.known.clear()
    yield
    plan._launches.update(before)
    called.known.clear()


@pytest.mark.parametrize("of", [torch.Tensor.numpy, torch.Tensor.clone])
def test_a_workspace_of_the_calls_own(of: Callable[[Any], Any]) -> None:
    given = [of(each) for each in (X, X, X[0].clone(), X[:, :1].clone())]
    lent = []
    bk.rms_norm_backward(*given)
    plan = bk.rms_norm_backward.select(*given)
    with launching(bk.rms_norm_backward, plan, lambda addresses, workspace, stream: lent.append((addresses, workspace, stream))):
        for _ in range(2):
            bk.rms_norm_backward(*given)
    for addresses, workspace, stream in lent:
        assert workspace and workspace % ALIGNMENT == 0 and stream is bk.Stream.cpu()
        assert len(addresses) == 6 and all(addresses)
        assert all(not workspace <= address < workspace + plan.workspace_size for address in addresses)
    assert len(lent) == 2


def test_what_a_launch_raises_is_typed_and_noted() -> None:
    def broken(*given: Any) -> None:
        raise ZeroDivisionError("the backend broke")

    bk.softmax(X)
    plan = bk.softmax.select(X)
    with bk.record() as recording, launching(bk.softmax, plan, broken), pytest.raises(bk.KernelInternal, match="the backend broke"):
        bk.softmax(X)
    (entry,) = recording.entries()
    assert (entry.runs, entry.failed) == (1, 1)
    torch.testing.assert_close(bk.softmax(X), torch.softmax(X, -1))


@pytest.mark.parametrize("stream", [3, bk.Stream.cuda()])
def test_a_stream_is_checked_also_where_the_call_is_known(stream: Any) -> None:
    x, y = X.clone(), torch.zeros(4, 8)
    bk.softmax(x)
    for out in (None, y):
        with pytest.raises(bk.InvalidProblem, match="stream"):
            bk.softmax(x, out=out, stream=stream)
    assert torch.equal(bk.softmax(x, stream=bk.Stream.cpu()), bk.softmax(x)) and not y.any()
