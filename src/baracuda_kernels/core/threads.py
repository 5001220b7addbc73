"""The number of threads that CPU kernels use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["get_num_threads", "set_num_threads"]

OURS = "BARACUDA_NUM_THREADS"
OTHERS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")

_chosen: int | None = None  # by `set_num_threads` or by our variable
_most = 1  # of this machine, as far as this process may use it
_ask_torch: Callable[[], int] | None = None


def get_num_threads() -> int:
    """How many threads a CPU kernel may use.

    What `set_num_threads` or BARACUDA_NUM_THREADS says; else as many as PyTorch uses where it is imported, or as NUMBA_NUM_THREADS
    or OMP_NUM_THREADS says, but no more than there are CPUs for this process, by its affinity and its control group's quota.
    """
    if _chosen is not None:
        return _chosen
    if _ask_torch is None and not _finds_torch():
        return _most
    return min(_most, _ask_torch())  # type: ignore[misc] # found just now


def set_num_threads(count: int) -> None:
    """Sets how many threads CPU kernels use from now on, in this process. Results do not depend on it."""
    global _chosen
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"set_num_threads: got {count!r}, wanted an int of at least 1")
    _chosen = count


def _finds_torch() -> bool:
    global _ask_torch
    _ask_torch = getattr(sys.modules.get("torch"), "get_num_threads", None)  # which it lacks while it is being imported
    return _ask_torch is not None


def _look() -> None:
    """Reads the environment variables again."""
    global _chosen, _most
    _chosen = _number_in(OURS)
    wishes = [wish for name in OTHERS if (wish := _number_in(name)) is not None]
    _most = min([_available(), *wishes[:1]])


def _number_in(variable: str) -> int | None:
    """The number that an environment variable starts with, as OpenMP's may be a list; None if there is none."""
    first = os.environ.get(variable, "").split(",")[0].strip()
    return int(first) or None if re.fullmatch("[0-9]{1,18}", first) else None


def _available() -> int:
    """The number of CPUs that this process may use."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cpus, *map(_rounded, _quotas())]))


def _rounded(cpus: float) -> int:
    return max(1, int(cpus + 0.5))


def _quotas() -> Iterator[float]:
    """The CPU quota of each control group that contains this process, in CPUs."""
    try:
        groups = os.fsdecode(_OWN_CGROUPS.read_bytes())  # whose names may be any bytes
    except OSError:  # a system without control groups
        return
    for _, controllers, path in re.findall(r"^([^:\n]*):([^:\n]*):(.*)$", groups, re.MULTILINE):
        if not controllers:  # the second version
            folders = _upwards(_CGROUPS, path)
            yield from filter(None, (_quota(folder / "cpu.max") for folder in folders))
        elif "cpu" in controllers.split(","):
            folders = _upwards(_CGROUPS / "cpu", path)
            yield from filter(None, (_quota(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us") for folder in folders))


def _upwards(root: Path, path: str) -> list[Path]:
    """The folder of a group and those of all groups around it. In a container the group's own path may not be there; its root is."""
    inner = root / path.strip("/")
    return [folder for folder in (inner, *inner.parents) if folder == root or root in folder.parents]


def _quota(*files: Path) -> float | None:
    """The quota divided by its period; None without a limit."""
    try:
        quota, period = " ".join(file.read_text(encoding="utf-8") for file in files).split()
        return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):  # not there, or "max"
        return None


_look()
