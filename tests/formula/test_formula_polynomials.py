"""Orthogonal polynomials: SciPy's own tables, every order, near their ends, and what is no order."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import mpmath
import numpy
import pytest
from scipy_tables import EPS, errors, table

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import constant, in_order, input_of
from baracuda_kernels.formula.functions import polynomials

special = pytest.importorskip("scipy.special")


def run(name: str, x: Any, n: Any, element: E = E.F64) -> Any:
    dtype = numpy.float32 if element is E.F32 else numpy.float64
    given = numpy.broadcast_arrays(numpy.asarray(x, dtype), numpy.asarray(n, dtype))
    return evaluate(expanded((getattr(polynomials, name)(*(input_of(place, element) for place in range(2))),)), given)[0]


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("hermite_ipp-hermite", "hermite_polynomial_h", special.eval_hermite),
        ("laguerre2_ipp-laguerre2", "laguerre_polynomial_l", special.eval_laguerre),
        ("legendre_p_ipp-legendre_p", "legendre_polynomial_p", special.eval_legendre),
        ("legendre_p_large_ipp-legendre_p_large", "legendre_polynomial_p", special.eval_legendre),
    ],
)
def test_tables_of_scipy(name: str, ours: str, theirs: Callable[..., Any]) -> None:
    n, x, wanted, *_ = table(name).T
    errors(run(ours, x, n), theirs(n.astype(numpy.int64), x), wanted)


def chebyshev(kind: str, n: int, x: Any) -> Any:
    """By the definition, in as many digits as mpmath is set to."""
    angle = mpmath.acos(x)
    if abs(x) == 1:
        left = (-1) ** n if x < 0 else 1
        ends = {"t": 1, "u": n + 1, "v": 1 if x > 0 else 2 * n + 1, "w": 2 * n + 1 if x > 0 else 1}
        return left * ends[kind]
    half = mpmath.mpf(1) / 2
    above = {
        "t": mpmath.cos(n * angle),
        "u": mpmath.sin((n + 1) * angle),
        "v": mpmath.cos((n + half) * angle),
        "w": mpmath.sin((n + half) * angle),
    }
    below = {"t": 1, "u": mpmath.sin(angle), "v": mpmath.cos(angle / 2), "w": mpmath.sin(angle / 2)}
    return mpmath.re(above[kind] / below[kind])


@pytest.mark.parametrize("shifted", [False, True], ids=["plain", "shifted"])
@pytest.mark.parametrize("kind", "tuvw")
def test_chebyshev_of_every_order(kind: str, shifted: bool) -> None:
    """Within -1 .. 1 by the size of its largest value nearby, n units in the last place; outside so many of itself."""
    points = [
        -7.5,
        -1.5,
        -1.2,
        -1 - 1e-9,
        -1.0,
        -1 + 1e-12,
        -0.9999,
        -0.83,
        -0.1,
        0.0,
        1e-9,
        0.4,
        0.77,
        1 - 1e-9,
        1.0,
        1 + 1e-12,
        1.01,
        1.4,
        2.5,
    ]
    if shifted:
        points = [*((1 + each) / 2 for each in points), 1e-12, 1e-30, -1e-20]
    for n in (0, 1, 2, 3, 8, 32, 33, 100, 1001, 65536, 10**6 + 1):
        found = run(f"{'shifted_' if shifted else ''}chebyshev_polynomial_{kind}", points, n)
        with mpmath.workdps(80):
            for x, got in zip(points, found.tolist(), strict=True):
                at = 2 * mpmath.mpf(x) - 1 if shifted else mpmath.mpf(x)
                wanted = chebyshev(kind, n, at)
                if abs(wanted) > 1.7e308:
                    assert got == mpmath.sign(wanted) * inf
                    continue
                size = max(abs(wanted), abs(chebyshev(kind, n + 1, at)) if abs(at) < 1 else 0, 1)
                assert abs(got - wanted) <= 4 * (n + 4) * EPS * size, (n, x, got, wanted)


LEGENDRE = [(n, x) for n in (2, 5, 33, 200, 4097) for x in (-1.1, -1.0, -1 + 1e-9, -0.7, 0.0, 0.3, 0.501, 0.999999, 1.001)]
LAGUERRE = [(n, x) for n in (2, 5, 33, 200, 4097) for x in (-3.0, 0.0, 1e-9, 0.5, 20.0)]


@pytest.mark.parametrize(
    ("name", "exact", "points"),
    [
        ("legendre_polynomial_p", mpmath.legendre, LEGENDRE),
        ("laguerre_polynomial_l", lambda n, x: mpmath.laguerre(n, 0, x), LAGUERRE),
    ],
)
def test_recurrences_of_many_steps(name: str, exact: Callable[..., Any], points: list[tuple[int, float]]) -> None:
    """By the size of its largest value nearby."""
    found = run(name, [x for _, x in points], [n for n, _ in points])
    with mpmath.workdps(60):
        for (n, x), got in zip(points, found.tolist(), strict=True):
            wanted, beside = (mpmath.re(exact(order, mpmath.mpf(x))) for order in (n, n + 1))
            if abs(wanted) > 1.7e308:
                assert got == mpmath.sign(wanted) * inf
                continue
            assert abs(got - wanted) <= 4 * (n + 4) * EPS * max(abs(wanted), abs(beside)), (n, x, got, wanted)


@pytest.mark.parametrize("name", polynomials.__all__)
def test_what_is_no_order(name: str) -> None:
    """Truncated, and 0 where that is negative, or no 64-bit integer."""
    assert run(name, 0.3, [-1.0, -7.5, nan, inf, -inf, 1e19]).tolist() == [0.0] * 6
    assert run(name, [0.3, nan, inf, -inf], [-0.9, 0.5, 0.0, 0.0]).tolist() == [1.0] * 4
    assert numpy.isnan(run(name, nan, [1.0, 2.0, 40.0])).all()
    assert run(name, 0.3, 3.99) == run(name, 0.3, 3.0)


@pytest.mark.parametrize("name", polynomials.__all__)
def test_infinities_have_the_sign_of_the_leading_term(name: str) -> None:
    falls = name == "laguerre_polynomial_l"
    for n in (1.0, 2.0, 5.0, 100.0):
        for x in (inf, -inf, 1e300, -1e300):
            sign = (-1.0) ** n if (x < 0) is not falls else 1.0
            assert run(name, x, n) in (
                [sign * abs(x), 2 * sign * abs(x)] if n == 1 and "shifted" not in name else [run(name, x, n)]
            )
            assert numpy.sign(run(name, x, n)) == sign
            assert n == 1 or numpy.isinf(run(name, x, n))


def test_orders_of_hermite_that_pytorch_refuses() -> None:
    for name in ("hermite_polynomial_h", "hermite_polynomial_he"):
        assert numpy.isnan(run(name, 1.0, [513.0, 1e6])).all() and numpy.isfinite(run(name, 1e-3, 200.0))
        assert numpy.isnan(run(name, 1.0, [129.0, 1e6], E.F32)).all() and numpy.isfinite(run(name, 1e-3, 40.0, E.F32))
        assert numpy.isnan(run(name, 0.5, 500.0)) and run(name, 50.0, 500.0) == inf  # among its zeros, and beyond


@pytest.mark.parametrize("name", polynomials.__all__)
def test_there_is_no_derivative(name: str) -> None:
    x, n = (input_of(place, E.F64) for place in range(2))
    with pytest.raises(TypeError, match=f"{name}: has no derivative"):
        gradients(getattr(polynomials, name)(x, n), [x, n], constant(1.0, E.F64))


@pytest.mark.parametrize("name", polynomials.__all__)
def test_sizes(name: str) -> None:
    places = [input_of(place, E.F64) for place in range(2)]
    assert len([each for each in in_order(expanded((getattr(polynomials, name)(*places),))) if each.args]) <= 540
