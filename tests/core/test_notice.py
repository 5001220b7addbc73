"""A first call that compiles for long says so on the terminal, in one line and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="this system has no terminals of that kind")

REAL = "import numpy, baracuda_kernels as bk; bk.rms_norm(numpy.ones((2, 8), 'f4')); bk.rms_norm(numpy.ones((3, 8), 'f4'))"
PLAYED = """
import contextlib, os, signal, sys, threading, time
import baracuda_kernels as bk
from baracuda_kernels.core import notice
descriptor = bk.SoftmaxBackwardDescriptor(bk.SoftmaxKind.LOG_SOFTMAX, (4, 8), 1, bk.ElementKind.BF16)

def compile_for(*seconds):
    with notice.about(bk.SoftmaxBackwardPlan, descriptor):
        for each in seconds:
            with notice.compiling():
                time.sleep(each)
"""
LINE = "baracuda-kernels: compiling {}, once for this machine"


def on_terminal(program: str, folder: Path, **variables: str) -> list[str]:
    """The lines that the program writes on a terminal that is its standard error, and nothing else."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"BARACUDA_CACHE_DIR": str(folder)} | variables
    process = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 4096):
            written += piece
    except OSError:  # how Linux says that nobody has the terminal open any more
        pass
    os.close(ours)
    assert process.wait() == 0, written.decode()
    return written.decode().splitlines()


def test_a_cold_call_says_what_it_compiles_and_a_warm_one_nothing(tmp_path: Path) -> None:
    assert on_terminal(REAL, tmp_path) == [LINE.format("rms_norm for f32")]
    assert on_terminal(REAL, tmp_path) == []


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("compile_for(0.9)", "log_softmax_backward for bf16"),
        ("compile_for(0.3, 0.3, 0.3)", "log_softmax_backward for bf16"),  # several kernels of one plan
        ("compile_for(0.9, 0.9); compile_for(0.9)", "log_softmax_backward for bf16"),
        ("with notice.compiling(): time.sleep(0.9)", "a kernel"),
    ],
)
def test_one_line_after_half_a_second(tmp_path: Path, does: str, says: str) -> None:
    assert on_terminal(f"{PLAYED}\n{does}", tmp_path) == [LINE.format(says)]


def test_while_compiling(tmp_path: Path) -> None:
    """Before what the compiler itself would say at its end."""
    does = "with notice.compiling(): time.sleep(0.9); print('the end', file=sys.stderr)"
    assert on_terminal(f"{PLAYED}\n{does}", tmp_path) == [LINE.format("a kernel"), "the end"]


@pytest.mark.parametrize(
    "does",
    [
        "compile_for(0.3)",
        "sys.stderr = open(os.devnull, 'w'); compile_for(0.9)",
        "sys.stderr = None; compile_for(0.9)",
        "sys.stderr.close(); compile_for(0.9)",
        "threading.Thread.start = lambda self: 1 / 0; sys.stderr = sys.stdout; compile_for(0.9)",  # not even a thread
    ],
)
def test_not_a_word(tmp_path: Path, does: str) -> None:
    assert on_terminal(f"{PLAYED}\n{does}", tmp_path) == []


def test_a_variable_switches_it_off(tmp_path: Path) -> None:
    does = f"{PLAYED}\ncompile_for(0.9)"
    assert on_terminal(does, tmp_path, BARACUDA_QUIET="1") == []
    assert len(on_terminal(does, tmp_path, BARACUDA_QUIET="0")) == 1


def test_no_terminal_no_word(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", f"{PLAYED}\ncompile_for(0.9)"], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_where_no_thread_can_be_started_nothing_fails(tmp_path: Path) -> None:
    does = """
def refuse(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
compile_for(0.9)
"""
    assert on_terminal(PLAYED + does, tmp_path) == []


def test_what_raises_and_what_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    does = """
with contextlib.suppress(ZeroDivisionError), notice.compiling(): 1 / 0
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
signal.setitimer(signal.ITIMER_REAL, 0.2)
with contextlib.suppress(ZeroDivisionError), notice.compiling(): time.sleep(3)
time.sleep(0.6)
"""
    assert on_terminal(PLAYED + does, tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_who_is_forked_meanwhile_compiles_and_says_so_too(tmp_path: Path) -> None:
    does = """
with notice.compiling():
    child = os.fork()
    time.sleep(0.9)
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if child == 0:
    compile_for(0.9)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    forks = "import warnings; warnings.simplefilter('ignore')\n"  # Python 3.12 warns of the thread
    assert on_terminal(forks + PLAYED + does, tmp_path) == [LINE.format("a kernel"), LINE.format("log_softmax_backward for bf16")]


def test_kernels_of_cuda_are_compiled_so_too(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    does = """
from baracuda_kernels.targets.cuda.runtime import compile
from baracuda_kernels.targets.cuda.runtime.triton_launch import TritonLaunch
compile._compile = lambda *_: time.sleep(0.9)
from baracuda_kernels.targets.cuda.formulas.elementwise import flat
call = TritonLaunch(flat, 1, (), {})
with notice.about(bk.SoftmaxBackwardPlan, descriptor):
    compile.compiled(call, (9, 0), False)
"""
    assert on_terminal(PLAYED + does, tmp_path) == [LINE.format("log_softmax_backward for bf16")]
