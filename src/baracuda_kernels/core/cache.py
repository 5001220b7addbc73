"""Machine code on disk, where later processes find it.

Who can write there decides what those processes run. So, as ssh does with its keys, a folder or a file that is somebody else's or that
others may write is refused: that is said once, and what is compiled is not kept. The same goes for whatever else stands in the way. No kernel
fails for it.

The least recently used files are removed if there is too much, and files that have not been used for long.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from baracuda_kernels.core import files, notice

__all__ = ["Kept", "clear", "contents", "directory", "in_words", "kept", "most_bytes"]

PLACE, ROOM = "BARACUDA_CACHE_DIR", "BARACUDA_CACHE_BYTES"
MOST_BYTES = 256_000_000
DAY = 24 * 60 * 60.0  # seconds
UNUSED = 90 * DAY  # after which code goes
BETWEEN_LOOKS = 60.0  # seconds after which a process looks again whether there is too much
_MAGIC = b"baracuda-object-2\n"
_OWN = re.compile(r"\.?bk_.*\.(o|lock|part)")
_MODE = 0o600

_log = logging.getLogger(__name__)
_said: set[str] = set()
_next_look = 0.0


class Kept(NamedTuple):
    """A file of the cache."""

    name: str
    size: int
    used: float  # when, within a day

    @property
    def is_code(self) -> bool:
        """Whether it is a file of code, not a lock or an unfinished file of a process that was killed."""
        return self.name.endswith(".o")


def kept(name: str, compile_: Callable[[], bytes]) -> bytes:
    """The code of that name from disk, or compiled and stored. Of several processes that need it at once, one compiles."""
    room = most_bytes()
    if not room:
        with notice.compiling():
            return compile_()
    code = None
    try:
        with _opened(directory(), made=True) as folder:
            code = folder.code(name)
            if code is None:
                with notice.compiling(), folder.turn(name):
                    code = folder.code(name) or compile_()
                    folder.keep(name, code)
                _prune_at_times(folder, room)
    except OSError as problem:
        _say_once(problem.strerror, f"compiled kernels are not kept for the next process: {in_words(problem)}")
    if code is None:
        with notice.compiling():
            code = compile_()
    return code


def directory() -> Path:
    """`BARACUDA_CACHE_DIR`, or `baracuda-kernels` below the user's cache directory."""
    chosen, base = os.environ.get(PLACE), Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen:
        return Path(chosen)
    if base.is_absolute():  # another one is to be ignored
        return base / "baracuda-kernels"
    try:
        return Path.home() / ".cache" / "baracuda-kernels"
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, f"this user has no home directory, and {PLACE} names no other place") from None


def most_bytes() -> int:
    """How many bytes the cache may hold: `BARACUDA_CACHE_BYTES`, or the default."""
    wish = os.environ.get(ROOM, "").strip()
    if re.fullmatch("[0-9]{1,18}", wish):
        return int(wish)
    if wish:
        _say_once(ROOM, f"{ROOM}: got {wish[:40]!r}, wanted a number of bytes; {MOST_BYTES} are taken")
    return MOST_BYTES


def contents() -> list[Kept]:
    """Every file of the cache. Raises an `OSError` where the folder is refused."""
    try:
        with _opened(directory()) as folder:
            return folder.files()
    except FileNotFoundError:
        return []


def clear() -> list[Kept]:
    """Removes every file of the cache, and nothing else that is in its folder."""
    removed = []
    with contextlib.suppress(FileNotFoundError), _opened(directory()) as folder:
        for file in folder.files():
            folder.remove(file.name)
            removed.append(file)
    return removed


# --- the folder ------------------------------------------------------------------------------------------------------------------


class _Folder:
    """A folder of the user's own. By its descriptor, where the system has such: then everything is in the folder that was looked at,
    whatever the path leads to by now."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path, self.handle = path, handle

    def _at(self, name: str) -> str:
        return name if self.handle is not None else str(self.path / name)

    def _open(self, name: str, flags: int) -> int:
        handle = files.open_plain(self._at(name), flags, _MODE, self.handle)
        try:
            _demand_own(os.fstat(handle), self.path / name)
        except OSError:
            os.close(handle)
            raise
        return handle

    def code(self, name: str) -> bytes | None:
        """The code of that name; None if there is none, or if it does not match its checksum and might crash the loader."""
        name = f"{name}.o"
        try:
            handle = self._open(name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with open(handle, "rb") as file:
            content, used = file.read(), os.fstat(handle).st_mtime
        if time.time() - used > DAY:
            with contextlib.suppress(OSError):  # on a disk that is read only, say
                os.utime(self._at(name), dir_fd=self.handle)
        start = content[: len(_header(name, b""))]
        code = content[len(start) :]
        return code if code and start == _header(name, code) else None

    def keep(self, name: str, code: bytes) -> None:
        name = f"{name}.o"
        with files.replacing(self._at(name), _MODE, self.handle) as file:
            file.write(_header(name, code) + code)

    @contextlib.contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Holds the lock of that name, so that one process compiles and the others wait."""
        name = f"{name}.lock"
        with files.turn(name, self._open(name, os.O_RDWR | os.O_CREAT)):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # a system may not let it go while it is open
                    self.remove(name)

    def files(self) -> list[Kept]:
        found = []
        with os.scandir(self.path if self.handle is None else self.handle) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    status = entry.stat(follow_symlinks=False)
                    if _OWN.fullmatch(entry.name) and stat.S_ISREG(status.st_mode):
                        found.append(Kept(entry.name, status.st_size, status.st_mtime))
        return found

    def remove(self, name: str) -> None:
        """Removes the file, which another process may have removed already."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self.handle)

    def prune(self, room: int) -> None:
        """Removes the least recently used files until the rest fits. A process that reads such a file has it open, and can finish."""
        now = time.time()
        for file in sorted(self.files(), key=lambda file: file.used, reverse=True):
            if file.is_code:
                room -= file.size
            if now - file.used > (UNUSED if file.is_code else DAY) or (file.is_code and room < 0):
                self.remove(file.name)


@contextlib.contextmanager
def _opened(path: Path, made: bool = False) -> Iterator[_Folder]:
    if made:
        _make(path)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY) if os.open in os.supports_dir_fd else None
    try:
        _demand_own(os.stat(path if handle is None else handle), path)
        yield _Folder(path, handle)
    finally:
        if handle is not None:
            os.close(handle)


def _make(path: Path) -> None:
    """Creates the folder and its missing parents, each for the user alone."""
    with contextlib.suppress(FileExistsError):
        try:
            path.mkdir(0o700)
        except FileNotFoundError:
            if path.parent == path:
                raise
            _make(path.parent)
            path.mkdir(0o700)


def _demand_own(status: os.stat_result, path: Path) -> None:
    """Raises unless the file belongs to the user alone. On systems without owners, any file passes."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"owned by user {status.st_uid}, not by {os.geteuid()}", str(path))
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            errno.EPERM, f"others may write it (chmod go-w), as its mode is {stat.S_IMODE(status.st_mode):o}", str(path)
        )


def _header(name: str, code: bytes) -> bytes:
    """The header of a file: a checksum of its name and its code, so that no file is loaded under another name."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\0" + code).digest()


def _prune_at_times(folder: _Folder, room: int) -> None:
    global _next_look
    if time.monotonic() >= _next_look:
        folder.prune(room)
        _next_look = time.monotonic() + BETWEEN_LOOKS


# --- what is said -----------------------------------------------------------------------------------------------------------------


def in_words(problem: OSError) -> str:
    return str(problem.strerror) if problem.filename is None else f"{directory() / str(problem.filename)}: {problem.strerror}"


def _say_once(subject: str | None, message: str) -> None:
    if subject not in _said:
        _said.add(str(subject))
        _log.warning("%s", message)
