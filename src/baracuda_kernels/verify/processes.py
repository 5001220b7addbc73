"""Many questions, answered by several processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import InvalidStateError, ProcessPoolExecutor, as_completed
from typing import TypeVar

from baracuda_kernels.core import notice

Q = TypeVar("Q")
A = TypeVar("A")


def answers(answer: Callable[[Q], A], questions: list[Q], jobs: int) -> Iterator[A]:
    """Answers questions in order, `jobs` at a time, in separate processes. Ctrl-C ends these silently."""
    if jobs == 1:
        yield from map(answer, questions)
        return
    with _pool(min(jobs, len(questions))) as pool:
        with interrupts_wait():  # which the processes inherit: they are not interrupted before they know how to end
            found = pool.map(answer, questions)
        yield from found


def answers_meanwhile(answer: Callable[[Q], A], questions: list[Q], jobs: int) -> Iterator[tuple[int, A]]:
    """Answers as they come, each with the number of its question. Whoever takes them may do other work, which comes first: the processes
    step back for it."""
    with _pool(min(jobs, len(questions)), _STEPS_BACK) as pool:
        with interrupts_wait():
            numbers = {pool.submit(answer, question): number for number, question in enumerate(questions)}
        for done in as_completed(numbers):
            yield numbers[done], done.result()


_STEPS_BACK = 19  # the lowest priority


@contextlib.contextmanager
def _pool(jobs: int, niceness: int = 0) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with _quiet(), ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(niceness,)) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The pool's own thread complains, up to Python 3.12, of questions that were withdrawn while Ctrl-C ended the processes."""
    before = threading.excepthook
    threading.excepthook = lambda raised: None if raised.exc_type is InvalidStateError else before(raised)
    try:
        yield
    finally:
        threading.excepthook = before


def _begin(niceness: int) -> None:
    end_when_interrupted()
    os.environ[notice.QUIET] = "1"  # the terminal is for the process that asks
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Ctrl-C is raised afterwards here, and in processes that are started meanwhile when they have called `end_when_interrupted`."""
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_when_interrupted() -> None:
    """Ends this process on Ctrl-C without a traceback: the parent reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
