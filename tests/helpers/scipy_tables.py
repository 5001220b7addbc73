"""The tables that SciPy is tested by, and how far off it is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

EPS = 2.0**-52


def table(name: str) -> Any:
    """A table of Boost."""
    special = pytest.importorskip("scipy.special")
    file = Path(special.__file__).parent / "tests/data/boost.npz"
    if not file.exists():
        pytest.skip("SciPy is installed without its tests")
    return numpy.load(file)[name]


def errors(found: Any, scipy: Any, wanted: Any) -> None:
    """Fails where the largest error or the usual one is more than 8 times SciPy's."""
    with numpy.errstate(all="ignore"):
        ours, theirs = (numpy.where(each == wanted, 0.0, numpy.abs(each - wanted) / numpy.abs(wanted)) for each in (found, scipy))
    assert numpy.isfinite(ours).all()
    assert numpy.median(ours) <= 8 * max(numpy.median(theirs), EPS)
    assert ours.max() <= 8 * max(theirs.max(), EPS)
