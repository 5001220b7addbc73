"""Shared by all tests: which device, and the list of what the registry declares."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core import registry
from baracuda_kernels.core.kernel import Kernel

os.environ.pop("COLUMNS", None)  # parallel test workers set it, and tables would be cut to it

PLANS = registry.plans()


def kernels_here() -> list[tuple[str, Kernel]]:
    """Every kernel that this machine can run, with its op's name."""
    return [
        (name, kernel)
        for name, plan in PLANS.items()
        for kernel in plan.kernels
        if not list(kernel.reasons_against_machine(bk.Device.cpu()))
    ]


KERNELS = kernels_here()
KERNEL_IDS = [kernel.name for _, kernel in KERNELS]


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
