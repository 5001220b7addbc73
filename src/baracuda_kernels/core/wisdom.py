"""Measured times, kept: what `effort=MEASURE` found in this process, and what was found before and has been loaded.

A file of wisdom is JSON, made to be read by people and merged between machines: a list of problems, each with the machine it was timed on
and the seconds of each candidate. It is data alone: whatever is in it, the worst it can do is to be refused, or to name a candidate that
is not the fastest. Nothing is read that the caller has not asked for.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from baracuda_kernels.core import files
from baracuda_kernels.core.bounded import forget_choices
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.errors import InvalidWisdom
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.turns import Turn

__all__ = ["Wisdom", "forget_wisdom", "load_wisdom", "loaded", "measured", "save_wisdom"]

SCHEMA = "baracuda-kernels wisdom 1"
LARGEST_FILE = 64 << 20  # bytes
_LONGEST_TEXT = 4096
_MOST_FIELDS = 256

Seconds = dict[str, float]
"""Of each candidate, by its name."""


class Wisdom:
    """Times of candidates by problem and machine. Safe to share between threads."""

    def __init__(self) -> None:
        self._seconds: dict[str, Seconds] = {}
        self._turn = Turn()

    def __len__(self) -> int:
        return len(self._seconds)

    def times(self, op: str, descriptor: Descriptor, machine: Mapping[str, str]) -> Seconds:
        """The candidates that were timed on this problem and machine."""
        with self._turn:
            return dict(self._seconds.get(_key(op, descriptor.plain(), machine), {}))

    def learn(self, op: str, descriptor: Descriptor, machine: Mapping[str, str], seconds: Mapping[str, float]) -> None:
        """Adds times that were measured on that problem and machine."""
        self._add(_key(op, descriptor.plain(), machine), seconds)

    def merge(self, other: Wisdom) -> None:
        """Merges two; of a candidate in both, the shorter time is kept, since the longer one was disturbed."""
        with other._turn:
            entries = {key: dict(seconds) for key, seconds in other._seconds.items()}
        for key, seconds in entries.items():
            self._add(key, seconds)

    def clear(self) -> None:
        """Forgets all of it."""
        with self._turn:
            self._seconds.clear()

    def _add(self, key: str, seconds: Mapping[str, float]) -> None:
        with self._turn:
            known = self._seconds.setdefault(key, {})
            for candidate, time in seconds.items():
                known[candidate] = min(time, known.get(candidate, math.inf))

    # --- as text ---------------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The JSON text, the same for the same times."""
        with self._turn:
            entries = [json.loads(key) | {"seconds": dict(sorted(self._seconds[key].items()))} for key in sorted(self._seconds)]
        return json.dumps({"schema": SCHEMA, "entries": entries}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def of(cls, text: str, subject: str = "wisdom") -> Wisdom:
        """The wisdom in a text. Raises `InvalidWisdom` unless `text` could have written exactly that."""
        wisdom = cls()
        for key, seconds in _entries(_parsed(text, subject), subject):
            wisdom._add(key, seconds)
        return wisdom

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Wisdom:
        """What a file holds. Raises `InvalidWisdom` where it is not one that `write` could have written."""
        try:
            with open(files.open_plain(os.path.realpath(path), os.O_RDONLY), "rb") as file:  # a pipe would be waited for
                content = file.read(LARGEST_FILE + 1)
        except OSError as cause:
            raise _refusal(str(path), f"a file that cannot be read: {cause.strerror}", "a readable file") from cause
        if len(content) > LARGEST_FILE:
            raise _refusal(str(path), "a file that is too large", f"at most {LARGEST_FILE} bytes")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise _refusal(str(path), "bytes that are not text", "JSON in UTF-8") from None
        return cls.of(text, str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Adds this to the file, whole or not at all; what others write to it at the same time is kept. A file that is not wisdom stays,
        and a link still leads where it did."""
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            is_there = os.path.lexists(target)
            if is_there and not target.is_file():
                raise _refusal(str(path), "something that is not a regular file", "a file of wisdom, or a new one")
            everything = Wisdom.read(target) if is_there else Wisdom()
            everything.merge(self)
            with files.replacing(str(target)) as file:
                if is_there and os.chmod in os.supports_fd:
                    os.chmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                file.write(everything.text().encode())
                file.flush()
                os.fsync(file.fileno())


loaded, measured = Wisdom(), Wisdom()  # asked for by the caller; found in this process


def load_wisdom(path: str | os.PathLike[str]) -> int:
    """Makes later selections use the file's times for this machine. Returns the number of problems in it, of all machines."""
    found = Wisdom.read(path)
    loaded.merge(found)
    forget_choices()
    return len(found)


def save_wisdom(path: str | os.PathLike[str]) -> None:
    """Adds everything that this process has measured or loaded to the file."""
    everything = Wisdom()
    everything.merge(loaded)
    everything.merge(measured)
    everything.write(path)


def forget_wisdom() -> None:
    """Forgets all loaded and measured times."""
    loaded.clear()
    measured.clear()
    forget_choices()


def _key(op: str, problem: Mapping[str, Any], machine: Mapping[str, str]) -> str:
    return json.dumps({"op": op, "problem": problem, "machine": machine}, sort_keys=True)


# --- what a file may hold --------------------------------------------------------------------------------------------------------


def _refusal(subject: str, got: str, wanted: str) -> InvalidWisdom:
    return InvalidWisdom(subject, [Reason(ReasonCode.NOT_WISDOM, subject, got, wanted)])


def _parsed(text: str, subject: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(names) != len(set(names)):
            raise ValueError("a name twice in one object")
        return dict(pairs)

    def no_constant(name: str) -> float:
        raise ValueError(f"the number {name}")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except RecursionError:
        raise _refusal(subject, "lists within lists without end", "JSON as save_wisdom writes it") from None
    except ValueError as cause:
        raise _refusal(subject, f"no JSON: {cause}", "JSON as save_wisdom writes it") from None


def _entries(content: Any, subject: str) -> Iterator[tuple[str, Seconds]]:
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        got = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise _refusal(subject, f"schema {str(got)[:80]!r}", f"schema {SCHEMA!r}")
    entries = content.get("entries")
    if set(content) != {"schema", "entries"} or not isinstance(entries, list):
        raise _refusal(subject, f"fields {sorted(content)[:8]}", "a schema and a list of entries")
    for number, entry in enumerate(entries):
        where = f"{subject}, entry {number}"
        if not isinstance(entry, dict) or set(entry) != {"op", "problem", "machine", "seconds"}:
            raise _refusal(where, str(entry)[:80], "op, problem, machine and seconds")
        if not _is_text(entry["op"]):
            raise _refusal(where, f"op {str(entry['op'])[:80]}", "a name")
        if not _is_object(entry["problem"], lambda value: _is_scalar(value) or _is_list_of_scalars(value)):
            raise _refusal(where, f"problem {str(entry['problem'])[:80]}", "fields with numbers, names or lists of them")
        if not _is_object(entry["machine"], _is_text):
            raise _refusal(where, f"machine {str(entry['machine'])[:80]}", "names and texts")
        if not entry["seconds"] or not _is_object(entry["seconds"], _is_time):
            raise _refusal(where, f"seconds {str(entry['seconds'])[:80]}", "a positive number for each candidate")
        seconds = {name: float(value) for name, value in entry["seconds"].items()}
        yield _key(entry["op"], entry["problem"], entry["machine"]), seconds


def _is_object(value: Any, is_right: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_FIELDS
        and all(_is_text(name) and is_right(each) for name, each in value.items())
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int) or _is_text(value) or (isinstance(value, float) and math.isfinite(value))


def _is_list_of_scalars(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_FIELDS and all(map(_is_scalar, value))


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Holds a lock on the file. The lock is a separate file, since the target is replaced."""
    lock = str(target.with_name(f".{target.name}.lock"))
    with files.turn(lock, files.open_plain(lock, os.O_RDWR | os.O_CREAT)):
        yield
