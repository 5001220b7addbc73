"""PyTorch's own database of samples judges every function that PyTorch has and we have: a function comes under it by its name."""

from __future__ import annotations

import itertools

import pytest
import torch

import conftest
import deviations
import judging
import opinfo
from judging import Outcome
from opinfo import ENTRIES, EXACT

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, about its own samples
FEW = 2  # samples of each function whose gradients are tried every day
DIFFERENTIABLE = [name for name, entry in ENTRIES.items() if entry.supports_autograd and set(EXACT) & set(entry.dtypes)]


def judge(name: str, found: dict[str, list[judging.Verdict]]) -> None:
    judging.assert_no_worse("PyTorch", torch.__version__.partition("+")[0], name, found)


@pytest.mark.parametrize("name", ENTRIES)
def test_samples(name: str) -> None:
    """In one telling dtype; with --slow in all that it is for."""
    entry = ENTRIES[name]
    dtypes = opinfo.dtypes_of(entry)
    judge(name, {str(dtype): list(opinfo.forward(entry, dtype)) for dtype in (dtypes if conftest.SLOW else dtypes[:1])})


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.error_inputs_func])
def test_what_is_an_error(name: str) -> None:
    judge(name, {"errors": list(opinfo.errors(ENTRIES[name]))})


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    """By differences, where the forward is there; with --slow of all samples, and second derivatives."""
    entry = ENTRIES[name]
    dtypes = [dtype for dtype in EXACT if dtype in entry.dtypes]
    some = None if conftest.SLOW else FEW
    found = {f"gradients of {dtype}": opinfo.gradients(entry, dtype) for dtype in dtypes}
    if entry.supports_gradgrad:
        found |= {f"second derivatives of {dtype}": opinfo.gradients(entry, dtype, second=True) for dtype in dtypes}
    judge(name, {kind: list(itertools.islice(each, some)) for kind, each in found.items()})


@pytest.mark.parametrize("line", [line for line in deviations.DEVIATIONS if line.judge == "PyTorch"], ids=lambda line: line.when)
def test_each_line_of_the_table_of_deviations_is_needed(line: deviations.Deviation) -> None:
    """Some sample differs as it says, and would be wrong without it."""
    entries = [entry for entry in ENTRIES.values() if not line.of or opinfo.last(entry.name) in line.of]

    wrong = (verdict for entry in entries for verdict in opinfo.errors(entry))
    samples = (verdict for entry in entries for dtype in opinfo.dtypes_of(entry) for verdict in opinfo.forward(entry, dtype))
    assert any(each.outcome is Outcome.DIFFERS and each.line is line for each in itertools.chain(wrong, samples))
    unknown = set(line.of) - {opinfo.last(entry.name) for entry in entries}
    assert not unknown
