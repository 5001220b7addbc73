"""NumPy judges functions that have its names, where PyTorch has none of that name."""

from __future__ import annotations

import numpy
import pytest

import conftest
import judging
import numpy_cases


@pytest.mark.parametrize("name", numpy_cases.NAMES)
def test_calls(name: str) -> None:
    found = {element: list(numpy_cases.judged(name, element)) for element in numpy_cases.ELEMENTS}
    judging.assert_no_worse("NumPy", numpy.__version__, name, found, exact=conftest.SLOW)
