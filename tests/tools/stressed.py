"""Calls from many threads, under random signals, with forks: `python tests/tools/stressed.py CALLS`.

Every result has the bits of the first one. It prints how many calls were made, how many of them a signal ended, and how many processes
were forked, and exits with an error at the first wrong bit, crash or hang.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

import baracuda_kernels as bk
from baracuda_kernels import torch as bt

THREADS = 8
FORK_EVERY = 0.4  # seconds
HANGS = 120  # seconds without which a child has ended


class Ringing:
    """Signals at random times, each of which ends the call that is under way."""

    def __init__(self, shortest: float = 0.0002, longest: float = 0.01, seed: int = 0) -> None:
        self.rng, self.between, self.may_end = random.Random(seed), (shortest, longest), False
        signal.signal(signal.SIGALRM, self._ring)

    def during(self, call: Callable[[], Any]) -> bool:
        """Whether a signal ended it."""
        try:
            self.may_end = True
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(*self.between))
            call()
            self.may_end = False
        except KeyboardInterrupt:
            return True
        return False

    def _ring(self, *_: Any) -> None:
        if self.may_end:
            self.may_end = False
            raise KeyboardInterrupt


def problems() -> list[Any]:
    """Calls without operands to share: small and large ones, of every kind of kernel, in and out of place."""
    rng = numpy.random.default_rng(0)
    rows, small = rng.standard_normal((48, 5000)).astype("f4"), rng.standard_normal((7, 33))
    halves = torch.from_numpy(rows[:, :3000].copy()).bfloat16()
    heads = rng.standard_normal((1, 2, 64, 32)).astype("f4")
    return [
        lambda: bk.softmax(rows.copy(), 1),
        lambda: bk.exp(rows.copy()),
        lambda: bk.div(small.copy(), -0.0),
        lambda: bk.div(small.copy(), 0.0),
        lambda: bk.sum(rows.copy(), 0),
        lambda: bk.sum(rows.copy(), (0, 1)),
        lambda: bk.median(rows.copy(), 1),
        lambda: bk.cumsum(rows.copy(), 1),
        lambda: bk.cumsum(rows.copy(), 0),
        lambda: bk.var(small.copy(), 0),
        lambda: bk.sdpa(heads.copy(), heads.copy(), heads.copy())[0],
        lambda: bk.add(small.copy(), 1.0, out=numpy.empty((7, 33))),
        lambda: bt.rms_norm(halves.clone(), halves[0].clone()).float(),
        lambda: bt.softmax(halves.clone(), 0).float(),
        gradient,
        new_problem,
    ]


def gradient() -> Any:
    x = torch.linspace(-3, 3, 20_000).requires_grad_()
    bt.gelu(x).sum().backward()
    return x.grad


_extents = itertools.count(1)


def new_problem() -> Any:
    """A plan that is selected now, and maybe in several threads."""
    extent = 100 + next(_extents) % 3000
    return bk.sum(bk.mul(numpy.ones((3, extent), "f4"), 2.0), 1) - 2 * extent


def bits(result: Any) -> bytes:
    return numpy.asarray(result).tobytes()


class Stress:
    def __init__(self, calls: int) -> None:
        self.calls, self.made, self.ended, self.forked = calls, itertools.count(1), 0, 0
        self.problems = problems()
        self.expected = [bits(problem()) for problem in self.problems]
        self.wrong: list[str] = []
        self.over = threading.Event()

    def one(self, rng: random.Random) -> None:
        which = rng.randrange(len(self.problems))
        if bits(self.problems[which]()) != self.expected[which]:
            self.wrong.append(f"problem {which} has other bits")
        if next(self.made) >= self.calls or self.wrong:
            self.over.set()

    def thread(self, seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not self.over.is_set():
                self.one(rng)
        except BaseException as error:
            self.wrong.append(repr(error))
            self.over.set()
            raise

    def child(self, seed: int) -> None:
        """Every problem once, from two threads; an alarm ends it if it hangs."""
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(HANGS)
            self.over = threading.Event()
            self.wrong = []
            order = random.Random(seed).sample(range(len(self.problems)), len(self.problems))
            halves = (order[::2], order[1::2])
            threads = [threading.Thread(target=self._each, args=(part,)) for part in halves]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            status = 1 if self.wrong else 0
        finally:
            os._exit(status)

    def _each(self, order: list[int]) -> None:
        for which in order:
            if bits(self.problems[which]()) != self.expected[which]:
                self.wrong.append(f"problem {which} has other bits in a child")

    def fork(self) -> None:
        self.forked += 1
        number = os.fork()
        if not number:
            self.child(self.forked)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        if code:
            self.wrong.append(f"a child ended with {code}")
            self.over.set()

    def run(self) -> None:
        threads = [threading.Thread(target=self.thread, args=(seed,)) for seed in range(1, THREADS)]
        for thread in threads:
            thread.start()
        rng, ringing, last = random.Random(0), Ringing(), time.monotonic()
        while not self.over.is_set():
            if hasattr(os, "fork") and time.monotonic() - last > FORK_EVERY:
                self.fork()
                last = time.monotonic()
            self.ended += ringing.during(lambda: self.one(rng))
        for thread in threads:
            thread.join()


def main(calls: int) -> int:
    faulthandler.enable()
    stress = Stress(calls)
    stress.run()
    print(f"{next(stress.made) - 1} calls, {stress.ended} ended by signals, {stress.forked} forks", *stress.wrong, sep="\n")
    return bool(stress.wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
