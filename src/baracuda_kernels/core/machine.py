"""What measured times depend on besides the problem: the device and its driver, the libraries, and this package's kernels."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
from importlib import metadata
from pathlib import Path

from baracuda_kernels.core.device import Device, DeviceKind

__all__ = ["cores", "cpu_name", "digest_of_sources", "machine_of", "versions"]

_KERNEL_FOLDERS = ("formula", "targets", "ops")
_LIBRARIES = {DeviceKind.CPU: ("numba", "llvmlite", "torch"), DeviceKind.CUDA: ("triton", "torch")}


def machine_of(device: Device) -> dict[str, str]:
    """Text by name, the same on machines of the same kind with the same software."""
    if device.kind is DeviceKind.CPU:
        from baracuda_kernels.core.threads import get_num_threads

        where = {"device": cpu_name(), "threads": str(get_num_threads())}
    else:
        where = dict(_accelerator(device.index))
    return {"kind": str(device.kind), **where, **versions(_LIBRARIES[device.kind]), "kernels": _kernels()}


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of the packages that are installed."""
    present = [name for name in packages if importlib.util.find_spec(name.replace("-", "_")) is not None]
    return {name: version for name in present if (version := _version(name)) is not None}


@functools.cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a source tree on the path
        return None


@functools.cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _accelerator(index: int) -> tuple[tuple[str, str], ...]:
    import torch

    from baracuda_kernels.core.cuda_driver import driver

    return ("device", torch.cuda.get_device_name(index)), ("driver", str(driver().version()))


@functools.cache
def _kernels() -> str:
    """A digest of the sources of all kernels: measured times are valid for these alone."""
    package = Path(__file__).parent.parent
    return hashlib.sha256(b"".join(digest_of_sources(package / folder) for folder in _KERNEL_FOLDERS)).hexdigest()[:16]


@functools.cache
def digest_of_sources(place: Path) -> bytes:
    """A digest of a source file, or of all in a folder and its subfolders."""
    digest = hashlib.sha256()
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        digest.update(file.relative_to(place.parent).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()
