"""Another process of the same Python, with another number of threads: are its bits the same?"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import json
import os
import subprocess
import sys
from typing import Any

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error
from baracuda_kernels.core.threads import get_num_threads
from baracuda_kernels.verify.case import Case, Origin, problems
from baracuda_kernels.verify.processes import end_when_interrupted, interrupts_wait
from baracuda_kernels.verify.trial import launched


def digest(case: Case) -> str:
    """A digest of the bits of all outputs."""
    everything = hashlib.sha256()
    for bits in launched(case.plan, case.inputs()).bits.values():
        everything.update(bits)
    return everything.hexdigest()


def digest_elsewhere(case: Case) -> str:
    """The same, computed by the neighbour."""
    return _neighbour(os.environ.get("TRITON_INTERPRET")).ask(case)


class Neighbour:
    """Answers a line with a line for as long as this process lives."""

    def __init__(self) -> None:
        threads = "1" if get_num_threads() > 1 else "2"
        search = os.pathsep.join(sys.path)
        more = {"BARACUDA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONPATH": search}
        program = [sys.executable, "-m", "baracuda_kernels.verify.other_process"]
        with interrupts_wait():
            self.child = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | more, text=True, encoding="utf-8"
            )
        atexit.register(self.close)

    def ask(self, case: Case) -> str:
        assert self.child.stdin is not None and self.child.stdout is not None
        try:
            print(json.dumps(_spelled(case)), file=self.child.stdin, flush=True)
            answer = self.child.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        return answer or f"nothing: it ended with status {self.child.wait()}"

    def close(self) -> None:
        with self.child:  # which closes what goes to it, so that it ends, and waits for that
            pass


@functools.cache
def _neighbour(interpreted: str | None) -> Neighbour:
    return Neighbour()


def _spelled(case: Case) -> dict[str, Any]:
    return {
        "module": case.plan_type.__module__, "plan": case.plan_type.__name__, "kernel": case.kernel.name,
        "element": case.element.value, "device": case.device.kind.value, "number": case.number,
    }  # fmt: skip


def _read(text: str) -> Case:
    told = json.loads(text)
    plan_type = getattr(importlib.import_module(told["module"]), told["plan"])
    (kernel,) = (kernel for kernel in plan_type.kernels if kernel.name == told["kernel"])
    origin, problem = problems(plan_type, ElementKind(told["element"]))[told["number"]]
    return Case(plan_type, kernel, problem, Device(DeviceKind(told["device"])), told["number"], Origin(origin))


def main() -> None:
    end_when_interrupted()
    for line in sys.stdin:
        try:
            answer = digest(_read(line))
        except (Error, LookupError, ImportError, ValueError) as problem:
            answer = f"{type(problem).__name__}: {problem}".replace("\n", " ")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
