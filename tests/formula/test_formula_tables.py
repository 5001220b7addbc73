"""Bessel and Airy functions, integrals and the dilogarithm: within 8 times SciPy's error of the exact numbers, by mpmath and on Boost's tables."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import mpmath
import numpy
import pytest

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import constant, in_order, input_of
from baracuda_kernels.formula.functions import bessel_decay, bessel_waves, gamma, integrals

special = pytest.importorskip("scipy.special")

MODULES = (bessel_waves, bessel_decay, integrals)
FUNCTIONS = {name: getattr(module, name) for module in MODULES for name in module.__all__} | {
    "airy_slope": bessel_decay.airy_slope,
    "dawsn_slope": integrals.dawsn_slope,
    "factorial": gamma.factorial,
    "scaled_excess": bessel_decay.scaled_excess,
    "spherical_slope": bessel_waves.spherical_slope,
}
LEAST = 2.0**-52  # SciPy's error where it is less


def run(name: str, x: Any, element: E = E.F64) -> Any:
    return evaluate(expanded((FUNCTIONS[name](input_of(0, element)),)), [x])[0]


def slope(name: str, x: Any) -> Any:
    place = input_of(0, E.F64)
    return evaluate(expanded(gradients(FUNCTIONS[name](place), [place], constant(1, E.F64))), [x])[0]


def mp_dawsn(x: Any) -> Any:
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


def mp_scaled(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besselk(order, x) * mpmath.exp(x)


# The exact function, SciPy's, and the ranges of its pieces; those from a positive number on are drawn by powers of ten.
EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[tuple[float, float], ...]]] = {
    "bessel_j0": (lambda x: mpmath.besselj(0, x), special.j0, ((-6, 6), (6, 50), (50, 1e6))),
    "bessel_j1": (lambda x: mpmath.besselj(1, x), special.j1, ((-6, 6), (6, 50), (50, 1e6))),
    "bessel_y0": (lambda x: mpmath.bessely(0, x), special.y0, ((1e-5, 6), (6, 50), (50, 1e6))),
    "bessel_y1": (lambda x: mpmath.bessely(1, x), special.y1, ((1e-5, 6), (6, 50), (50, 1e6))),
    "spherical_bessel_j0": (lambda x: mpmath.sin(x) / x, lambda x: special.spherical_jn(0, x), ((-20, 20),)),
    "modified_bessel_k0": (lambda x: mpmath.besselk(0, x), special.k0, ((1e-9, 1), (1, 700))),
    "modified_bessel_k1": (lambda x: mpmath.besselk(1, x), special.k1, ((1e-9, 1), (1, 700))),
    "scaled_modified_bessel_k0": (mp_scaled(0), special.k0e, ((1e-9, 1), (1, 1e5))),
    "scaled_modified_bessel_k1": (mp_scaled(1), special.k1e, ((1e-9, 1), (1, 1e5))),
    "scaled_excess": (lambda x: mp_scaled(1)(x) - mp_scaled(0)(x), lambda x: special.k1e(x) - special.k0e(x), ((0.1, 1e4),)),
    "airy_ai": (mpmath.airyai, lambda x: special.airy(x)[0], ((1, 100), (-2, 1), (-4.5, -2), (-30, -4.5), (-1e5, -30))),
    "airy_slope": (
        lambda x: mpmath.airyai(x, derivative=1),
        lambda x: special.airy(x)[1],
        ((1, 100), (-2, 1), (-4.5, -2), (-30, -4.5), (-1e5, -30)),
    ),
    "dawsn": (mp_dawsn, special.dawsn, ((-2.5, 2.5), (2.5, 5), (5, 1e4))),
    "dawsn_slope": (lambda x: 1 - 2 * x * mp_dawsn(x), lambda x: 1 - 2 * x * special.dawsn(x), ((-2.5, 2.5), (2.5, 5), (5, 100))),
    "exp1": (mpmath.e1, special.exp1, ((1e-8, 1), (1, 4), (4, 700))),
    "expi": (mpmath.ei, special.expi, ((-20, -0.1), (1e-5, 0.3), (0.37, 0.38), (0.5, 6), (6, 12), (12, 30), (30, 700))),
    "spence": (lambda x: mpmath.polylog(2, 1 - x).real, special.spence, ((1e-10, 0.5), (0.5, 2), (0.99, 1.01), (2, 1e6))),
    "sine_integral": (mpmath.si, lambda x: special.sici(x)[0], ((-4, 4), (4, 8), (8, 50), (50, 1e6))),
    "cosine_integral": (mpmath.ci, lambda x: special.sici(x)[1], ((1e-5, 0.6), (0.6, 4), (4, 8), (8, 50), (50, 1e6))),
    "fresnel_s": (mpmath.fresnels, lambda x: special.fresnel(x)[0], ((-1.5, 1.5), (1.5, 2.25), (2.25, 20), (20, 1e6))),
    "fresnel_c": (mpmath.fresnelc, lambda x: special.fresnel(x)[1], ((-1.5, 1.5), (1.5, 2.25), (2.25, 20), (20, 1e6))),
}


def drawn(low: float, high: float, count: int) -> Any:
    rng = numpy.random.default_rng(7)
    return numpy.exp(rng.uniform(*numpy.log([low, high]), count)) if low > 0 else rng.uniform(low, high, count)


def worst(found: Any, wanted: list[Any]) -> float:
    """The largest relative error."""
    return max(float(abs((a - b) / b)) for a, b in zip(found.tolist(), wanted, strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_exact_numbers(name: str) -> None:
    exact, scipys, ranges = EXACT[name]
    for low, high in ranges:
        x = drawn(low, high, 40)
        with mpmath.workdps(40):
            wanted = [exact(mpmath.mpf(each)) for each in x.tolist()]
            ours, theirs = worst(run(name, x), wanted), worst(scipys(x), wanted)
        assert ours <= 8 * max(theirs, LEAST), (low, high, ours, theirs)


TABLES: list[tuple[str, str, int | None, Callable[[Any], Any]]] = [  # of Boost, as SciPy has them, and which order is meant
    ("bessel_j0", "bessel_j_int_data", 0, special.j0),
    ("bessel_j1", "bessel_j_int_data", 1, special.j1),
    ("bessel_y0", "bessel_y01_data", 0, special.y0),
    ("bessel_y1", "bessel_y01_data", 1, special.y1),
    ("modified_bessel_k0", "bessel_k_int_data", 0, special.k0),
    ("modified_bessel_k1", "bessel_k_int_data", 1, special.k1),
    ("spherical_bessel_j0", "sph_bessel_data", 0, lambda x: special.spherical_jn(0, x)),
    ("exp1", "expint_1_data", 1, special.exp1),
    ("expi", "expinti_data", None, special.expi),
    ("expi", "expinti_data_double", None, special.expi),
]


@pytest.mark.parametrize(("name", "table", "order", "scipys"), TABLES)
def test_tables_of_boost(name: str, table: str, order: int | None, scipys: Callable[[Any], Any]) -> None:
    path = importlib.resources.files("scipy.special").joinpath("tests/data/boost.npz")
    if not path.is_file():
        pytest.skip("SciPy is installed without its tests")
    with importlib.resources.as_file(path) as file, numpy.load(file) as data:
        rows = data[f"{table}_ipp-{table}"]
    rows = rows if order is None else rows[rows[:, 0] == order]
    x, wanted = rows[:, -2], rows[:, -1]
    normal = (numpy.abs(wanted) > 1e-300) & (numpy.abs(wanted) < 1e300)
    assert normal.sum() >= 4
    ours, theirs = (numpy.abs(found[normal] / wanted[normal] - 1).max() for found in (run(name, x), scipys(x)))
    assert ours <= 8 * max(theirs, LEAST), (ours, theirs)


ENDS: list[tuple[str, list[tuple[float, float]]]] = [
    ("bessel_j0", [(0.0, 1), (inf, nan), (nan, nan)]),
    ("bessel_j1", [(0.0, 0.0), (-inf, nan), (nan, nan)]),
    ("bessel_y0", [(0.0, -inf), (-1, nan), (-10, nan), (inf, nan), (nan, nan)]),
    ("bessel_y1", [(0.0, -inf), (-1, nan), (-10, nan), (inf, nan), (nan, nan)]),
    ("spherical_bessel_j0", [(0.0, 1), (inf, 0), (-inf, 0), (nan, nan)]),
    ("modified_bessel_k0", [(0.0, inf), (-1, nan), (-10, nan), (inf, 0), (nan, nan)]),
    ("modified_bessel_k1", [(0.0, inf), (-0.0, inf), (-1, nan), (inf, 0), (nan, nan)]),
    ("scaled_modified_bessel_k0", [(0.0, inf), (-1, nan), (inf, 0), (nan, nan)]),
    ("scaled_modified_bessel_k1", [(0.0, inf), (-1, nan), (inf, 0), (nan, nan)]),
    ("airy_ai", [(inf, 0), (200, 0), (-(2.0**21), nan), (-inf, nan), (nan, nan)]),
    ("dawsn", [(0.0, 0.0), (inf, 0), (-inf, -0.0), (nan, nan)]),
    ("exp1", [(0.0, inf), (-1, nan), (inf, 0), (nan, nan)]),
    ("expi", [(0.0, -inf), (-0.0, -inf), (-inf, -0.0), (inf, inf), (nan, nan)]),
    ("spence", [(1, 0.0), (-1, nan), (nan, nan)]),
    ("sine_integral", [(0.0, 0.0), (nan, nan)]),
    ("cosine_integral", [(0.0, -inf), (inf, 0), (-inf, nan), (nan, nan)]),
    ("fresnel_s", [(0.0, 0.0), (inf, 0.5), (-inf, -0.5), (nan, nan)]),
    ("fresnel_c", [(0.0, 0.0), (inf, 0.5), (-inf, -0.5), (nan, nan)]),
    ("factorial", [(0.0, 1), (3, 6), (10, 3628800), (-0.5, 0), (-3, 0), (200, inf), (inf, inf), (nan, nan)]),
]


@pytest.mark.parametrize("element", [E.F32, E.F64], ids=str)
@pytest.mark.parametrize(("name", "rows"), ENDS)
def test_ends(name: str, rows: list[tuple[float, float]], element: E) -> None:
    dtype = numpy.float32 if element is E.F32 else numpy.float64
    given, wanted = (numpy.array(column, dtype) for column in zip(*rows, strict=True))
    with numpy.errstate(all="ignore"):
        numpy.testing.assert_array_equal(run(name, given, element), wanted)


def test_numbers_between() -> None:
    """Where formulas meet, and integers whose factorials are floats."""
    assert run("spence", numpy.zeros(1)).tolist() == [pi**2 / 6]
    assert run("sine_integral", numpy.array([inf, -inf])).tolist() == [pi / 2, -pi / 2]
    whole = numpy.arange(15.0)
    assert run("factorial", whole).tolist() == special.factorial(whole).tolist()
    for name, seams in (
        ("bessel_j0", (6,)),
        ("airy_ai", (1, -2, -4.5)),
        ("dawsn", (2.5, 5)),
        ("expi", (6, 12, 30)),
        ("exp1", (1, 4)),
    ):
        for seam in seams:
            below, above = run(name, numpy.nextafter(float(seam), [-inf, inf]))
            assert abs(below - above) <= 1e-14 * abs(above), (name, seam)


SLOPES = {
    "bessel_j0": (-9, 9), "bessel_j1": (-9, 9), "bessel_y0": (0.5, 9), "bessel_y1": (0.5, 9), "spherical_bessel_j0": (-9, 9),
    "spherical_slope": (-9, 9), "modified_bessel_k0": (0.5, 9), "modified_bessel_k1": (0.5, 9), "scaled_modified_bessel_k0": (0.5, 9),
    "scaled_modified_bessel_k1": (0.5, 9), "scaled_excess": (0.5, 9), "airy_ai": (-9, 4), "airy_slope": (-9, 4), "dawsn": (-7, 7),
    "dawsn_slope": (-7, 7), "exp1": (0.5, 9), "expi": (0.5, 9), "spence": (0.1, 5), "sine_integral": (-9, 9),
    "cosine_integral": (0.5, 9), "fresnel_s": (-4, 4), "fresnel_c": (-4, 4), "factorial": (0.1, 6),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    x, step = drawn(*SLOPES[name], 200), 1e-4
    below, lower, upper, above = (run(name, x + far * step) for far in (-2, -1, 1, 2))
    wanted = (below - 8 * lower + 8 * upper - above) / (12 * step)
    numpy.testing.assert_allclose(slope(name, x), wanted, rtol=1e-7, atol=1e-9 * numpy.abs(wanted).max())


def test_derivatives_at_their_ends() -> None:
    assert slope("bessel_j1", numpy.zeros(1)).tolist() == [0.5]
    assert slope("spence", numpy.ones(1)).tolist() == [-1.0]
    assert slope("dawsn", numpy.array([0.0, 1e8])).tolist() == pytest.approx([1.0, -0.5e-16], rel=1e-15)
    assert slope("spherical_bessel_j0", numpy.zeros(1)).tolist() == [0.0]
    assert slope("spherical_slope", numpy.zeros(1)).tolist() == [-1 / 3]
    assert slope("scaled_modified_bessel_k0", numpy.array([1e6])).tolist() == pytest.approx([-special.k0e(1e6) * 0.5e-6], rel=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes(name: str) -> None:
    """A formula with one of them can still be compiled in reasonable time."""
    operations = [each for each in in_order(expanded((FUNCTIONS[name](input_of(0, E.F64)),))) if each.args]
    assert len(operations) <= 450
