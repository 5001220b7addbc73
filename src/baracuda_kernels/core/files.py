"""Files that several processes use: plain files alone, taken in turn, replaced whole or not at all.

A name stands in `folder`, an open folder's descriptor, where one is given; else it is a path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["open_plain", "replacing", "turn"]

PATIENCE = 120.0  # seconds: longer than anything takes that is done in a turn, unless its process was stopped
_LOOK_AGAIN = 0.02  # seconds
_SAFELY = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def open_plain(name: str, flags: int, mode: int = 0o666, folder: int | None = None) -> int:
    """`os.open` that follows no link and waits for no pipe. What is no plain file raises an `OSError`; it is looked at once it is open,
    so that nothing can be put in its place after that."""
    handle = os.open(name, flags | _SAFELY, mode, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", name)
    return handle


@contextlib.contextmanager
def turn(name: str, handle: int) -> Iterator[None]:
    """No other process is here with the same file, whose descriptor is closed in the end. Raises `TimeoutError` where the one whose
    turn it is does not go on."""
    try:
        latest = time.monotonic() + PATIENCE
        while not _locked(handle):
            if time.monotonic() > latest:
                raise TimeoutError(errno.ETIMEDOUT, f"another process has held the lock for {PATIENCE:g} s", name)
            time.sleep(_LOOK_AGAIN)
        try:
            yield
        finally:
            _unlock(handle)  # closing does not, while a forked child has the descriptor too
    finally:
        os.close(handle)


if sys.platform == "win32":

    def _locked(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:

    def _locked(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextlib.contextmanager
def replacing(name: str, mode: int = 0o666, folder: int | None = None) -> Iterator[BinaryIO]:
    """A new file, with the mode that `open` would give it, which takes the place of that name when it is written; if that fails it goes."""
    head, tail = os.path.split(name)
    part = os.path.join(head, f".{tail}.{secrets.token_hex(8)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, mode, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise
