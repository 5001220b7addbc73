"""JAX's own cases of lax judge functions that have its names, and PyTorch has not or means alike."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import conftest
import deviations
import judging
from judging import Outcome

jax = pytest.importorskip("jax")

lax_cases: Any = importlib.import_module("lax_cases")
pytestmark = pytest.mark.filterwarnings("ignore")  # JAX's, about its own cases


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def judge(name: str, kind: str, verdicts: Iterator[judging.Verdict]) -> None:
    judging.assert_no_worse("JAX", jax.__version__, name, {kind: list(verdicts)})


@pytest.mark.parametrize("name", lax_cases.RECORDS)
def test_records(name: str) -> None:
    judge(name, "records", lax_cases.recorded(name, few=not conftest.SLOW))


@pytest.mark.parametrize("name", lax_cases.HARNESSES)
def test_harnesses(name: str) -> None:
    judge(name, "harnesses", lax_cases.harnessed(name, few=not conftest.SLOW))


@pytest.mark.parametrize("line", [line for line in deviations.DEVIATIONS if line.judge == "JAX"], ids=lambda line: line.when)
def test_each_line_of_the_table_of_deviations_is_needed(line: deviations.Deviation) -> None:
    records = (each for name in line.of if name in lax_cases.RECORDS for each in lax_cases.recorded(name))
    harnesses = (each for name in line.of if name in lax_cases.HARNESSES for each in lax_cases.harnessed(name))
    assert any(each.outcome is Outcome.DIFFERS and each.line is line for each in itertools.chain(records, harnesses))
