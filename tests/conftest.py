"""Shared by all tests: which device, and the list of what the registry declares."""

from __future__ import annotations

import functools
import importlib.util
import os
import random
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core import registry
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.verify.case import Case

from refusals import reasons_against

os.environ.pop("COLUMNS", None)  # parallel test workers set it, and tables would be cut to it

# The same examples every time; `--hypothesis-profile default` tries others.
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")

PLANS = registry.plans()
DEVICE = bk.Device.cpu()  # where the generated tests run: --device
STREAM = bk.Stream.cpu()
KERNELS: list[tuple[str, Kernel]] = []  # every kernel that runs there, with its op's name
KERNEL_IDS: list[str] = []
NATIVE: list[tuple[str, Kernel]] = []  # those of them that are machine code there, and not interpreted
SLOW = False  # whether everything is asked for: --slow
MOST_KEPT = 256 << 20  # bytes of a device's memory that a process may hold between tests
GENERATED = ("test_kernels", "test_guarantees", "test_property", "test_run")


TABLES = (
    "elementwise",
    "fusion",
    "order_statistics",
    "reduction",
    "scan",
)  # families of many functions that are alike, most of them from rows of tables, a few telling ones apart
# Of every plan of theirs that has a gradient, one; but for conversions, complex numbers and quotients, which have tests of their own.
TELLING = (
    "gelu", "mul", "lerp", "swiglu", "modf", "where", "cumsum", "sum", "cosine_similarity", "var_mean", "trace", "median", "quantile",
)  # fmt: skip


def own_functions(also: tuple[str, ...] = ()) -> dict[str, Any]:
    """The functions that are described one by one, and of those from tables the ones named, with their gradients."""
    return {
        name: each
        for name, each in registry.functions().items()
        if registry.family(each.plan) not in TABLES or name.removesuffix("_backward") in also
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help="where the generated tests run")
    parser.addoption("--slow", action="store_true", help="also what takes many minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes many minutes: run with --slow"))


def pytest_configure(config: pytest.Config) -> None:
    global DEVICE, STREAM, SLOW
    SLOW = config.getoption("--slow")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as where a shell runs the suite in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--device") == "cuda":
        DEVICE, STREAM = bk.Device.cuda(), bk.Stream.cuda()
        if absent := DEVICE.reasons_absent():
            pytest.exit(f"--device cuda: {absent[0]}", returncode=2)
        os.environ.setdefault(
            "JAX_PLATFORMS", "cpu"
        )  # where its arrays are served; it would take most of the device's memory for itself
    else:
        os.environ["TRITON_INTERPRET"] = "1"
        if importlib.util.find_spec("triton"):
            importlib.import_module("triton.language")  # before PyTorch or JAX do: how it is first imported decides for good
    for name, plan in PLANS.items():
        KERNELS.extend((name, kernel) for kernel in plan.kernels if not list(kernel.reasons_against_machine(DEVICE)))
    KERNEL_IDS.extend(kernel.name for _, kernel in KERNELS)
    NATIVE.extend(pair for pair in KERNELS if pair[1].device is DEVICE.kind)
    os.environ.pop("TRITON_INTERPRET", None)


def give_memory_back() -> None:
    """What PyTorch and CuPy keep of the device's memory for later would be missing in the processes beside this one."""
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.memory_reserved() > MOST_KEPT:
        torch.cuda.empty_cache()
    cupy = sys.modules.get("cupy")
    if hasattr(cupy, "get_default_memory_pool"):  # a test's stand-in has none
        cupy.get_default_memory_pool().free_all_blocks()


@pytest.fixture(autouse=True)
def little_memory_is_kept() -> Any:
    yield
    if DEVICE.kind is bk.DeviceKind.CUDA:
        give_memory_back()


@pytest.fixture
def most_of_the_device() -> Any:
    """For tests that need much of the device's memory: one at a time, over all processes."""
    import fcntl

    with open(Path(tempfile.gettempdir()) / "baracuda_kernels_huge.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        give_memory_back()


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, the generated tests interpret the bodies that are written for CUDA. All others see the machine as it is."""
    if DEVICE.kind is bk.DeviceKind.CPU and request.module.__name__ in GENERATED:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans that are walks of many tiles, and segments, without long lines."""
    pytest.importorskip("triton")
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    small = {"TILE": 64, "PAIR_TILE": 32, "UNIT": 64, "PROGRAMS": 24, "FEWEST": 2, "TOTALS_AT_ONCE": 8, "STRIP_WORDS": 8}
    small |= {"AHEAD_WORDS": 8, "AHEAD_WARPS": 4}
    for name, value in small.items():
        monkeypatch.setattr(f"baracuda_kernels.ops.scan.tiles.{name}", value)


@functools.cache
def corners(op: str, kernel: Kernel, element: bk.ElementKind) -> list[Case]:
    """The op's corner problems; of a kernel that is only interpreted here, the small ones."""
    problems = enumerate(PLANS[op].cases.corners(element))
    every = (Case(PLANS[op], kernel, problem, DEVICE, number) for number, problem in problems)
    return [case for case in every if case.is_feasible]


@functools.cache
def served_corners(op: str, kernel: Kernel, element: bk.ElementKind) -> list[Case]:
    """Known before Triton is told to interpret, so that tests can be parametrized with them."""
    return [case for case in corners(op, kernel, element) if not reasons_against(kernel, case.descriptor)]


def interprets_products(op: str, kernel: str) -> bool:
    """Whether bodies with matrix products are interpreted here, which takes a second for what others do in a blink."""
    return DEVICE.kind is bk.DeviceKind.CPU and kernel.startswith("triton.") and PLANS[op].cases.on_matrix_units


@pytest.fixture
def rng() -> numpy.random.Generator:
    return numpy.random.default_rng(20240229)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(17)


@pytest.fixture
def threads() -> Any:
    """Sets the number of threads for one test."""
    before = bk.get_num_threads()
    yield bk.set_num_threads
    bk.set_num_threads(before)
