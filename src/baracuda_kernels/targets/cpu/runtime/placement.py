"""Keeps helpers off the CPU of the thread that calls for them.

A guest of a hypervisor takes a sleeping CPU for one that is gone, and wakes a helper where its caller runs, to take turns with it for
milliseconds. So helpers may run anywhere but there. Nothing else is pinned, and where the system has no such calls nothing is done.
"""

import ctypes
import os
import time
from collections.abc import Callable

__all__ = ["Placement"]

SELDOM = 0.01  # seconds between changes: callers on several CPUs would otherwise undo each other's at every launch


def _current_cpu() -> Callable[[], int] | None:
    if not hasattr(os, "sched_setaffinity"):
        return None
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None)


class Placement:
    """Which CPUs the helper threads of a process may run on."""

    def __init__(self) -> None:
        self._cpu = _current_cpu()
        self._threads: list[int] = []  # by the system's numbers
        self._avoided = -1
        self._changed = -SELDOM

    def add(self, thread: int | None) -> None:
        if thread is not None:
            self._threads.append(thread)
            self._avoided = -1

    def avoid_caller(self) -> None:
        """Called when a launch is about to wake helpers."""
        if self._cpu is None:
            return
        cpu = self._cpu()
        if cpu == self._avoided or time.monotonic() < self._changed + SELDOM:
            return
        self._avoided, self._changed = cpu, time.monotonic()
        others = os.sched_getaffinity(0) - {cpu}
        for thread in list(self._threads):
            self._let_run(thread, others)

    def _let_run(self, thread: int, cpus: set[int]) -> None:
        try:
            if cpus:
                os.sched_setaffinity(thread, cpus)
        except OSError:  # a sandbox that forbids it: helpers run wherever they are woken
            self._cpu = None
