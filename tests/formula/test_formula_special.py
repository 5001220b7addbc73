"""Special functions as formulas: against mpmath where every digit counts, against SciPy elsewhere, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import mpmath
import numpy
import pytest

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import constant, in_order, input_of
from baracuda_kernels.formula.functions import bessel, gamma, incomplete, normal

special = pytest.importorskip("scipy.special")

FUNCTIONS = {name: getattr(module, name) for module in (normal, gamma, incomplete, bessel) for name in module.__all__}
DTYPES = {E.F32: numpy.float32, E.F64: numpy.float64}
Range = tuple[float, float]


class Log(tuple[float, float]):
    """A range in which every power of ten is drawn as often."""


def drawn(ranges: tuple[Range, ...], count: int, element: E = E.F64) -> list[Any]:
    rng = numpy.random.default_rng(0)
    found = []
    for each in ranges:
        numbers = numpy.exp(rng.uniform(*numpy.log(each), count)) if isinstance(each, Log) else rng.uniform(*each, count)
        found.append(numbers.astype(DTYPES[element]))
    return found


def run(name: str, *arrays: Any, element: E = E.F64) -> Any:
    places = [input_of(place, element) for place in range(len(arrays))]
    return evaluate(expanded((FUNCTIONS[name](*places),)), [numpy.asarray(array, DTYPES[element]) for array in arrays])[0]


def ulps(found: Any, wanted: Any, dtype: Any) -> Any:
    """How far they are apart, in units in the last place of what is wanted, which may be more precise."""
    with numpy.errstate(over="ignore"):
        unit = numpy.spacing(numpy.abs(numpy.asarray(wanted).astype(dtype)))
    return numpy.array([float(abs(a - b) / c) for a, b, c in zip(found.tolist(), wanted, unit.tolist(), strict=True)])


def mp_ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def mp_scaled(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


EXACT: list[tuple[str, Callable[..., Any], Range, float]] = [  # and how many units in the last place may be wrong in F64
    ("erf", mpmath.erf, (-6, 6), 1.5),
    ("erfc", mpmath.erfc, (-2, 27), 4.5),
    ("erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-26, 26), 4.5),
    ("ndtr", mp_ndtr, (-37, 8), 4.5),
    ("log_ndtr", lambda x: mpmath.log(mp_ndtr(x)), (-60, 8), 4.5),
    ("erfinv", mpmath.erfinv, (-1, 1), 6),
    ("ndtri", lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1), Log((1e-12, 0.99)), 6),
    ("lgamma", lambda x: mpmath.loggamma(x).real, (0, 4), 24),
    ("lgamma", lambda x: mpmath.loggamma(x).real, (1.999, 2.001), 8),
    ("lgamma", lambda x: mpmath.loggamma(x).real, Log((4, 1e20)), 8),
    ("digamma", mpmath.digamma, (0, 20), 8),
    ("digamma", mpmath.digamma, (1.461, 1.462), 8),
    ("trigamma", lambda x: mpmath.polygamma(1, x), (0, 20), 80),
    ("gamma", mpmath.gamma, (0, 10), 24),
    ("gamma", mpmath.gamma, (-170, 171), 250),
    ("i0", lambda x: mpmath.besseli(0, x), (-20, 20), 6),
    ("i1", lambda x: mpmath.besseli(1, x), (-20, 20), 6),
    ("i0e", mp_scaled(0), (-100, 100), 4.5),
    ("i1e", mp_scaled(1), (-100, 100), 4.5),
]


@pytest.mark.parametrize(("name", "reference", "within", "bound"), EXACT)
def test_last_digits(name: str, reference: Callable[..., Any], within: Range, bound: float) -> None:
    (x,) = drawn((within,), 250)
    with mpmath.workdps(40):
        wanted = [reference(mpmath.mpf(each)) for each in x.tolist()]
        assert ulps(run(name, x), wanted, numpy.float64).max() <= bound


CASES: list[tuple[str, Callable[..., Any], tuple[Range, ...], float]] = [  # and the relative error in F64, of SciPy's functions too
    ("erf", special.erf, ((-5, 5),), 1e-15),
    ("erfc", special.erfc, ((-3, 9),), 1e-13),
    ("erfcx", special.erfcx, ((-9, 50),), 1e-13),
    ("ndtr", special.ndtr, ((-12, 5),), 1e-13),
    ("log_ndtr", special.log_ndtr, ((-100, 5),), 1e-13),
    ("erfinv", special.erfinv, ((-1, 1),), 1e-13),
    ("ndtri", special.ndtri, (Log((1e-30, 1)),), 1e-13),
    ("lgamma", special.gammaln, ((2.5, 100),), 1e-13),
    ("lgamma", special.gammaln, (Log((1e-30, 0.9)),), 1e-13),
    ("gamma", special.gamma, ((-10, 30),), 1e-13),
    ("digamma", special.digamma, ((2, 100),), 1e-13),
    ("trigamma", lambda x: special.polygamma(1, x), (Log((1e-3, 1e6)),), 1e-13),
    ("zeta", special.zeta, ((1.01, 12), Log((0.01, 1e4))), 1e-13),
    ("beta", special.beta, (Log((0.01, 60)), Log((0.01, 60))), 1e-12),
    ("betaln", special.betaln, ((2, 1e4), (2, 1e4)), 1e-12),
    ("igamma", special.gammainc, (Log((0.01, 60)), Log((0.01, 60))), 1e-12),
    ("igamma", special.gammainc, ((500, 550), (400, 650)), 1e-12),
    ("igamma", special.gammainc, (Log((1e4, 1e8)), Log((1e4, 1e8))), 1e-10),
    ("igammac", special.gammaincc, ((0.1, 60), Log((0.01, 80))), 1e-12),
    ("igammac", special.gammaincc, ((500, 550), (400, 650)), 1e-12),
    ("betainc", special.betainc, (Log((0.1, 300)), Log((0.1, 300)), (0.01, 0.99)), 1e-12),
    ("i0", special.i0, ((-80, 80),), 1e-14),
    ("i1", special.i1, ((-80, 80),), 1e-14),
    ("i0e", special.i0e, ((-1e3, 1e3),), 1e-14),
    ("i1e", special.i1e, ((-1e3, 1e3),), 1e-14),
]


@pytest.mark.parametrize(("name", "reference", "within", "bound"), CASES)
def test_f64(name: str, reference: Callable[..., Any], within: tuple[Range, ...], bound: float) -> None:
    arrays = drawn(within, 3000)
    found, wanted = run(name, *arrays), reference(*arrays)
    assert numpy.all(numpy.abs(found - wanted) <= bound * numpy.abs(wanted) + 1e-290)


IN_F32 = {*normal.__all__, *bessel.__all__, "lgamma", "digamma", "gamma"}  # what F32 is computed in; all others in F64


@pytest.mark.parametrize(("name", "reference", "within", "bound"), CASES)
def test_f32(name: str, reference: Callable[..., Any], within: tuple[Range, ...], bound: float) -> None:
    arrays = drawn(within, 3000, E.F32)
    found = run(name, *arrays, element=E.F32)
    wanted = reference(*(array.astype(numpy.float64) for array in arrays))
    normal_ones = (numpy.abs(wanted) > 1e-37) & (numpy.abs(wanted) < 3e38)
    assert ulps(found[normal_ones], wanted[normal_ones], numpy.float32).max() <= (
        2 if name == "erf" else 4 if name in IN_F32 else 1
    )


@pytest.mark.parametrize("name", ["lgamma", "digamma", "gamma"])
def test_short_gammas(name: str) -> None:
    """Near their zeros and poles too."""
    zeros = [-0.504083, -1.573498, -2.610721, -3.635293, 1.461632, -2.457025, -2.747683, -3.143581, -3.955294, *range(-4, 3)]
    near = [numpy.float32(zero) + numpy.linspace(-0.01, 0.01, 1001, dtype=numpy.float32) for zero in zeros]
    x = numpy.concatenate([*drawn(((-4.5, 9),), 20000, E.F32), *near])
    found, wanted = run(name, x, element=E.F32), run(name, x.astype(numpy.float64))
    finite = numpy.isfinite(wanted)
    assert numpy.array_equal(numpy.isfinite(found), finite)
    assert ulps(found[finite], wanted[finite], numpy.float32).max() <= 4


def test_fast_erf() -> None:
    """Which has one polynomial near zero and one far from it."""
    x = numpy.arange(*(numpy.float32(each).view(numpy.int32) for each in (0.05, 4.1)), 401, dtype=numpy.int32).view(numpy.float32)
    assert ulps(run("erf", x, element=E.F32), special.erf(x.astype(numpy.float64)), numpy.float32).max() <= 2


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7, 30])
def test_polygamma(order: int) -> None:
    (x,) = drawn((Log((0.05, 1e3)),), 2000)
    found, wanted = run("polygamma", numpy.full_like(x, order), x), special.polygamma(order, x)
    assert numpy.all(numpy.abs(found - wanted) <= 1e-13 * numpy.abs(wanted) * (1 + order))
    left = -8 * drawn(((0, 1),), 60)[0]
    with mpmath.workdps(30):
        exact = numpy.array([float(mpmath.polygamma(order, each)) for each in left.tolist()])
    found = run("polygamma", numpy.full_like(left, order), left)
    assert numpy.isnan(found).all() if order > 4 else numpy.all(numpy.abs(found - exact) <= 1e-12 * numpy.abs(exact))


ENDS = [
    ("erf", [(0.0, 0.0), (inf, 1), (-inf, -1), (nan, nan)]),
    ("erfc", [(0.0, 1), (inf, 0), (-inf, 2), (30, 0), (nan, nan)]),
    ("erfcx", [(0.0, 1), (inf, 0), (-inf, inf), (-30, inf), (nan, nan)]),
    ("erfinv", [(0.0, 0.0), (1, inf), (-1, -inf), (1.5, nan), (-1.5, nan), (nan, nan)]),
    ("ndtr", [(0.0, 0.5), (inf, 1), (-inf, 0), (nan, nan)]),
    ("ndtri", [(0.0, -inf), (0.5, 0.0), (1, inf), (-0.1, nan), (1.1, nan), (nan, nan)]),
    ("log_ndtr", [(-inf, -inf), (inf, 0), (50, 0), (nan, nan)]),
    ("lgamma", [(0.0, inf), (-0.0, inf), (-1, inf), (-7, inf), (1, 0.0), (2, 0.0), (inf, inf), (-inf, inf), (nan, nan)]),
    ("gamma", [(0.0, inf), (-0.0, -inf), (-1, nan), (inf, inf), (-inf, nan), (172, inf), (nan, nan)]),
    ("digamma", [(0.0, -inf), (-0.0, inf), (-1, nan), (inf, inf), (-inf, nan), (nan, nan)]),
    ("trigamma", [(0.0, inf), (-1, inf), (inf, 0), (nan, nan)]),
    ("zeta", [(1, 2, inf), (0.5, 2, nan), (2, 0.0, inf), (2, -3, inf), (2, -0.5, nan), (inf, 1, 1), (3, inf, 0), (nan, 1, nan)]),
    ("polygamma", [(2, 0.0, -inf), (3, 0.0, inf), (2, -1, -inf), (2, inf, 0), (0, 1, nan), (6, -0.5, nan), (2, nan, nan)]),
    ("beta", [(0.0, 1, inf), (-0.5, 1, nan), (inf, 2, 0), (nan, 1, nan), (1, nan, nan)]),
    ("betaln", [(0.0, 1, inf), (-0.5, 1, nan), (inf, 2, -inf), (nan, 1, nan), (1, nan, nan)]),
    ("igamma", [(2, 0.0, 0), (0.0, 2, 1), (0.0, 0.0, nan), (2, inf, 1), (inf, 2, 0), (inf, inf, nan), (-1, 2, nan), (2, -1, nan)]),
    ("igammac", [(2, 0.0, 1), (0.0, 2, 0), (2, inf, 0), (inf, 2, 1), (inf, inf, nan), (-1, 2, nan), (2, nan, nan)]),
    ("betainc", [(2, 3, 0.0, 0), (2, 3, 1, 1), (2, 3, -0.1, nan), (2, 3, 1.1, nan), (0.0, 3, 0.5, nan), (2, 3, nan, nan)]),
    ("i0", [(0.0, 1), (inf, inf), (-inf, inf), (nan, nan)]),
    ("i1", [(0.0, 0.0), (inf, inf), (-inf, -inf), (nan, nan)]),
    ("i0e", [(0.0, 1), (inf, 0), (-inf, 0), (nan, nan)]),
    ("i1e", [(0.0, 0.0), (inf, 0), (nan, nan)]),
]  # fmt: skip


@pytest.mark.parametrize("element", [E.F32, E.F64], ids=str)
@pytest.mark.parametrize(("name", "rows"), ENDS)
def test_ends(name: str, rows: list[tuple[float, ...]], element: E) -> None:
    """Poles, infinities, NaN, and where a function is not defined."""
    *arrays, wanted = (numpy.array(column, DTYPES[element]) for column in zip(*rows, strict=True))
    numpy.testing.assert_array_equal(run(name, *arrays, element=element), wanted)


SLOPES: list[tuple[str, Callable[..., Any], tuple[Range, ...]]] = [
    ("erf", special.erf, ((-3, 3),)),
    ("erfc", special.erfc, ((-3, 3),)),
    ("erfcx", special.erfcx, ((-3, 10),)),
    ("erfinv", special.erfinv, ((-0.9, 0.9),)),
    ("ndtr", special.ndtr, ((-4, 4),)),
    ("ndtri", special.ndtri, ((0.05, 0.95),)),
    ("log_ndtr", special.log_ndtr, ((-40, 4),)),
    ("lgamma", special.gammaln, ((0.2, 20),)),
    ("gamma", special.gamma, ((0.2, 10),)),
    ("digamma", special.digamma, ((0.2, 20),)),
    ("trigamma", lambda x: special.polygamma(1, x), ((0.2, 20),)),
    ("polygamma", lambda n, x: special.polygamma(3, x), ((3, 3), (0.2, 20))),
    ("zeta", special.zeta, ((1.1, 8), (0.2, 10))),
    ("beta", special.beta, ((0.2, 8), (0.2, 8))),
    ("betaln", special.betaln, ((0.2, 8), (0.2, 8))),
    ("igamma", special.gammainc, ((0.2, 30), (0.2, 30))),
    ("igammac", special.gammaincc, ((0.2, 30), (0.2, 30))),
    ("betainc", special.betainc, ((0.2, 8), (0.2, 8), (0.05, 0.95))),
    ("i0", special.i0, ((-10, 10),)),
    ("i1", special.i1, ((-10, 10),)),
    ("i0e", special.i0e, ((-10, 10),)),
    ("i1e", special.i1e, ((-10, 10),)),
]
WITHOUT = {"polygamma": (0,), "zeta": (0,), "igamma": (0,), "igammac": (0,), "betainc": (0, 1)}  # derivatives, by operand


@pytest.mark.parametrize(("name", "reference", "within"), SLOPES)
def test_derivatives(name: str, reference: Callable[..., Any], within: tuple[Range, ...]) -> None:
    arrays = drawn(within, 200)
    places = [input_of(place, E.F64) for place in range(len(arrays))]
    found = evaluate(expanded(gradients(FUNCTIONS[name](*places), places, constant(1, E.F64))), arrays)
    for place, slope in enumerate(found):
        if place in WITHOUT.get(name, ()):
            assert not slope.any()
            continue
        step = 1e-4 * numpy.maximum(numpy.abs(arrays[place]), 0.1)
        moved = [reference(*(each + far * step * (at == place) for at, each in enumerate(arrays))) for far in (-2, -1, 1, 2)]
        wanted = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * step)
        numpy.testing.assert_allclose(slope, wanted, rtol=1e-7, atol=1e-9 * numpy.abs(wanted).max())


def mp_bessel_slope(order: int) -> Callable[[Any], Any]:
    """Of exp(-|x|) times the function."""

    def slope(x: Any) -> Any:
        size = abs(x)
        even, odd = (mpmath.besseli(each, size) * mpmath.exp(-size) for each in (0, 1))
        return mpmath.sign(x) * (odd - even) if order == 0 else even - odd * (1 + 1 / size)

    return slope


CANCELLING: list[tuple[str, Callable[..., Any], Range]] = [
    ("i0e", mp_bessel_slope(0), Log((1e-3, 1e7))),
    ("i1e", mp_bessel_slope(1), Log((1e-3, 1e7))),
    ("erfcx", lambda x: 2 * x * mpmath.exp(x * x) * mpmath.erfc(x) - 2 / mpmath.sqrt(mpmath.pi), Log((1e-3, 1e4))),
    ("log_ndtr", lambda x: mpmath.npdf(x) / mp_ndtr(x), (-30, 12)),
]


@pytest.mark.parametrize(("element", "bound"), [(E.F64, 1e-11), (E.F32, 3e-7)], ids=str)
@pytest.mark.parametrize(("name", "reference", "within"), CANCELLING)
def test_derivatives_whose_terms_cancel(name: str, reference: Callable[..., Any], within: Range, element: E, bound: float) -> None:
    x = input_of(0, element)
    (numbers,) = drawn((within,), 60, element)
    with mpmath.workdps(60):
        wanted = [float(reference(mpmath.mpf(each))) for each in numbers.tolist()]
    (found,) = evaluate(expanded(gradients(FUNCTIONS[name](x), [x], constant(1.0, element))), [numbers])
    numpy.testing.assert_allclose(found, wanted, rtol=bound)


def test_a_slope_is_derived_again() -> None:
    x, at = input_of(0, E.F64), numpy.array([-3.0, -0.5, 0.7, 4.0])
    made = gradients(bessel.i0e_slope(x), [x], constant(1.0, E.F64))
    first, second, third = (special.ive(order, abs(at)) for order in range(3))
    numpy.testing.assert_allclose(evaluate(expanded(made), [at])[0], 1.5 * first - 2 * second + 0.5 * third, rtol=1e-13)


def test_derivatives_at_their_ends() -> None:
    x = input_of(0, E.F64)

    def slope(name: str, *at: float) -> list[float]:
        made = gradients(FUNCTIONS[name](x), [x], constant(1, E.F64))
        return evaluate(expanded(made), [numpy.array(at)])[0].tolist()

    assert slope("i1", 0.0) == slope("i1e", 0.0) == [0.5]
    assert slope("i0", 0.0) == slope("i0e", 0.0) == [0.0]
    assert slope("log_ndtr", 50.0) == [0.0]
    assert slope("log_ndtr", -1e8) == pytest.approx([1e8], rel=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes(name: str) -> None:
    """A formula with one of them can still be compiled in reasonable time."""
    for element in DTYPES:
        places = [input_of(place, element) for place in range(FUNCTIONS[name].arity)]
        operations = [each for each in in_order(expanded((FUNCTIONS[name](*places),))) if each.args]
        assert len(operations) <= (30 if (name, element) == ("erf", E.F32) else 610)
