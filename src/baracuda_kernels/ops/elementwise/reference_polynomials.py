"""Orthogonal polynomials by SciPy's recurrences, for those in `reference_values`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from scipy import special

__all__ = ["POLYNOMIALS"]


def _of_order(polynomial: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The order is truncated; what is no 64-bit integer is negative, and of a negative one the polynomial is 0."""

    def reference(x: Any, n: Any) -> Any:
        order = numpy.where(abs(numpy.trunc(n)) < 2.0**63, numpy.trunc(n), -1)
        found = polynomial(numpy.maximum(order, 0).astype(numpy.int64), x)
        return numpy.where(order < 0, 0.0, numpy.where(order < 1, 1.0, found))

    return reference


def _beside(sign: int) -> Callable[[Any, Any], Any]:
    """Of the third and fourth kind, as a difference and a sum of neighbours of the second."""
    return lambda n, x: special.eval_chebyu(n, x) + sign * numpy.where(n > 0, special.eval_chebyu(numpy.maximum(n - 1, 0), x), 0)


def _shifted(polynomial: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda n, x: polynomial(n, 2 * x - 1)


_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "t": special.eval_chebyt,
    "u": special.eval_chebyu,
    "v": _beside(-1),
    "w": _beside(1),
}
POLYNOMIALS: dict[str, Callable[..., Any]] = {
    **{f"chebyshev_polynomial_{kind}": _of_order(each) for kind, each in _KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": _of_order(_shifted(each)) for kind, each in _KINDS.items()},
    "hermite_polynomial_h": _of_order(special.eval_hermite), "hermite_polynomial_he": _of_order(special.eval_hermitenorm),
    "laguerre_polynomial_l": _of_order(special.eval_laguerre), "legendre_polynomial_p": _of_order(special.eval_legendre),
}  # fmt: skip
