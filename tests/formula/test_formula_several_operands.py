"""Special functions of two and three operands: SciPy's own tables, mpmath, poles, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import mpmath
import numpy
import pytest
from scipy_tables import errors, table

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import constant, in_order, input_of
from baracuda_kernels.formula.functions import gamma_ratios, gamma_slopes, hypergeometric, statistics

special = pytest.importorskip("scipy.special")

FUNCTIONS = {
    name: getattr(module, name) for module in (statistics, gamma_ratios, gamma_slopes, hypergeometric) for name in module.__all__
}


def run(name: str, *arrays: Any) -> Any:
    places = [input_of(place, E.F64) for place in range(len(arrays))]
    given = numpy.broadcast_arrays(*(numpy.asarray(array, numpy.float64) for array in arrays))
    return evaluate(expanded((FUNCTIONS[name](*places),)), given)[0]


def inverse(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: 1 / compute(*args)


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("owens_t_ipp-owens_t", lambda *args: run("owens_t", *args), special.owens_t),
        ("owens_t_large_data_ipp-owens_t_large_data", lambda *args: run("owens_t", *args), special.owens_t),
        ("expint_data_ipp-expint_data", lambda *args: run("expn", *args), special.expn),
        ("expint_small_data_ipp-expint_small_data", lambda *args: run("expn", *args), special.expn),
        ("expint_1_data_ipp-expint_1_data", lambda *args: run("expn", *args), special.expn),
        ("binomial_data_ipp-binomial_data", lambda *args: run("comb", *args), special.comb),
        ("binomial_large_data_ipp-binomial_large_data", lambda *args: run("comb", *args), special.comb),
        ("tgamma_delta_ratio_data_ipp-tgamma_delta_ratio_data", inverse(lambda *args: run("poch", *args)), inverse(special.poch)),
        ("tgamma_delta_ratio_int_ipp-tgamma_delta_ratio_int", inverse(lambda *args: run("poch", *args)), inverse(special.poch)),
        ("tgamma_delta_ratio_int2_ipp-tgamma_delta_ratio_int2", inverse(lambda *args: run("poch", *args)), inverse(special.poch)),
    ],
    ids=lambda each: each.partition("_ipp")[0] if isinstance(each, str) else "",
)
def test_tables_of_scipy(name: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    first, second, wanted, *_ = table(name).T
    errors(ours(first, second), theirs(first, second), wanted)


def near(number: Any) -> Any:
    """Numbers around those, at all distances."""
    rng = numpy.random.default_rng(1)
    return number * (1 + 10 ** rng.uniform(-9, 1, number.size) * rng.choice([1, -0.09], number.size))


def drawn(*ranges: tuple[float, float], count: int = 120) -> list[Any]:
    rng = numpy.random.default_rng(0)
    return [rng.uniform(*each, count) for each in ranges]


def scattered(low: float, high: float, count: int = 120) -> Any:
    return 10 ** numpy.random.default_rng(2).uniform(low, high, count)


RIGHT = scattered(-3, 3)
BOTH = scattered(-9, 1) * numpy.random.default_rng(3).choice([-1, 1], 120)
EXACT: list[tuple[str, Callable[..., Any], list[Any], float]] = [  # and the relative error
    ("kl_div", lambda p, q: p * mpmath.log(p / q) - p + q, [RIGHT, near(RIGHT)], 2e-15),
    ("boxcox", lambda x, n: (x**n - 1) / n, [RIGHT, BOTH], 1e-14),
    ("boxcox1p", lambda x, n: ((1 + x) ** n - 1) / n, [RIGHT, BOTH], 1e-14),
    ("poch", mpmath.rf, drawn((-20, 20), (-12, 12)), 1e-13),
    ("poch", mpmath.rf, [scattered(-8, 12), *drawn((-5, 5))], 1e-13),
    ("comb", mpmath.binomial, [*drawn((100, 200), (0, 100))], 1e-13),
    ("hyp1f1", mpmath.hyp1f1, drawn((0.1, 5), (0.1, 5), (-5, 5)), 5e-14),
    ("hyp1f1", mpmath.hyp1f1, drawn((0.1, 5), (0.1, 5), (-400, 400)), 1e-13),
    ("hyp1f1", mpmath.hyp1f1, drawn((0.1, 30), (0.1, 30), (-50, 50)), 1e-12),
    ("hyp1f1", mpmath.hyp1f1, drawn((-5, 5), (-5, 5), (-3, 3)), 1e-13),
]


@pytest.mark.parametrize(("name", "exact", "arrays", "bound"), EXACT)
def test_against_mpmath(name: str, exact: Callable[..., Any], arrays: list[Any], bound: float) -> None:
    with mpmath.workdps(50):
        wanted = numpy.array([float(exact(*map(mpmath.mpf, each))) for each in zip(*(a.tolist() for a in arrays), strict=True)])
    found = run(name, *arrays)
    assert (numpy.abs(found - wanted) <= bound * numpy.abs(wanted)).all()


def test_slopes_of_the_incomplete_gamma_function() -> None:
    a = numpy.concatenate([scattered(-1, 1.5, 25), [60.0, 1e5]])
    x = numpy.concatenate([a[:25] * scattered(-1, 0.5, 25), [55.0, 1.0003e5]])

    def density(a: Any, x: Any) -> Any:
        return mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))

    def distribution(a: Any, x: Any) -> Any:
        return mpmath.gammainc(a, 0, x, regularized=True)

    with mpmath.workdps(40):
        points = [(mpmath.mpf(each), mpmath.mpf(at)) for each, at in zip(a.tolist(), x.tolist(), strict=True)]
        slopes = [mpmath.diff(lambda a, at=at: distribution(a, at), each) for each, at in points]
        samples = numpy.array([-float(slope / density(*point)) for slope, point in zip(slopes, points, strict=True)])
    numpy.testing.assert_allclose(run("igamma_grad_a", a, x)[:-1], [float(slope) for slope in slopes[:-1]], rtol=1e-13)
    numpy.testing.assert_allclose(run("random_gamma_grad", a, x), samples, rtol=1e-12)


ENDS: list[tuple[str, list[tuple[float, ...]]]] = [
    ("kl_div", [(0, 2, 2), (0, 0, 0), (1, 1, 0), (1, 0, inf), (-1, 1, inf), (1, -1, inf), (nan, 1, nan), (1, nan, nan)]),
    ("boxcox", [(1, 3, 0), (0, 2, -0.5), (0, -2, -inf), (0, 0, -inf), (-1, 2, nan), (inf, 1, inf), (nan, 1, nan)]),
    ("boxcox1p", [(0, 3, 0), (-1, 2, -0.5), (-1, 0, -inf), (-2, 2, nan), (inf, 1, inf), (nan, 1, nan)]),
    ("owens_t", [(inf, 1, 0), (0, inf, 0.25), (0, -inf, -0.25), (2, 0, 0), (nan, 1, nan), (1, nan, nan)]),
    ("poch", [(0, 0, 1), (-2, 3, 0), (-2, 2, 2), (5, -5, inf), (5, -4, 1 / 24), (-3.5, 0.5, inf), (-1, 0.5, 0), (1, inf, inf), (nan, 1, nan)]),
    ("comb", [(5, 0, 1), (5, 5, 1), (5, 6, 0), (3, -1, 0), (-1, -1, 0), (60, 30, 118264581564861424), (1e10, 2, 49999999995e9), (nan, 1, nan)]),
    ("expn", [(0, 0, inf), (1, 0, inf), (2, 0, 1), (3.9, 0, 0.5), (-1, 1, nan), (1, -1, nan), (1, inf, 0), (1, 800, 0), (nan, 1, nan)]),
    ("igamma_grad_a", [(3, 0, 0), (3, inf, 0), (-1, 1, nan), (1, -1, nan), (nan, 1, nan), (1, nan, nan)]),
    ("random_gamma_grad", [(3, 0, 0), (-1, 1, nan), (1, -1, nan), (nan, 1, nan), (1, nan, nan)]),
    ("hyp1f1", [(0, 2, 3, 1), (2, 3, 0, 1), (1, -1, 2, inf), (-2, -3, 1, 11 / 6), (1, 2, inf, inf), (1, 2, -inf, 0), (nan, 1, 1, nan)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rows"), ENDS)
def test_ends(name: str, rows: list[tuple[float, ...]]) -> None:
    *arrays, wanted = zip(*rows, strict=True)
    numpy.testing.assert_allclose(run(name, *arrays), wanted, rtol=1e-15)


SLOPES: list[tuple[str, Callable[..., Any], list[tuple[float, float]]]] = [
    ("kl_div", lambda p, q: p * mpmath.log(p / q) - p + q, [(0.1, 5), (0.1, 5)]),
    ("boxcox", lambda x, n: (x**n - 1) / n, [(0.1, 5), (-3, 3)]),
    ("boxcox1p", lambda x, n: ((1 + x) ** n - 1) / n, [(-0.9, 5), (-3, 3)]),
    ("poch", mpmath.rf, [(0.2, 9), (-3, 3)]),
    ("comb", mpmath.binomial, [(10, 30), (1, 9)]),
    ("hyp1f1", mpmath.hyp1f1, [(0.2, 5), (0.2, 5), (-20, 20)]),
    ("expn", lambda n, x: mpmath.expint(mpmath.floor(n), x), [(0, 6), (0.1, 5)]),
    ("owens_t", lambda h, a: mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mpmath.pi), [(-3, 3), (-3, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "exact", "ranges"), SLOPES)
def test_derivatives(name: str, exact: Callable[..., Any], ranges: list[tuple[float, float]]) -> None:
    arrays = drawn(*ranges, count=12)
    places = [input_of(place, E.F64) for place in range(len(arrays))]
    found = evaluate(expanded(gradients(FUNCTIONS[name](*places), places, constant(1.0, E.F64))), arrays)
    for place, slopes in enumerate(found):
        if name == "expn" and place == 0:
            assert numpy.isnan(slopes).all()
            continue
        for at, slope in zip(zip(*arrays, strict=True), slopes.tolist(), strict=True):
            with mpmath.workdps(30):
                along = tuple(int(each == place) for each in range(len(arrays)))
                wanted = float(mpmath.diff(exact, tuple(map(mpmath.mpf, at)), along))
            assert slope == pytest.approx(wanted, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes(name: str) -> None:
    places = [input_of(place, E.F64) for place in range(FUNCTIONS[name].arity)]
    assert len([each for each in in_order(expanded((FUNCTIONS[name](*places),))) if each.args]) <= 620
