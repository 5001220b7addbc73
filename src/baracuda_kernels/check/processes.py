"""Many questions, answered by several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


def answers(answer: Callable[[Q], A], questions: list[Q], jobs: int) -> Iterator[A]:
    """To one after the other; `jobs` of them at a time, in processes of their own."""
    if jobs == 1:
        yield from map(answer, questions)
        return
    with ProcessPoolExecutor(min(jobs, len(questions)), mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(answer, questions)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
