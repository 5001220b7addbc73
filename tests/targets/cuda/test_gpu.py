"""CUDA kernels without a CUDA device: what their launches are made of, and every configuration compiled ahead of time."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import call as function_call
from baracuda_kernels.core.cuda_driver import Driver
from baracuda_kernels.core.device import CudaProfile
from baracuda_kernels.core.framework import framework_of
from baracuda_kernels.core.kernel import Kernel, exact_order
from baracuda_kernels.targets.cuda.runtime.launcher import InTurn, Queued
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, Count, Lent, Step, TritonLaunch
from baracuda_kernels.targets.operand_views import OperandView, OverViews
from baracuda_kernels.verify.aot import DOES_NOT_FIT, PROFILES, Usage
from baracuda_kernels.verify.machine_code import unwritten

import conftest
from conftest import PLANS

HAS_TRITON = importlib.util.find_spec("triton") is not None
TRITON_KERNELS = [kernel.name for plan in PLANS.values() for kernel in plan.kernels if kernel.backend is bk.BackendKind.TRITON]
GROUPS = 4  # of kernels that one process compiles: to start one takes as long as to compile ten configurations
MANY_GROUPS = 10
H200 = CudaProfile((9, 0), 132, 227 * 1024, 50 << 20)


class Body:
    arg_names = ("x", "scratch", "extent", "steps", "BLOCK")
    __name__ = "body"


def _call(extent: int, step: int) -> TritonLaunch:
    halves = bk.ElementKind.BF16
    arguments = (At(1, halves), Lent(64, bk.ElementKind.F32), Count(extent, halves), (Step(step, halves), Step(3)))
    return TritonLaunch(Body(), 7, arguments, {"BLOCK": 128})


def test_a_call_says_what_it_is_given() -> None:
    call = _call(1024, 1 << 40)
    assert call.signature() == {"x": "*bf16", "scratch": "*fp32", "extent": "i32", "steps": ("i64", "i64"), "BLOCK": "constexpr"}
    assert call.words() == [0, 0, 1024, 1 << 40, 3]
    assert call.hints() == {
        (0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 8]], (3, 0): [["tt.divisibility", 8]]
    }  # fmt: skip
    for extent, wide in ((1 << 30, "i32"), ((1 << 31) - (1 << 15), "i64"), (1 << 31, "i64")):  # a block may reach past the last one
        assert _call(extent, 8).signature()["extent"] == wide


@pytest.mark.parametrize(
    ("extent", "step", "allowed"), [(1024, 4096, True), (1023, 4096, False), (1024, 4100, False), (8, 0, True)]
)
def test_vectors_need_whole_vectors_in_every_row(extent: int, step: int, allowed: bool) -> None:
    assert _call(extent, step).allows_vectors is allowed


class Watched:
    """A driver that only writes down what it is asked, while a graph is being captured."""

    def __init__(self) -> None:
        self.launched: list[str] = []

    def is_capturing(self, device: int, stream: int) -> bool:
        return True

    def launch(self, function: Any, blocks: int, stream: int, parameters: int) -> None:
        self.launched.append(function)


def test_a_capture_that_refuses_one_of_several_launches_has_queued_none(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr("baracuda_kernels.targets.cuda.runtime.launcher.driver", lambda: watched)
    both = [Queued(bk.Device.cuda(), _call(1024, 4096)) for _ in range(2)]
    addresses, stream = (0, 4096), bk.Stream.cuda(0, 7)
    both[0].vectors.function = "first"  # type: ignore[union-attr, assignment]
    with pytest.raises(bk.Unsupported, match="one run with operands of these layouts"):
        InTurn(both)(addresses, 4096, stream)
    assert watched.launched == []
    both[1].vectors.function = "second"  # type: ignore[union-attr, assignment]
    InTurn(both)(addresses, 4096, stream)
    assert watched.launched == ["first", "second"]
    with pytest.raises(bk.Unsupported, match="scalar form"):  # an address that is no whole vector
        InTurn(both)((0, 4098), 4096, stream)
    assert watched.launched == ["first", "second"]


def test_a_launch_within_a_launch_leaves_the_words_of_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a signal handler launches what it has interrupted, or two threads the same plan."""
    queued, stream, seen = Queued(bk.Device.cuda(), _call(1024, 4096)), bk.Stream.cuda(0, 7), []
    queued.vectors.function = "loaded"  # type: ignore[union-attr, assignment]

    class Interrupted(dict[str, int]):
        """Addresses at which a signal comes."""

        def __getitem__(self, operand: Any) -> int:
            if not seen:
                queued((16, 32), 0, stream)
            return (1024, 4096)[operand]

    class Reads:
        def launch(self, function: Any, blocks: int, stream: int, parameters: int) -> None:
            seen.append(
                [ctypes.c_int64.from_address(ctypes.c_int64.from_address(parameters + 8 * slot).value).value for slot in (0, 1)]
            )

    monkeypatch.setattr("baracuda_kernels.targets.cuda.runtime.launcher.driver", Reads)
    queued.vectors.launch(Interrupted(), 8192, stream)  # type: ignore[union-attr, arg-type]
    assert seen == [[32, 64], [4096, 8192 + 64]]
    queued.vectors.launch((16, 48), 0, stream)  # type: ignore[union-attr]
    assert seen[2] == [48, 64]
    assert len(queued.vectors.buffers) == 2  # type: ignore[union-attr]


def test_a_process_forked_after_cuda_had_begun_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda._is_in_bad_fork", lambda: True)
    with pytest.raises(bk.Unsupported, match="forked after CUDA had begun, wanted one started by 'spawn' or 'forkserver'"):
        bk.SoftmaxPlan.select(bk.Stream.cuda(0), bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32))
    theirs = Driver.__new__(Driver)  # as it was before the fork
    theirs._process, theirs._library = -1, SimpleNamespace(cuGetErrorName=lambda *_: 0, cuGetErrorString=lambda *_: 0)
    assert "launch of x in a process that was forked after CUDA had begun: start it by 'spawn'" in str(
        theirs.error(3, "launch of x")
    )
    theirs._process = os.getpid()
    assert "forked" not in str(theirs.error(3, "launch of x"))


def test_pytorch_is_told_of_tensors_that_another_stream_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, what is freed after the call could be given to others while the stream is still reading it."""
    told: list[Any] = []
    given = torch.randn(4, 8)
    call = function_call.Call.__new__(function_call.Call)
    call.framework, call.plan = framework_of(given), SimpleNamespace(device=bk.Device.cuda(0))
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, queue: told.append((tensor, queue)))
    monkeypatch.setattr(bk.Stream, "queue", lambda stream: stream.handle)
    for stream in (bk.Stream.cuda(0), bk.Stream.cuda(1, 7), bk.Stream.cpu(), None):
        call._used_on(stream, [given])
    assert told == []
    call._used_on(bk.Stream.cuda(0, 7), [given])
    assert told == [(given, 7)]


def _kernel(**fields: Any) -> Kernel:
    return Kernel("triton.some", bk.BackendKind.TRITON, "triton:some", exact_order, **fields)


def test_an_old_architecture_and_too_little_shared_memory_are_reasons() -> None:
    old = CudaProfile((7, 5), 40, 64 * 1024, 4 << 20)
    (reason,) = _kernel().reasons_against_profile(old)
    assert reason.code is bk.ReasonCode.ARCHITECTURE and "7.5" in str(reason) and "8.0" in str(reason)
    small = CudaProfile((8, 9), 24, 99 * 1024, 32 << 20)
    (reason,) = _kernel(shared_bytes=200 * 1024).reasons_against_profile(small)
    assert reason.code is bk.ReasonCode.SHARED_MEMORY and "101376 bytes" in str(reason)
    assert not list(_kernel().reasons_against_profile(H200))


def test_a_missing_device_and_a_missing_triton_are_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.core.device.cuda_device_count", lambda: 0)
    monkeypatch.setattr(
        "baracuda_kernels.core.kernel.missing_packages", lambda backend: ("triton",) if backend.value == "triton" else ()
    )
    with pytest.raises(bk.Unsupported) as refusal:
        bk.SoftmaxPlan.select(bk.Stream.cuda(0), bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32))
    codes = {reason.code for reason in refusal.value.candidates["triton.softmax"]}
    assert codes == {bk.ReasonCode.DEVICE_ABSENT, bk.ReasonCode.BACKEND_MISSING}


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("group", range(GROUPS))
def test_some_configurations_compile_and_fit(group: int) -> None:
    if conftest.SLOW:
        pytest.skip("all of them are compiled")
    _compile(TRITON_KERNELS[group::GROUPS], "sm_90", every=16, most=2)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("arch", PROFILES)
@pytest.mark.parametrize("group", range(MANY_GROUPS))
def test_every_configuration_compiles_and_fits(group: int, arch: str) -> None:
    """For the devices that kernels were tuned on all of them, for others half."""
    _compile(TRITON_KERNELS[group::MANY_GROUPS], arch, every=1 if arch == "sm_90" else 2)


# Bytes per thread. The first two were tuned with Triton 3.6, which spills nothing there, the last three spill with 3.6 alone but for columns of
# halves in the gradient of nancumsum that lie out of line; the others are faster for it on an H200.
TOLERATED = {
    "gradients_of_chunks": 32,
    "forward_columns": 16,
    "attend": 16,
    "columns_again": 40,
    "walk": 32,
    "scan_tiles": 24,
    "reduce_tiles": 8,
    "quantiles_in_registers": 8,
}


def _compile(kernels: list[str], arch: str, every: int = 1, most: int | None = None) -> None:
    """Shared memory stays within what the kernel declares and the device has, no uniform register is read before it is written, and
    on sm_90 no register is spilled."""
    program = [sys.executable, "-m", "baracuda_kernels.verify.aot", *kernels, "--arch", arch, "--every", str(every)]
    program += [] if most is None else ["--most", str(most)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["kernel"] for line in lines} == set(kernels) and done.returncode in (0, DOES_NOT_FIT), done.stderr
    spilled = [line for line in lines if line["spilled"] > TOLERATED.get(line["body"], 0) and arch == "sm_90"]
    too_much = ("declared", "a multiprocessor has")
    greedy = [
        line
        for line in lines
        if line["shared"] > PROFILES[arch].shared_bytes or any(each in str(line["complaints"]) for each in too_much)
    ]
    wrong = [line for line in lines if line["unwritten"]]
    assert not spilled and not greedy and not wrong


def test_a_program_that_no_multiprocessor_can_hold_is_complained_about() -> None:
    fits = Usage("triton.binary", "tiled", "sm_90", "", 8, True, 255, 0, 0, [])
    assert list(fits.complaints(0)) == []
    (complaint,) = replace(fits, warps=16).complaints(0)
    assert complaint == "255 registers for each of 512 threads, and a multiprocessor has 65536"


@pytest.mark.parametrize(("offsets", "in_vectors"), [((0, 0), True), ((4, 32), True), ((0, 8), False)])
def test_views_get_the_form_ready_that_they_run(monkeypatch: pytest.MonkeyPatch, offsets: Any, in_vectors: bool) -> None:
    loaded: list[bool] = []
    monkeypatch.setattr("baracuda_kernels.targets.cuda.runtime.launcher._Form.load", lambda form: loaded.append(form.has_vectors))
    queued = [Queued(bk.Device.cuda(), _call(1024, 4096)) for _ in range(2)]
    views = [OperandView(operand, offset) for operand, offset in enumerate(offsets)]
    OverViews(InTurn(queued), views).get_ready()
    assert loaded == [in_vectors] * 2


# As ptxas 12.8 compiled the gradients of the scan by four warps, shortened: UR7 holds the place of a matrix, and nothing has written it.
WRONGLY_COMPILED = """
        /*0000*/                   ULDC UR4, c[0x0][0x210] ;
        /*0010*/                   UIADD3 UR15, UP0, UR7, 0x40, URZ ;
.L_x_1:
        /*0020*/                   UIADD3 UR4, UR4, -0x1, URZ ;
        /*0030*/                   HGMMA.64x32x16.F32.BF16 R24, R40, gdesc[UR12].tnspB, R24, gsb0 ;
        /*0040*/                   UISETP.NE.AND UP1, UPT, UR4, URZ, UPT ;
        /*0050*/              @P0  BRA `(.L_x_1) ;
        /*0060*/                   EXIT ;
"""


def test_a_register_that_nothing_has_written_is_found() -> None:
    assert unwritten(WRONGLY_COMPILED) == [
        "UIADD3 UR15, UP0, UR7, 0x40, URZ",
        "HGMMA.64x32x16.F32.BF16 R24, R40, gdesc[UR12].tnspB, R24, gsb0",
    ]
    mended = WRONGLY_COMPILED.replace(
        "ULDC UR4", "ULDC.64 UR14, c[0x0][0x220] ;\n        /*0008*/ UMOV UR7, URZ ;\n        /*000c*/ ULDC UR4"
    )
    assert unwritten(mended) == []


def test_what_any_way_to_a_read_has_written_counts() -> None:
    """Written in a loop's first round, or by what is called: nobody can tell without running it."""
    assert (
        unwritten(
            """
        /*0000*/                   CALL.REL.NOINC `(.L_x_2) ;
        /*0010*/                   UMOV UR8, UR6 ;
        /*0020*/              @P0  BRA `(.L_x_3) ;
        /*0030*/                   UMOV UR9, URZ ;
.L_x_3:
        /*0040*/                   UMOV UR10, UR9 ;
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   R2UR UR6, R2 ;
        /*0070*/                   RET.REL.NODEC R2 `(entry) ;
"""
        )
        == []
    )


def test_handle_zero_is_the_default_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch would take it for no handle, and make a stream of its own."""
    import torch

    for name in ("current_stream", "default_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda index, name=name: (name, index))
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda handle, device: (handle, device))
    queues = [bk.Stream.cuda(1, handle).queue() for handle in (None, 0, 7)]
    assert queues == [("current_stream", 1), ("default_stream", 1), (7, 1)]
