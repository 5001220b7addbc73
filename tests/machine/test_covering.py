"""What the suite's choice among combinations leaves out: no value, no pair, and nothing else from one run to the next."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

import conftest
from conftest import DEVICE, KERNELS
from covering import by_pairs, in_turn, one_of_each, values_of
from test_kernels import WAYS, _admits, _tried

SIZES = [(1,), (7,), (2, 3), (4, 4, 4), (2, 23, 3, 4), (46, 10)]


def _problems(sizes: tuple[int, ...], share: float = 1.0) -> list[Any]:
    chance = random.Random(sum(sizes))
    every = [set(enumerate(values)) for values in product(*map(range, sizes))]
    return [problem for problem in every if chance.random() < share] or every[:1]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_every_value_occurs_and_every_pair_with_a_way(sizes: tuple[int, ...], share: float) -> None:
    problems = _problems(sizes, share)
    for turn in range(5):
        chosen = one_of_each(problems, turn)
        assert set().union(*(problems[place] for place in chosen)) == set().union(*problems)
        assert len(chosen) <= sum(sizes) and chosen == one_of_each(problems, turn)

    def admits(place: int, way: int) -> bool:
        return way != 3 or place % 2 == 0

    tried = by_pairs(problems, range(6), admits)
    possible = {(value, way) for way in range(6) for place, each in enumerate(problems) if admits(place, way) for value in each}
    assert {(value, way) for place, ways in enumerate(tried) for way in ways for value in problems[place]} == possible
    assert all(admits(place, way) for place, ways in enumerate(tried) for way in ways)
    assert sum(map(len, tried)) <= 6 * sum(sizes) and tried == by_pairs(problems, range(6), admits)
    turns = in_turn(problems, range(6), admits)
    assert sorted(way for ways in turns for way in ways) == sorted({way for _, way in possible})


def test_few_are_enough_where_values_are_free() -> None:
    """No more than the longest field has values, and a few that its neighbours in order leave out."""
    assert len(one_of_each(_problems((4, 46)))) <= 46 + 4


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=[kernel.name for _, kernel in KERNELS])
def test_no_pair_of_a_kernel_is_left_out(op: str, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --slow of every kernel, and otherwise of those at home here: each value of each field in each way, all corners contiguous."""
    monkeypatch.setattr(conftest, "SLOW", True)
    tried = _tried(op, kernel)
    pairs = {(value, way) for case, ways in tried for value in values_of(case.descriptor) for way in ways}
    assert pairs == {
        (value, way)
        for case, _ in tried
        for value in values_of(case.descriptor)
        for way in (("contiguous", False), *WAYS)
        if way == ("contiguous", False) or _admits(case, way)
    }
    monkeypatch.setattr(conftest, "SLOW", False)
    everyday = _tried(op, kernel)
    assert kernel.device is not DEVICE.kind or everyday == tried
    assert {value for case, _ in everyday for value in values_of(case.descriptor)} == {value for value, _ in pairs}
    assert {way for _, ways in everyday for way in ways} == {way for _, way in pairs}
