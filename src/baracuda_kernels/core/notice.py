"""One line on the terminal where compiling takes long: a first call that is silent for seconds looks as if it hung.

It is written while the compiler works, by a thread that takes no lock and straight to the terminal, so that neither a fork nor a signal
finds anything half done. Where standard error is no terminal, or somebody else's object stands in its place, nothing is written and no
thread is started.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.registry import op_name

if TYPE_CHECKING:
    from baracuda_kernels.core.plan import Plan

__all__ = ["QUIET", "about", "compiling"]

QUIET = "BARACUDA_QUIET"
PATIENCE = 0.5  # seconds of compiling without a word

_problem: ContextVar[tuple[type[Plan[Any, Any]], Descriptor] | None] = ContextVar("problem", default=None)
_spent: dict[str, float] = {}  # seconds of compiling so far, by what is compiled: a plan may have several kernels
_said: set[str] = set()


@contextlib.contextmanager
def about(plan: type[Plan[Any, Any]], descriptor: Descriptor) -> Iterator[None]:
    """For which problem kernels are compiled in here, if any are."""
    before = _problem.set((plan, descriptor))
    try:
        yield
    finally:
        _problem.reset(before)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Around the compiler, or the wait for another process that compiles the same."""
    terminal, what = _terminal(), _named()
    if terminal is None or what in _said:
        yield
        return
    start = time.monotonic()
    timer = threading.Timer(PATIENCE - _spent.get(what, 0.0), _say, (terminal, what))
    timer.daemon = True
    try:
        with contextlib.suppress(RuntimeError):  # no thread can be started: no kernel fails for it
            timer.start()
        yield
    finally:
        timer.cancel()
        _spent[what] = _spent.get(what, 0.0) + time.monotonic() - start


def _terminal() -> int | None:
    """The descriptor of standard error, if a line may be written there."""
    stream = sys.__stderr__
    if stream is None or stream is not sys.stderr or os.environ.get(QUIET, "0") not in ("", "0"):
        return None
    try:
        return stream.fileno() if stream.isatty() else None
    except (OSError, ValueError):  # it is closed
        return None


def _named() -> str:
    """Such as "softmax_backward for bf16"."""
    problem = _problem.get()
    if problem is None:
        return "a kernel"
    plan, descriptor = problem
    op = getattr(descriptor, plan.op).value if isinstance(plan.op, str) else plan.op.value
    direction = "_backward" if op_name(plan).endswith("_backward") else ""
    return f"{op}{direction} for {element_of(descriptor)}"


def _say(terminal: int, what: str) -> None:
    if what not in _said:
        _said.add(what)
        with contextlib.suppress(OSError):  # the terminal has gone
            os.write(terminal, f"baracuda-kernels: compiling {what}, once for this machine\n".encode())
