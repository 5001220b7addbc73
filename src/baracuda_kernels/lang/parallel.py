"""Work shared among threads, without a say in the result.

A native kernel draws its tasks from a counter until none is left, so any number of threads may call it at once: which
thread does which task changes nothing that is computed. Helpers are ordinary Python threads that sit in the native
call with the GIL released. A helper that comes too late is told to stay away, so nobody waits for it.
"""

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable
from ctypes import addressof, c_int64
from queue import SimpleQueue
from typing import Any

from baracuda_kernels.lang.native import NativeFunction
from baracuda_kernels.lang.placement import Placement

__all__ = ["get_num_threads", "idle", "launch", "launcher", "per_task", "set_num_threads"]

Launch = Callable[[Any, Any, Any], None]  # (args, workspace, stream)
SERIAL_BYTES = 256 * 1024  # below this, waking another thread costs more than it brings
TASK_BYTES = 256 * 1024


def _default_threads() -> int:
    for variable in ("BARACUDA_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = _default_threads()
_queue: SimpleQueue["_Share"] = SimpleQueue()
_helpers = 0
_placement = Placement()
_grow = threading.Lock()


def get_num_threads() -> int:
    """How many threads a CPU kernel may use."""
    return _threads


def set_num_threads(count: int) -> None:
    """Sets how many threads CPU kernels use from now on, in this process. Results do not depend on it."""
    global _threads
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"set_num_threads: got {count!r}, wanted an int of at least 1")
    _threads = count


class _Share:
    """One helper's part in a launch: started at most once, by whoever takes `turn` first."""

    __slots__ = ("arguments", "done", "function", "turn")

    def __init__(self, function: NativeFunction, arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments
        self.turn, self.done = allocate_lock(), allocate_lock()
        self.done.acquire()

    def serve(self) -> None:
        if self.turn.acquire(blocking=False):
            try:
                self.function(*self.arguments)
            finally:
                self.done.release()

    def finish(self) -> None:
        if not self.turn.acquire(blocking=False):
            self.done.acquire()


def _serve_forever() -> None:
    while True:
        _queue.get().serve()


def _hire(count: int) -> None:
    global _helpers
    with _grow:
        while _helpers < count:
            helper = threading.Thread(target=_serve_forever, name=f"baracuda-{_helpers}", daemon=True)
            helper.start()
            _placement.add(helper.native_id)
            _helpers += 1


def _forget_helpers() -> None:
    global _helpers, _queue, _placement, _grow
    _helpers, _queue, _placement, _grow = 0, SimpleQueue(), Placement(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def launch(function: NativeFunction, words: int, tasks: int, pointers: tuple[int, ...], counter: Any = None) -> None:
    """Runs all tasks of a native kernel on up to `get_num_threads()` threads and returns when they are done.

    `counter` may be a zeroed ctypes array of int64 that a kernel uses for more than counting; its first word counts.
    """
    helpers = min(_threads, tasks) - 1
    if helpers < 1 and counter is None:
        function(words, None, *pointers)
        return
    if _helpers < helpers:
        _hire(helpers)
    if counter is None:
        counter = c_int64(0)
    arguments = (words, addressof(counter), *pointers)
    _placement.avoid_caller()
    shares = [_Share(function, arguments) for _ in range(helpers)]
    for share in shares:
        _queue.put(share)
    try:
        function(*arguments)
    finally:
        for share in shares:
            share.finish()


def launcher(function: NativeFunction, words: Any, tasks: int, work_bytes: int) -> Launch:
    """What a kernel's `bind` returns: launches `function` with these words, on one thread if there is little to do."""
    address = addressof(words)

    def serial(args: Any, workspace: Any, stream: Any, alive: Any = words) -> None:
        function(address, None, *args.addresses)

    def shared(args: Any, workspace: Any, stream: Any, alive: Any = words) -> None:
        launch(function, address, tasks, args.addresses)

    return shared if tasks > 1 and work_bytes > SERIAL_BYTES else serial


def idle(args: Any, workspace: Any, stream: Any) -> None:
    """The launch of a problem with nothing to do."""


def per_task(items: int, item_bytes: int) -> int:
    """How many of `items` equal pieces of work make a task: enough to pay for claiming it, few enough to share out."""
    return max(1, min(items, TASK_BYTES // max(1, item_bytes)))
