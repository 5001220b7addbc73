"""Work shared among threads, without affecting the result.

A native kernel draws its tasks from a counter until none is left, so any number of threads may call it at once: which
thread does which task changes nothing that is computed. Helpers are ordinary Python threads that sit in the native
call with the GIL released. A helper that comes too late finds the gate closed (see `entries`), so nobody waits for it.
"""

import os
import threading
import time
from collections.abc import Callable
from ctypes import addressof, c_int64
from queue import SimpleQueue
from typing import Any

from baracuda_kernels.core.threads import get_num_threads
from baracuda_kernels.core.turns import Turn
from baracuda_kernels.targets.cpu.runtime.entries import gate
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction
from baracuda_kernels.targets.cpu.runtime.placement import Placement

__all__ = ["idle", "launch", "launcher", "per_task"]

Launch = Callable[[tuple[int, ...], Any, Any], None]  # (addresses, workspace, stream)
Share = tuple[Callable[..., None], tuple[Any, ...], Any, Any]  # a helper's entry, its arguments, and what these point at
SERIAL_BYTES = 256 * 1024  # below this, waking another thread costs more than it brings
TASK_BYTES = 256 * 1024
PAUSE = 1.0  # seconds until threads are asked for again where the system had none


class _Crew:
    """The helper threads of this process."""

    def __init__(self) -> None:
        self.shares: SimpleQueue[Share] = SimpleQueue()
        self.placement = Placement()
        self.count = 0
        self._hiring = Turn()
        self._refused = -PAUSE

    def at_most(self, wanted: int) -> int:
        """How many helper threads there are, at most as many as wanted: fewer if the system cannot start more."""
        if self.count < wanted and time.monotonic() > self._refused + PAUSE:
            with self._hiring:
                self._hire(wanted)
        return min(self.count, wanted)

    def _hire(self, wanted: int) -> None:
        while self.count < wanted:
            helper = threading.Thread(target=self._serve, name=f"baracuda-{self.count}", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # a limit of the system, or the interpreter is about to end
                self._refused = time.monotonic()
                return
            self.placement.add(helper.native_id)
            self.count += 1

    def _serve(self) -> None:
        while True:
            _help(*self.shares.get())


def _help(enter: Callable[..., None], arguments: tuple[Any, ...], *alive: Any) -> None:
    enter(*arguments)


_crew = _Crew()


def _forget_helpers() -> None:
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def launch(function: NativeFunction, words: int, tasks: int, pointers: tuple[int, ...], counter: Any = None) -> None:
    """Runs all tasks of a native kernel on up to `get_num_threads()` threads and returns when they are done.

    `counter` may be a zeroed ctypes array of int64 that a kernel uses for more than counting; its first word counts.
    """
    helpers = min(get_num_threads(), tasks) - 1
    if helpers > 0:
        helpers = _crew.at_most(helpers)
    if helpers < 1:
        function(words, None if counter is None else addressof(counter), *pointers)
        return
    if counter is None:
        counter = c_int64(0)
    own = gate()
    arguments = (addressof(own), words, addressof(counter), *pointers)
    crew = _crew
    crew.placement.avoid_caller()
    share = (function.help, arguments, own, counter)
    for _ in range(helpers):
        crew.shares.put(share)
    function.lead(*arguments)


def launcher(function: NativeFunction, words: Any, tasks: int, work_bytes: int) -> Launch:
    """What a kernel's `bind` returns: launches `function` with these words, on one thread if there is little to do."""
    address = addressof(words)

    def serial(addresses: tuple[int, ...], workspace: Any, stream: Any, alive: Any = words) -> None:
        function(address, None, *addresses)

    def shared(addresses: tuple[int, ...], workspace: Any, stream: Any, alive: Any = words) -> None:
        launch(function, address, tasks, addresses)

    return shared if tasks > 1 and work_bytes > SERIAL_BYTES else serial


def idle(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
    """The launch of a problem with nothing to do."""


def per_task(items: int, item_bytes: int) -> int:
    """How many of `items` equal pieces of work make a task: enough to pay for claiming it, few enough to share out."""
    return max(1, min(items, TASK_BYTES // max(1, item_bytes)))
