"""How much memory an action asks for while it runs."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # what the kernel takes for "the peak is what is resident now"


def python_bytes(action: Callable[[], None]) -> int:
    """The most that Python and NumPy held at once beyond what they held before."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        action()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def resident_bytes(action: Callable[[], None]) -> int | None:
    """How far the process grew at its largest, given back or not; None where the system does not tell."""
    try:
        _give_back_free_memory()
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        before = _status("VmRSS")
        action()
        return _status("VmHWM") - before
    except OSError:
        return None


def _give_back_free_memory() -> None:
    """What the allocator has kept for later would hide that it is asked again."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status(name: str) -> int:
    (line,) = (line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def device_allocations(action: Callable[[], None]) -> int:
    """How often PyTorch's allocator was asked for CUDA memory."""
    import torch

    torch.cuda.synchronize()
    before = torch.cuda.memory_stats().get("allocation.all.allocated", 0)
    action()
    torch.cuda.synchronize()
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0) - before)
