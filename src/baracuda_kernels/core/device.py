"""Where memory lies and kernels run."""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import ArchSku


class DeviceKind(Enum):
    CPU = "cpu"
    CUDA = "cuda"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Device:
    kind: DeviceKind
    index: int = 0

    @staticmethod
    @functools.cache
    def cpu() -> Device:
        return Device(DeviceKind.CPU)

    @staticmethod
    @functools.cache
    def cuda(index: int = 0) -> Device:
        return Device(DeviceKind.CUDA, index)

    def __str__(self) -> str:
        return "cpu" if self.kind is DeviceKind.CPU else f"{self.kind}:{self.index}"

    def reasons_absent(self) -> list[Reason]:
        """Why nothing can run here: empty where the device is there."""
        if self.kind is DeviceKind.CPU:
            return []
        count = cuda_device_count()
        if self.index < count:
            return []
        return [Reason(ReasonCode.DEVICE_ABSENT, str(self), f"{count} CUDA devices", "a CUDA device of that index with its driver")]

    def arch(self) -> ArchSku:
        """The architecture whose kernels run here."""
        if self.kind is DeviceKind.CPU:
            return _CPU_ARCHITECTURES.get(platform.machine().lower(), ArchSku.CPU)
        import torch

        major, minor = torch.cuda.get_device_capability(self.index)
        return ArchSku.cuda(major, minor)


_CPU_ARCHITECTURES = {"x86_64": ArchSku.X86_64, "amd64": ArchSku.X86_64, "aarch64": ArchSku.AARCH64, "arm64": ArchSku.AARCH64}


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
