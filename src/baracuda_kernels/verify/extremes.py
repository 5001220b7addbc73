"""Inputs with extreme numbers among ordinary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from baracuda_kernels.core.cases import Extreme
from baracuda_kernels.core.element import ElementKind

PLANTED = 3  # elements of an input that are replaced
# the largest finite number, and the smallest above zero
_LIMITS = {
    ElementKind.F64: (1.7976931348623157e308, 5e-324), ElementKind.F32: (3.4028234663852886e38, 1e-45),
    ElementKind.F16: (65504.0, 6e-8), ElementKind.BF16: (3.3895313892515355e38, 1e-40),
}  # fmt: skip


def _planted(values: Any, numbers: list[float], rng: Any) -> Any:
    changed = values.copy()
    at = rng.choice(changed.size, min(PLANTED, changed.size), replace=False)
    changed.reshape(-1)[at] = numpy.resize(numbers, at.size)
    return changed


def _nan(values: Any, element: ElementKind, rng: Any) -> Any:
    return _planted(values, [numpy.nan], rng)


def _infinities(values: Any, element: ElementKind, rng: Any) -> Any:
    return _planted(values, [numpy.inf, -numpy.inf], rng)


def _zeros(values: Any, element: ElementKind, rng: Any) -> Any:
    return numpy.copysign(numpy.zeros_like(values), values)


def _largest(values: Any, element: ElementKind, rng: Any) -> Any:
    largest = _LIMITS[element][0]
    return _planted(values, [largest, -largest], rng)


def _smallest(values: Any, element: ElementKind, rng: Any) -> Any:
    return numpy.copysign(numpy.full_like(values, _LIMITS[element][1]), values)


CHANGES: dict[Extreme, Callable[[Any, ElementKind, Any], Any]] = {
    Extreme.NAN: _nan,
    Extreme.INFINITIES: _infinities,
    Extreme.ZEROS: _zeros,
    Extreme.LARGEST: _largest,
    Extreme.SMALLEST: _smallest,
}


def misplaced(result: Any, expected: Any) -> str:
    """How NaN and infinities differ, in words; empty where they are in the same places."""
    for what, is_it in (("NaN", numpy.isnan), ("+inf", numpy.isposinf), ("-inf", numpy.isneginf)):
        got, wanted = is_it(result), is_it(expected)
        if not numpy.array_equal(got, wanted):
            return f"{int((got & ~wanted).sum())} {what} too many and {int((wanted & ~got).sum())} missing"
    return ""
