"""The devices that memory is on and kernels run on."""

from __future__ import annotations

import functools
import os
import platform
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any

from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import ArchSku


class DeviceKind(Enum):
    """Where memory lies: the host's, or a CUDA device's."""

    CPU = "cpu"
    CUDA = "cuda"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class CudaProfile:
    """The properties of a CUDA device that choices depend on; plain numbers, so choices can be made without the device."""

    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int  # that one block may have
    cache_bytes: int  # of the level-2 cache


@dataclass(frozen=True)
class Device:
    """The CPU, or one CUDA device by its index. It need not be there: `reasons_absent` says whether it is."""

    kind: DeviceKind
    index: int = 0

    @staticmethod
    @functools.cache
    def cpu() -> Device:
        """The host."""
        return Device(DeviceKind.CPU)

    @staticmethod
    @functools.cache
    def cuda(index: int = 0) -> Device:
        """A CUDA device, which need not be there."""
        return Device(DeviceKind.CUDA, index)

    def __str__(self) -> str:
        return "cpu" if self.kind is DeviceKind.CPU else f"{self.kind}:{self.index}"

    def reasons_absent(self) -> list[Reason]:
        """Why nothing can run on it; empty if the device is present."""
        if self.kind is DeviceKind.CPU:
            return []
        if is_forked():
            got, wanted = "a process that was forked after CUDA had begun", "one started by 'spawn' or 'forkserver'"
            return [Reason(ReasonCode.DEVICE_ABSENT, str(self), got, wanted)]
        count = cuda_device_count()
        if self.index < count:
            return []
        return [Reason(ReasonCode.DEVICE_ABSENT, str(self), f"{count} CUDA devices", "a CUDA device of that index with its driver")]

    def arch(self) -> ArchSku:
        """The architecture whose kernels run on it."""
        if self.kind is DeviceKind.CPU:
            return _CPU_ARCHITECTURES.get(platform.machine().lower(), ArchSku.CPU)
        return ArchSku.cuda(*self.profile().capability)

    def profile(self) -> CudaProfile:
        """The profile of a CUDA device, which must be present."""
        return _profile(self.index)


_CPU_ARCHITECTURES = {"x86_64": ArchSku.X86_64, "amd64": ArchSku.X86_64, "aarch64": ArchSku.AARCH64, "arm64": ArchSku.AARCH64}


@functools.cache
def _profile(index: int) -> CudaProfile:
    import torch

    found: Any = torch.cuda.get_device_properties(index)  # PyTorch's stub does not know all of it
    return CudaProfile(
        (found.major, found.minor), found.multi_processor_count, found.shared_memory_per_block_optin, found.L2_cache_size
    )


@functools.cache
def cuda_device_count() -> int:
    """How many CUDA devices PyTorch sees; none where it is not installed or was built without CUDA."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def is_forked() -> bool:
    """Whether this process was forked from one that had initialized CUDA, which is unusable here then."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda._is_in_bad_fork())
