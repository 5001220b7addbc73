"""How long commands are stopped."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["INTERRUPTED", "terminated_is_interrupted"]

INTERRUPTED = 130  # the exit status, as shells say it


@contextlib.contextmanager
def terminated_is_interrupted() -> Iterator[None]:
    """A time limit, or whoever shares out machines, ends a process by SIGTERM: what was found by then is kept, as after Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # which alone may say what a signal does
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
