"""What only a CUDA device can show: streams, graphs, the allocator, huge tensors, errors of the driver. Needs --device cuda."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.bench.engine import Settings
from baracuda_kernels.bench.host import measure_host
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.encoding import decode
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.verify.aot import configurations, triton_kernels
from baracuda_kernels.verify.bounds import error_bound, relative_error
from baracuda_kernels.verify.case import Case
from baracuda_kernels.verify.trial import random_inputs, run_trial

from conftest import DEVICE, KERNEL_IDS, KERNELS, PLANS, STREAM, served_corners
from stressed import Ringing

pytestmark = pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CUDA, reason="run with --device cuda")

F32, BF16 = bk.ElementKind.F32, bk.ElementKind.BF16
NONE = bk.Workspace.none()
TRITON = [pair for pair in KERNELS if pair[1].backend is bk.BackendKind.TRITON]
TRITON_IDS = [kernel.name for _, kernel in TRITON]


class Job:
    """A plan with operands on the device, as PyTorch tensors, and the bits it should leave behind."""

    def __init__(self, op: str, kernel: str, problem: Any, seed: int = 0) -> None:
        self.type = PLANS[op]
        self.plan = self.type.force(kernel, STREAM, problem)
        self.inputs = random_inputs(self.type, problem, numpy.random.default_rng(seed))
        self.tensors = {}
        for operand in self.type.args_type.OPERANDS:
            if operand.presence(problem) is False:
                continue
            dtype = DTYPES[operand.element(problem)]
            if operand.name in self.inputs:
                self.tensors[operand.name] = torch.as_tensor(self.inputs[operand.name], device="cuda").to(dtype)
            else:
                self.tensors[operand.name] = torch.full(operand.shapes(problem)[0], torch.nan, device="cuda").to(dtype)
        size = self.plan.workspace_size
        self.workspace = bk.Workspace.borrowed(torch.empty(size, dtype=torch.uint8, device="cuda")) if size else NONE
        self.args = self.type.args_type(**self.tensors)

    def run(self, stream: bk.Stream = STREAM) -> None:
        self.plan.run(stream, self.workspace, self.args)

    def outputs(self) -> list[torch.Tensor]:
        return [self.tensors[name] for name in self.type.outputs() if name in self.tensors]

    def bits(self) -> list[bytes]:
        torch.cuda.synchronize()
        return [output.contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes() for output in self.outputs()]

    def spoil(self) -> None:
        for output in self.outputs():
            output.fill_(torch.nan if output.is_floating_point() else 77)


def in_elements(kernels: Any, elements: Any) -> list[Any]:
    """Each kernel with each of the elements that it serves."""
    return [
        pytest.param(op, kernel, element, id=f"{kernel.name}-{element}")
        for op, kernel in kernels
        for element in elements
        if element in kernel.elements
    ]


def middling(op: str, kernel: Any, element: bk.ElementKind | None = None) -> Any:
    """The largest corner that the kernel serves, in bf16 if it can."""
    cases = served_corners(op, kernel, element or (BF16 if BF16 in kernel.elements else kernel.elements[0]))
    return max(cases, key=lambda case: case.largest_operand).descriptor


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_run_neither_allocates_nor_waits(op: str, kernel: Any) -> None:
    """PyTorch's allocator is not asked, and `run` returns while the stream is still busy."""
    job = Job(op, kernel.name, middling(op, kernel))
    job.run()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()
    busy = torch.cuda.Event()
    torch.cuda._sleep(200_000_000)  # about a tenth of a second
    job.run()
    busy.record()
    assert not busy.query(), "run waited for the device"
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()
    assert after["allocation.all.allocated"] == before["allocation.all.allocated"]


@pytest.mark.parametrize(("op", "kernel", "element"), in_elements(KERNELS, (F32, BF16)))
def test_a_captured_graph_replays_with_new_data(op: str, kernel: Any, element: bk.ElementKind) -> None:
    problem = middling(op, kernel, element)
    job, other = Job(op, kernel.name, problem, 1), Job(op, kernel.name, problem, 2)
    other.run()
    expected = other.bits()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        job.run()
    for name in job.inputs:
        job.tensors[name].copy_(other.tensors[name])
    job.spoil()
    graph.replay()
    assert job.bits() == expected


@pytest.mark.filterwarnings("ignore:.*CUDA Graph is empty.*")
def test_a_capture_that_would_compile_is_refused_and_says_what_to_do() -> None:
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (64, 1000), 1, bk.ElementKind.F16)
    plan = bk.SoftmaxPlan.select(STREAM, problem)
    memory = torch.randn(2 * 64 * 1000 + 2, device="cuda").half()
    x, y = (memory[start : start + 64_000].view(64, 1000) for start in (1, 64_001))  # never seen: not whole vectors
    args = bk.SoftmaxArgs(x=x, y=y)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(bk.Unsupported, match="one run with operands of these layouts"), torch.cuda.graph(graph):
        plan.run(STREAM, NONE, args)
    torch.cuda.synchronize()
    plan.run(STREAM, NONE, args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(STREAM, NONE, args)
    y.fill_(torch.nan)
    graph.replay()
    assert relative_error(y.double().cpu().numpy(), torch.softmax(x.double(), 1).cpu().numpy()) < 6e-4


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_work_goes_to_the_stream_that_was_given(op: str, kernel: Any) -> None:
    """Queued behind a long sleep on a stream that is not current, the result is not there before that stream is done."""
    job = Job(op, kernel.name, middling(op, kernel))
    job.run()
    expected = job.bits()
    job.spoil()
    spoiled = job.bits()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
    job.run(bk.Stream.cuda(0, side.cuda_stream))
    here = torch.cuda.current_stream()
    copies = [output.clone() for output in job.outputs()]
    here.synchronize()
    assert [copy.contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes() for copy in copies] == spoiled
    assert job.bits() == expected


@pytest.mark.parametrize(("op", "kernel"), TRITON, ids=TRITON_IDS)
def test_two_streams_at_once(op: str, kernel: Any) -> None:
    problem = middling(op, kernel)
    jobs = [Job(op, kernel.name, problem, seed) for seed in (1, 2)]
    expected = []
    for job in jobs:
        job.run()
        expected.append(job.bits())
        job.spoil()
    streams = [torch.cuda.Stream() for _ in jobs]
    torch.cuda.synchronize()
    for _ in range(20):
        for job, stream in zip(jobs, streams, strict=True):
            job.run(bk.Stream.cuda(0, stream.cuda_stream))
    assert [job.bits() for job in jobs] == expected


@pytest.mark.parametrize(("op", "kernel"), TRITON, ids=TRITON_IDS)
def test_threads_that_never_saw_the_device(op: str, kernel: Any) -> None:
    """New threads have no context of their own, and share one plan."""
    problem = middling(op, kernel)
    plan = PLANS[op].force(kernel.name, STREAM, problem)
    jobs = [Job(op, kernel.name, problem, seed) for seed in range(6)]
    expected = []
    for job in jobs:
        job.plan = plan
        job.run()
        expected.append(job.bits())
        job.spoil()
    start = threading.Barrier(6)

    def repeat(job: Job) -> None:
        start.wait()
        for _ in range(50):
            job.run()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(repeat, jobs))
    assert [job.bits() for job in jobs] == expected


@pytest.mark.parametrize(("op", "kernel", "element"), in_elements([pair for pair in TRITON if "backward" in pair[0]], (F32, BF16)))
def test_a_thousand_repeats_have_the_same_bits(op: str, kernel: Any, element: bk.ElementKind) -> None:
    """Of the largest problem for which that is promised."""
    steady = [case for case in served_corners(op, kernel, element) if case.guarantee.deterministic]
    job = Job(op, kernel.name, max(steady, key=lambda case: case.largest_operand).descriptor)
    job.run()
    first = [output.clone() for output in job.outputs()]
    for output in first:
        assert not output.isnan().any()
    differing = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(1000):
        job.spoil()
        job.run()
        for output, wanted in zip(job.outputs(), first, strict=True):
            differing += (output != wanted).sum()
    assert differing.item() == 0


@pytest.mark.parametrize(("op", "kernel", "element"), in_elements(TRITON, FLOATS))
def test_every_tile_against_the_reference(op: str, kernel: Any, element: bk.ElementKind) -> None:
    """Each problem that leads to a tile of its own, contiguous and with rows a few elements apart."""
    rng = numpy.random.default_rng(5)
    for problem in PLANS[op].cases.tiles(element):
        case = Case(PLANS[op], kernel, problem, DEVICE)
        if case.largest_operand > 4_000_000:
            continue  # the bench compares these; their code is that of smaller ones
        inputs = random_inputs(PLANS[op], problem, rng)
        run_trial(case.plan, inputs)
        run_trial(case.plan, inputs, "gaps")


def test_configurations_are_those_that_are_compiled_ahead() -> None:
    for plan, kernel in triton_kernels():
        assert list(configurations(plan, kernel, DEVICE.profile())), kernel.name


HUGE = (1 << 31) + (1 << 16)  # elements: 4 GB of bf16


@pytest.mark.usefixtures("most_of_the_device")
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_past_two_to_the_31(axis: int) -> None:
    shape = (HUGE // 4096, 4096) if axis == 1 else (4096, HUGE // 4096)
    _softmax_of(shape, axis, BF16)


@pytest.mark.usefixtures("most_of_the_device")
def test_softmax_of_more_rows_than_32_bits_count() -> None:
    _softmax_of((HUGE, 1), 1, BF16)


@pytest.mark.usefixtures("most_of_the_device")
def test_rows_of_two_beside_more_than_32_bits_count() -> None:
    _softmax_of((2, HUGE), 0, BF16)


@pytest.mark.usefixtures("most_of_the_device")
def test_one_row_past_two_to_the_31() -> None:
    _softmax_of((1, HUGE), 1, BF16)


def _softmax_of(shape: tuple[int, int], axis: int, element: bk.ElementKind) -> None:
    """Forward in place of nothing, then backward: checked on lines at both ends against the float64 formulas."""
    x = torch.randn(shape[0] * shape[1] // 4, device="cuda").to(DTYPES[element]).repeat(4).view(shape)
    y = torch.full_like(x, torch.nan)
    bk.SoftmaxPlan.select(STREAM, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, shape, axis, element)).run(
        STREAM, NONE, bk.SoftmaxArgs(x=x, y=y)
    )
    lines = 1 - axis
    for start in {0, max(0, shape[lines] - 3)}:
        length = min(3, shape[lines])
        few_x, few_y = (tensor.narrow(lines, start, length) for tensor in (x, y))
        if few_x.numel() > 1 << 30:
            total = torch.logsumexp(few_x.float(), axis).double()
            part = few_x.narrow(axis, HUGE - 100_000, 100_000)
            expected = torch.exp(part.double() - total[:, None])
            few_y = few_y.narrow(axis, HUGE - 100_000, 100_000)
        else:
            expected = torch.softmax(few_x.double(), axis)
        assert float((few_y.double() - expected).norm() / expected.norm()) < 4e-3
    assert not y.view(-1)[-1].isnan()
    dx = y  # in place
    dy = x
    bk.SoftmaxBackwardPlan.select(STREAM, bk.SoftmaxBackwardDescriptor(bk.SoftmaxKind.SOFTMAX, shape, axis, element)).run(
        STREAM, NONE, bk.SoftmaxBackwardArgs(dy=dy, y=y, dx=dx)
    )
    torch.cuda.synchronize()
    assert bool(torch.isfinite(dx.view(-1)[-1000:]).all())


@pytest.mark.usefixtures("most_of_the_device")
def test_rms_norm_past_two_to_the_31() -> None:
    shape = (HUGE // 1024, 1024)
    x = torch.randn(HUGE // 4, device="cuda").bfloat16().repeat(4).view(shape)
    y, gamma = torch.full_like(x, torch.nan), torch.randn(1024, device="cuda").bfloat16()
    rms = torch.empty(shape[0], 1, device="cuda")
    problem = bk.RMSNormDescriptor(shape, 2, 1e-5, True, BF16, F32)
    bk.RMSNormPlan.select(STREAM, problem).run(STREAM, NONE, bk.RMSNormArgs(x=x, gamma=gamma, y=y, rms=rms))
    for part in (slice(0, 3), slice(-3, None)):
        few = x[part].double()
        expected = few / (few.square().mean(1, keepdim=True) + 1e-5).sqrt() * gamma.double()
        assert float((y[part].double() - expected).norm() / expected.norm()) < 4e-3
    back = bk.RMSNormBackwardPlan.select(STREAM, bk.RMSNormBackwardDescriptor(shape, 2, True, BF16, F32))
    dx, dgamma = torch.full_like(x, torch.nan), torch.full_like(gamma, torch.nan)
    lent = bk.Workspace.borrowed(torch.empty(back.workspace_size, dtype=torch.uint8, device="cuda"))
    back.run(STREAM, lent, bk.RMSNormBackwardArgs(dy=y, x=x, gamma=gamma, rms=rms, dx=dx, dgamma=dgamma))
    assert bool(torch.isfinite(dx[-3:]).all()) and bool(torch.isfinite(dgamma).all())
    expected_dgamma = sum(
        (y[at : at + (1 << 18)].double() * x[at : at + (1 << 18)].double() / rms[at : at + (1 << 18)].double()).sum(0)
        for at in range(0, shape[0], 1 << 18)
    )
    assert float((dgamma.double() - expected_dgamma).norm() / expected_dgamma.norm()) < 4e-3


@pytest.mark.usefixtures("most_of_the_device")
def test_rope_past_two_to_the_31() -> None:
    batch, heads, width = 2, 8, 128
    length = HUGE // (batch * heads * width)
    x = torch.randn(batch * heads, length * width // 4, device="cuda").bfloat16().repeat(1, 4).view(batch, heads, length, width)
    y = torch.full_like(x, torch.nan)
    problem = bk.RopeDescriptor(batch, heads, length, width, 10000.0, BF16)
    bk.RopePlan.select(STREAM, problem).run(STREAM, NONE, bk.RopeArgs(x=x, y=y))
    last = bk.RopeDescriptor(1, 1, 3, width, 10000.0, BF16)
    expected = bk.RopePlan.reference(last, x[-1:, -1:, -3:].double().cpu().numpy(), numpy.arange(length - 3, length))
    assert relative_error(y[-1:, -1:, -3:].double().cpu().numpy(), expected) < error_bound(bk.RopePlan.cases, last)
    assert not y.isnan().any()


@pytest.mark.usefixtures("most_of_the_device")
def test_strides_past_two_to_the_31() -> None:
    """Two rows 6 GB apart."""
    buffer = torch.zeros((1 << 31) + (1 << 30) + 4096, dtype=torch.bfloat16, device="cuda")
    x = buffer.as_strided((2, 1000), ((1 << 31) + (1 << 30), 1))
    x.copy_(torch.randn(2, 1000))
    y = torch.full((2, 1000), torch.nan, device="cuda").bfloat16()
    bk.SoftmaxPlan.select(STREAM, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (2, 1000), 1, BF16)).run(
        STREAM, NONE, bk.SoftmaxArgs(x=x, y=y)
    )
    assert relative_error(y.double().cpu().numpy(), torch.softmax(x.double(), 1).cpu().numpy()) < 4e-3


def test_operands_on_the_wrong_device_are_refused() -> None:
    plan = bk.SoftmaxPlan.select(STREAM, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, F32))
    x, y = torch.randn(4, 8), torch.empty(4, 8, device="cuda")
    with pytest.raises(bk.InvalidProblem, match="x is on the wrong device: got cpu, wanted cuda:0"):
        plan.run(STREAM, NONE, bk.SoftmaxArgs(x=x, y=y))
    with pytest.raises(bk.InvalidProblem, match="stream is on the wrong device"):
        plan.run(bk.Stream.cpu(), NONE, bk.SoftmaxArgs(x=y, y=y.clone()))


def test_a_device_that_is_not_there_is_a_reason() -> None:
    with pytest.raises(bk.Unsupported, match="cuda:7 is not there"):
        bk.SoftmaxPlan.select(bk.Stream.cuda(7), bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, F32))


def test_a_driver_error_is_typed_and_leaves_the_process_usable() -> None:
    from baracuda_kernels.core.cuda_driver import DriverError, driver

    job = Job("softmax", "triton.softmax", bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, F32))
    job.run()
    launch: Any = job.plan.admit(job.args)
    function = launch.vectors.load()
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        driver().launch(function, 0, 0, 0)
    assert isinstance(caught.value, bk.KernelInternal) and caught.value.status == 1
    with pytest.raises(DriverError, match="cuModuleLoadData"):
        driver().load(0, b"not machine code", "nothing", 32, 0)
    job.spoil()
    job.run()
    assert not any(output.isnan().any() for output in job.outputs())


def test_a_tensor_given_to_another_stream_may_be_freed_after_the_call() -> None:
    """Its memory is not given to others before that stream has read it."""
    count, side = 1 << 20, torch.cuda.Stream()
    stream = bk.Stream.cuda(0, side.cuda_stream)
    bk.exp(torch.zeros(count, device="cuda"), stream=stream)  # compiled
    given = torch.zeros(count, device="cuda")
    address = given.data_ptr()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
    result = bk.exp(given, stream=stream)
    del given
    others = [torch.full((count,), 7.0, device="cuda") for _ in range(8)]
    assert not side.query()
    assert address not in [other.data_ptr() for other in others]
    torch.cuda.synchronize()
    assert bool((result == 1).all())


def test_a_process_forked_from_this_one_is_told_that_cuda_is_lost() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            bk.SoftmaxPlan.select(STREAM, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, F32))
        except bk.Unsupported as refusal:
            os.write(writer, str(refusal).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader) as said:
        assert "forked after CUDA had begun" in said.read()


def test_launches_that_signals_end_leave_those_after_them_right() -> None:
    x = torch.randn(300, 5000, device="cuda")
    calls = [lambda: bk.softmax(x, 1), lambda: bk.sum(x, 0), lambda: bk.cumsum(x, 1), lambda: bk.median(x, 1)[0]]
    expected = [call() for call in calls]
    before = signal.getsignal(signal.SIGALRM)
    ringing, ended, results = Ringing(0.00005, 0.001), 0, []
    gc.disable()  # what a signal raises in a callback of the collector, such as JAX's, ends no call and is a warning
    try:
        for number in range(4000):
            which = number % len(calls)
            ended += ringing.during(lambda which=which: results.append((which, calls[which]())))
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 10 < ended < 4000
    assert all(torch.equal(result, expected[which]) for which, result in results)


def test_a_race_that_runs_out_of_memory_is_no_crash() -> None:
    # Larger than what may be left in memory that other tensors hold.
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (16387, 16384), 1, F32)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        with pytest.raises(bk.Unsupported, match=r"could not be timed here: got .*memory"):
            bk.SoftmaxPlan.select(STREAM, problem, bk.PlanPreference(effort=bk.Effort.MEASURE))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    bk.SoftmaxPlan.select(STREAM, problem, bk.PlanPreference(effort=bk.Effort.MEASURE))


@pytest.mark.parametrize("module", ["cupy", "jax"])
def test_arrays_of_other_frameworks(module: str) -> None:
    array_module = pytest.importorskip(module)
    if module == "jax" and all(device.platform == "cpu" for device in array_module.devices()):
        pytest.skip("JAX is told to leave the GPU alone: run with JAX_PLATFORMS=cuda")
    x = torch.randn(5, 33, device="cuda")
    y = torch.empty_like(x)
    array: Callable[[Any], Any] = array_module.from_dlpack if module == "cupy" else array_module.dlpack.from_dlpack
    plan = bk.SoftmaxPlan.select(STREAM, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (5, 33), 1, F32))
    plan.run(STREAM, NONE, bk.SoftmaxArgs(x=array(x), y=y))
    assert torch.allclose(y, torch.softmax(x, 1), rtol=1e-5)


def test_measured_choice() -> None:
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (512, 512), 1, F32)
    plan = bk.SoftmaxPlan.select(STREAM, problem, bk.PlanPreference(effort=bk.Effort.MEASURE))
    assert any(reason.code is bk.ReasonCode.SLOWER for reasons in plan.rejected.values() for reason in reasons)


def test_bits_of_halves_survive_the_way_to_the_device() -> None:
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (3, 50), 1, BF16)
    inputs = random_inputs(bk.SoftmaxPlan, problem, numpy.random.default_rng(0))
    trial = run_trial(bk.SoftmaxPlan.select(STREAM, problem), inputs)
    assert numpy.array_equal(decode(trial.operands["x"].raw, BF16).reshape(3, 50), inputs["x"])


@pytest.mark.parametrize("op", ["softmax", "unary", "reduce", "fused"])
def test_a_launch_is_timed_beside_triton_s_own(op: str) -> None:
    row = measure_host(op, PLANS[op], Settings(rounds=1, device=DEVICE))
    assert row is not None and {"Triton kernel[grid]", "torch.exp(out=)"} <= set(row.times)
