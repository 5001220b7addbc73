"""How long commands are stopped, and what happens when the reader of their output has gone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["INTERRUPTED", "exit_status", "terminated_is_interrupted"]

INTERRUPTED = 130  # the exit status, as shells say it


def exit_status(command: Callable[[], int]) -> int:
    """The command's own, also where its reader has left, as `head` does; INTERRUPTED after Ctrl-C."""
    with contextlib.redirect_stdout(_Output(sys.stdout)) as out, contextlib.redirect_stderr(_Output(sys.stderr)):
        try:
            return command()
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            return INTERRUPTED
        finally:
            out.flush()  # what a reader that has left does not take is not to be complained of when Python exits


class _Output:
    """A stream that goes nowhere once its reader has left."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._reader_may_leave():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._reader_may_leave():
            self._stream.flush()

    @contextlib.contextmanager
    def _reader_may_leave(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


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
