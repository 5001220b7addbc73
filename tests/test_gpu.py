"""CUDA kernels without a CUDA device: what their launches are made of, and every configuration compiled ahead of time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.aot import DOES_NOT_FIT, PROFILES
from baracuda_kernels.core.device import CudaProfile
from baracuda_kernels.core.kernel import Kernel, exact_order
from baracuda_kernels.gpu.call import At, Call, Count, Lent, Step
from baracuda_kernels.gpu.launch import InTurn, Queued

from conftest import PLANS

HAS_TRITON = importlib.util.find_spec("triton") is not None
TRITON_KERNELS = [kernel.name for plan in PLANS.values() for kernel in plan.kernels if kernel.backend is bk.BackendKind.TRITON]
H200 = CudaProfile((9, 0), 132, 227 * 1024, 50 << 20)


class Body:
    arg_names = ("x", "scratch", "extent", "steps", "BLOCK")
    __name__ = "body"


def _call(extent: int, step: int) -> Call:
    halves = bk.ElementKind.BF16
    arguments = (At(1, halves), Lent(64, bk.ElementKind.F32), Count(extent, halves), (Step(step, halves), Step(3)))
    return Call(Body(), 7, arguments, {"BLOCK": 128})


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
    monkeypatch.setattr("baracuda_kernels.gpu.launch.driver", lambda: watched)
    both = [Queued(bk.Device.cuda(), _call(1024, 4096)) for _ in range(2)]
    args, stream = SimpleNamespace(addresses=(0, 4096)), bk.Stream.cuda(0, 7)
    both[0].vectors.function = "first"  # type: ignore[union-attr, assignment]
    with pytest.raises(bk.Unsupported, match="one run with operands of these layouts"):
        InTurn(both)(args, 4096, stream)
    assert watched.launched == []
    both[1].vectors.function = "second"  # type: ignore[union-attr, assignment]
    InTurn(both)(args, 4096, stream)
    assert watched.launched == ["first", "second"]
    with pytest.raises(bk.Unsupported, match="scalar form"):  # an address that is no whole vector
        InTurn(both)(SimpleNamespace(addresses=(0, 4098)), 4096, stream)
    assert watched.launched == ["first", "second"]


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
@pytest.mark.parametrize("kernel", TRITON_KERNELS)
def test_some_configurations_compile_and_fit(kernel: str) -> None:
    _compile(kernel, "sm_90", every=16)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("arch", PROFILES)
@pytest.mark.parametrize("kernel", TRITON_KERNELS)
def test_every_configuration_compiles_and_fits(kernel: str, arch: str) -> None:
    _compile(kernel, arch)


# Bytes per thread. With Triton 3.6, for which these were tuned, nothing is spilled.
TOLERATED = {"gradients_of_chunks": 32, "forward_columns": 16}


def _compile(kernel: str, arch: str, every: int = 1) -> None:
    """Shared memory stays within what the kernel declares and the device has, and on sm_90 no register is spilled."""
    program = [sys.executable, "-m", "baracuda_kernels.check.aot", kernel, "--arch", arch, "--every", str(every)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and done.returncode in (0, DOES_NOT_FIT), done.stderr
    spilled = [line for line in lines if line["spilled"] > TOLERATED.get(line["body"], 0) and arch == "sm_90"]
    greedy = [line for line in lines if line["shared"] > PROFILES[arch].shared_bytes or "declared" in str(line["complaints"])]
    assert not spilled and not greedy
