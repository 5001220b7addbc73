"""What happens between threads: helpers of a launch, signals that interrupt it, forks, and how many threads there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from ctypes import addressof, c_int64
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import threads as counts
from baracuda_kernels.core.turns import Turn
from baracuda_kernels.targets.cpu.runtime import entries, parallel
from baracuda_kernels.targets.cpu.runtime.native import build


def run(script: str, *arguments: str, **environment: str) -> str:
    """What a script prints in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).parents[2] / "tools"), *filter(None, sys.path[1:])])
    given = {"BARACUDA_NUM_THREADS": "4", "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **environment}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


# --- the gate of a launch -----------------------------------------------------------------------------------------------------------


def waiting_body() -> str:
    """Whoever draws task 0 says that it has come, waits for a word to go on, and says that it is done; all others wait until it has come."""
    return """
define void @body(ptr %words, ptr %counter, ptr %come) {
begin:
  %go = getelementptr i64, ptr %come, i64 1
  %done = getelementptr i64, ptr %come, i64 2
  %task = atomicrmw add ptr %counter, i64 1 monotonic
  %is.first = icmp eq i64 %task, 0
  br i1 %is.first, label %slow, label %fast
slow:
  store atomic i64 1, ptr %come release, align 8
  br label %stay
stay:
  %word = load atomic i64, ptr %go acquire, align 8
  %may.go = icmp ne i64 %word, 0
  br i1 %may.go, label %leave, label %stay
leave:
  store atomic i64 1, ptr %done release, align 8
  ret void
fast:
  %here = load atomic i64, ptr %come acquire, align 8
  %is.here = icmp ne i64 %here, 0
  br i1 %is.here, label %end, label %fast
end:
  ret void
}
"""


def test_a_helper_touches_nothing_before_the_gate_is_open_and_after_it_is_closed() -> None:
    function = build(waiting_body, 1)
    for state in (0, entries.CLOSED, entries.OPEN | entries.CLOSED):
        gate = entries.gate()
        gate[0] = state
        function.help(addressof(gate), 0, 0, 0)  # address 0 is written to inside
        assert gate[0] == state


def test_the_leader_waits_for_those_inside() -> None:
    function = build(waiting_body, 1)
    gate, words = entries.gate(), (c_int64 * 3)()  # the words: come, go, done
    drawn, left = c_int64(1), c_int64(0)  # the leader finds the first task drawn, and the helper does not
    seen = []

    def lead() -> None:
        function.lead(addressof(gate), 0, addressof(drawn), addressof(words))
        seen.append(words[2])

    leader = threading.Thread(target=lead)
    leader.start()
    helper = threading.Thread(target=function.help, args=(addressof(gate), 0, addressof(left), addressof(words)))
    helper.start()
    while not gate[0] & entries.CLOSED:
        time.sleep(0.001)
    time.sleep(0.05)
    assert leader.is_alive()
    assert not seen
    words[1] = 1
    leader.join()
    helper.join()
    assert seen == [1]


@pytest.mark.parametrize("threads", [1, 4])
def test_helpers_compute_in_the_mode_of_their_caller(threads: int) -> None:
    """Tiny numbers are kept or flushed alike in every thread, and the next launch is not affected."""
    script = """
        import hashlib, sys, numpy, torch, baracuda_kernels as bk
        bk.set_num_threads(int(sys.argv[1]))
        x = numpy.full((512, 4096), 3e-39, "f4")
        results = [bk.mul(x, x * 0 + 1)]
        torch.set_flush_denormal(True)
        results += [bk.mul(x, x * 0 + 1) for _ in range(20)]
        torch.set_flush_denormal(False)
        results += [bk.mul(x, x * 0 + 1) for _ in range(20)]
        print(*[f"{(each == 0).sum()} of {each.size}" for each in results], sep="\\n")
    """
    kept, flushed = ["0 of 2097152"], ["2097152 of 2097152"]
    lines = run(script, str(threads)).splitlines()
    assert lines == kept + 20 * flushed + 20 * kept


def test_an_interrupted_launch_has_ended_when_it_raises() -> None:
    """The memory of an interrupted call is given back to the system at once; a helper that still wrote there would crash."""
    script = """
        import time, numpy, baracuda_kernels as bk
        from stressed import Ringing
        rows = numpy.random.default_rng(0).standard_normal((64, 50_000)).astype("f4")
        bk.median(rows, 1)
        ringing, interrupted, end = Ringing(0.0005, 0.01), 0, time.monotonic() + 2
        while time.monotonic() < end:
            interrupted += ringing.during(lambda: bk.median(rows.copy(), 1))
        print(interrupted)
    """
    assert int(run(script)) > 10


def test_without_new_threads_a_call_runs_on_its_own(monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    threads(3)
    x = numpy.random.default_rng(0).standard_normal((256, 4096)).astype("f4")
    expected = bk.exp(x)
    asked = []

    def refuse(self: threading.Thread) -> None:
        asked.append(self)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parallel, "_crew", parallel._Crew())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(10):
        assert numpy.array_equal(bk.exp(x), expected)
    assert len(asked) == 1  # and the system is not asked again at once


# --- forks --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
def test_a_child_selects_and_compiles_while_another_thread_of_its_parent_does(tmp_path: Path) -> None:
    script = """
        import os, signal, threading, time, numpy, baracuda_kernels as bk
        x = numpy.linspace(-1, 1, 500_000, dtype="f4").reshape(5, -1)
        def compile_on():
            bk.exp(x), bk.median(x, 1), bk.cumsum(x, 1)
        def by_llvm():
            return numpy.array_equal(bk.mul(x, x), x * x)
        def by_numba():
            few = x[:, :9].astype("f8")
            return numpy.allclose(bk.softmax(few, 1), numpy.exp(few) / numpy.exp(few).sum(1, keepdims=True))
        thread = threading.Thread(target=compile_on)
        thread.start()
        children = []
        for wait, is_right in ((0.02, by_numba), (0.4, by_llvm)):
            time.sleep(wait)
            child = os.fork()
            if not child:
                signal.alarm(200)  # ends the child if it hangs
                os._exit(0 if is_right() else 3)
            children.append(child)
        print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
        thread.join()
    """
    assert run(script, BARACUDA_CACHE_DIR=str(tmp_path)).strip() == "[0, 0]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
@pytest.mark.parametrize("held_by", ["this thread", "another"])
def test_a_turn_is_free_in_a_child(held_by: str) -> None:
    script = """
        import os, signal, sys, threading, time
        from baracuda_kernels.core.turns import Turn
        turn, over = Turn(), threading.Event()
        def hold():
            with turn:
                over.wait()
        other = threading.Thread(target=hold, daemon=True)
        def child():
            if not (number := os.fork()):
                signal.alarm(20)
                with turn, turn:
                    pass
                return None
            return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        if sys.argv[1] == "another":
            other.start()
            time.sleep(0.1)
            code = child()
        else:
            with turn:
                code = child()
        if code is None:
            got = threading.Thread(target=lambda: turn.__enter__())  # free for other threads as well
            got.start(), got.join(10)
            os._exit(1 if got.is_alive() else 0)
        over.set()
        print(code)
    """
    assert run(script, held_by).strip() == "0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
def test_a_child_looks_problems_up_while_another_thread_of_its_parent_does() -> None:
    script = """
        import os, signal, threading, baracuda_kernels as bk
        from baracuda_kernels.core import descriptor
        begun, over, identity = threading.Event(), threading.Event(), descriptor.identity
        def in_no_hurry(value):
            if threading.current_thread() is not threading.main_thread():
                begun.set(), over.wait()
            return identity(value)
        descriptor.identity = in_no_hurry
        one, other = (bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (extent,), 0, bk.ElementKind.F32) for extent in (1, 2))
        thread = threading.Thread(target=hash, args=(one,))
        thread.start(), begun.wait()
        if not (child := os.fork()):
            signal.alarm(20)
            hash(other)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        over.set(), thread.join()
    """
    assert run(script).strip() == "0"


def test_every_lock_is_a_turn() -> None:
    """Others would stay taken in the child of a fork, and hang a signal handler that calls what it has interrupted."""
    package = Path(bk.__file__).parent
    made = {
        file.name
        for file in package.rglob("*.py")
        if re.search(r"\b(R?Lock|Condition|Semaphore|allocate_lock)\(|@functools.cached_property", file.read_text(encoding="utf-8"))
    }
    assert made == {"turns.py"}


def test_a_signal_never_leaves_a_turn_taken() -> None:
    script = """
        import threading, time
        from baracuda_kernels.core.turns import Turn
        from stressed import Ringing
        turn, ringing, rung, end = Turn(), Ringing(1e-5, 2e-4), 0, time.monotonic() + 1
        def take_turns():
            while time.monotonic() < end:
                with turn:
                    pass
        while time.monotonic() < end:
            rung += ringing.during(take_turns)
        other = threading.Thread(target=lambda: turn.__enter__(), daemon=True)
        other.start(), other.join(5)
        print(rung > 100, other.is_alive())
    """
    assert run(script).split() == ["True", "False"]


def test_a_fork_waits_for_a_patient_turn_and_not_for_others() -> None:
    patient, other = Turn(patient=0.2), Turn()
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with patient, other:
            begun.set()
            over.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    start = time.monotonic()
    for turn in (other, patient):
        turn._before_fork()
        turn._after_fork()
    assert 0.15 < time.monotonic() - start < 5
    over.set()
    thread.join()


def test_threads_that_use_an_operator_of_pytorch_first_find_one() -> None:
    script = """
        import threading, time, torch, baracuda_kernels.torch as bt
        from baracuda_kernels.torch import operators
        schema = operators.Schema
        operators.Schema = lambda function: time.sleep(0.05) or schema(function)
        found, start = [], threading.Barrier(8)
        def ask():
            start.wait()
            found.append(bt.trace)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len(set(found)), found[0](torch.eye(3)).item())
    """
    assert run(script).split() == ["8", "1", "3.0"]


# --- all of it at once --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
@pytest.mark.parametrize("calls", [15_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_calls_from_many_threads_under_signals_with_forks(calls: int) -> None:
    command = [sys.executable, "-W", "error", str(Path(__file__).parents[2] / "tools" / "stressed.py"), str(calls)]
    given = os.environ | {"BARACUDA_NUM_THREADS": "4"}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    made, ended, forked = map(int, re.findall(r"\d+", done.stdout))
    assert made >= calls and ended > calls // 1000 and forked > 2


# --- how many ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "chosen", "most"),
    [
        ({}, None, 8),
        ({"OMP_NUM_THREADS": "3"}, None, 3),
        ({"OMP_NUM_THREADS": "4,2"}, None, 4),
        ({"OMP_NUM_THREADS": "²"}, None, 8),
        ({"OMP_NUM_THREADS": "0", "NUMBA_NUM_THREADS": "-1"}, None, 8),
        ({"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "5"}, None, 2),
        ({"OMP_NUM_THREADS": "64"}, None, 8),
        ({"OMP_NUM_THREADS": "9" * 5000}, None, 8),
        ({"BARACUDA_NUM_THREADS": "12", "OMP_NUM_THREADS": "2"}, 12, 2),
    ],
)
def test_variables_of_the_environment(variables: dict[str, str], chosen: int | None, most: int, monkeypatch: Any) -> None:
    for name in (counts.OURS, *counts.OTHERS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(counts, "_available", lambda: 8)
    for name in ("_chosen", "_most"):
        monkeypatch.setattr(counts, name, None)
    counts._look()
    assert (counts._chosen, counts._most) == (chosen, most)
    assert bk.get_num_threads() == (chosen or min(most, torch.get_num_threads()))


def test_import_with_a_variable_that_is_no_number() -> None:
    script = "import baracuda_kernels as bk; print(bk.get_num_threads())"
    assert int(run(script, BARACUDA_NUM_THREADS="²", OMP_NUM_THREADS="²")) >= 1


def test_as_many_threads_as_pytorch_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_chosen", None)
    monkeypatch.setattr(counts, "_most", 8)
    before = torch.get_num_threads()
    try:
        for count in (1, 5):
            torch.set_num_threads(count)
            assert bk.get_num_threads() == count
        torch.set_num_threads(64)
        assert bk.get_num_threads() == 8
    finally:
        torch.set_num_threads(before)


def test_a_worker_of_a_dataloader_takes_one_thread() -> None:
    script = """
        import torch, baracuda_kernels as bk
        class Counts(torch.utils.data.Dataset):
            def __len__(self): return 2
            def __getitem__(self, index): return bk.get_num_threads()
        print(*torch.utils.data.DataLoader(Counts(), batch_size=None, num_workers=1, multiprocessing_context="fork"))
    """
    assert run(script, BARACUDA_NUM_THREADS="", OMP_NUM_THREADS="4").split() == ["1", "1"]


@pytest.mark.parametrize(
    ("groups", "files", "wanted"),
    [
        ("0::/pod/own\n", {"pod/own/cpu.max": "max 100000\n", "pod/cpu.max": "250000 100000\n"}, 3),
        ("0::/pod/own\n", {"pod/own/cpu.max": "20000 100000\n"}, 1),
        ("0::/host/path\n", {"cpu.max": "200000 100000\n"}, 2),  # in a container
        ("0::/\n", {}, 16),
        ("0::/\n", {"cpu.max": "nonsense\n"}, 16),
        (
            "4:cpu,cpuacct:/own\n3:memory:/own\n",
            {"cpu/own/cpu.cfs_quota_us": "400000\n", "cpu/own/cpu.cfs_period_us": "100000\n"},
            4,
        ),
        ("4:cpu,cpuacct:/own\n", {"cpu/own/cpu.cfs_quota_us": "-1\n", "cpu/own/cpu.cfs_period_us": "100000\n"}, 16),
        ("0::/pod/\udcff\n", {"pod/cpu.max": "300000 100000\n"}, 3),  # a name that is no text
        ("\nnonsense\n0:/\n0::/own\n", {"own/cpu.max": "300000 100000\n"}, 3),
        (None, {}, 16),
    ],
)
def test_quotas_of_control_groups(groups: str | None, files: dict[str, str], wanted: int, tmp_path: Path, monkeypatch: Any) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    if groups is not None:
        (tmp_path / "groups").write_bytes(os.fsencode(groups))
    monkeypatch.setattr(counts, "_CGROUPS", tmp_path)
    monkeypatch.setattr(counts, "_OWN_CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    assert counts._available() == wanted
