"""Locks that survive a fork, and signal handlers that call what they interrupted."""

from __future__ import annotations

import importlib
import logging  # noqa: F401 # registers what it does about forks: not while another thread waits for one
import os
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import ClassVar

__all__ = ["LOADING", "Turn", "imported"]


class Turn:
    """A re-entrant lock for `with`. In a forked child it is free, unless the thread that forked holds it.

    Where `patient` seconds are given, a fork waits as long for another thread's turn to end, so that the child does not inherit
    a library in the middle of its work.
    """

    _all: ClassVar[weakref.WeakSet[Turn]] = weakref.WeakSet()

    def __init__(self, patient: float = 0.0) -> None:
        self.patient = patient
        self._lock = threading.RLock()
        self._held_by_fork = False
        Turn._all.add(self)

    # The lock's own methods: were they Python, an exception of a signal handler could come between taking the lock and the block.
    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302 # what it returns takes them
        return self._lock.__exit__

    def _before_fork(self) -> None:
        self._held_by_fork = bool(self.patient) and self._lock.acquire(timeout=self.patient)

    def _after_fork(self) -> None:
        if self._held_by_fork:
            self._held_by_fork = False
            self._lock.release()

    def _in_child(self) -> None:
        if self._held_by_fork:
            self._after_fork()
        elif self._lock.acquire(blocking=False):  # nobody's, or this thread's
            self._lock.release()
        else:
            self._lock = threading.RLock()


# Whoever selects, imports or compiles for a kernel: Numba, LLVM and Python's imports have locks of their own, which the child of a fork would
# find taken for good. One for all, as a fork that waits for several in turn could wait for itself.
LOADING = Turn(patient=60.0)


def imported(name: str) -> ModuleType:
    """A module of ours that is imported when it is first needed, in whatever thread that is."""
    with LOADING:
        return importlib.import_module(name)


def _each(act: str) -> None:
    for turn in list(Turn._all):
        getattr(turn, act)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _each("_before_fork"),
        after_in_parent=lambda: _each("_after_fork"),
        after_in_child=lambda: _each("_in_child"),
    )
