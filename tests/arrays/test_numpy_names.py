"""NumPy judges functions that have its names, where PyTorch has none of that name."""

from __future__ import annotations

import numpy
import pytest

import deviations
import judging
import numpy_cases


@pytest.mark.parametrize("name", numpy_cases.NAMES)
def test_calls(name: str) -> None:
    found = {element: list(numpy_cases.judged(name, element)) for element in numpy_cases.ELEMENTS}
    judging.assert_no_worse("NumPy", numpy.__version__, name, found)


@pytest.mark.parametrize("line", [line for line in deviations.DEVIATIONS if line.judge == "NumPy"], ids=lambda line: line.when)
def test_each_line_of_the_table_of_deviations_is_needed(line: deviations.Deviation) -> None:
    for name in line.of:
        assert any(each.line is line and each.outcome is judging.Outcome.DIFFERS for each in numpy_cases.judged(name, "float64"))
