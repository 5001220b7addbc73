"""Elementary functions of formulas: digits over the whole range, special numbers, derivatives. NumPy runs the formulas, mpmath knows better."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import constant, input_of, parameter_of
from baracuda_kernels.formula.function import FUNCTIONS, ROUGH
from baracuda_kernels.formula.functions import elementary, hyperbolic, log_sums, powers, trigonometry
from baracuda_kernels.formula.operations import clz, convert, fma, mul_high, quotient, remainder, shr_logical
from baracuda_kernels.verify.accuracy import every_half

DTYPES: dict[E, Any] = {E.F32: np.float32, E.F64: np.float64}
FLOATS = (E.F32, E.F64)
NAMES = (*elementary.__all__, *log_sums.__all__, *powers.__all__, *trigonometry.__all__, *hyperbolic.__all__)
INFINITY = math.inf
mp = mpmath.MPContext()
mp.prec = 140


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def _sinc(x: Any) -> Any:
    return mp.sinpi(x) / (mp.pi * x) if x else mp.one


def _logaddexp2(x: Any, y: Any) -> Any:
    return mp.log(mp.power(2, x) + mp.power(2, y), 2)


REFERENCES: dict[str, Callable[..., Any]] = {
    "exp_nonpositive": mp.exp, "log1p_nonnegative": mp.log1p, "log_normal": mp.log, "exp2": lambda x: mp.power(2, x), "log2": lambda x: mp.log(x, 2), "sigmoid": _sigmoid,
    "log1pexp": lambda x: mp.log1p(mp.exp(x)), "rsqrt": lambda x: 1 / mp.sqrt(x), "cbrt": _cbrt, "pow": mp.power, "sinc": _sinc,
    "exp_below": lambda x, top: mp.exp(x - top), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), "logaddexp2": _logaddexp2,
    "log1mexp": lambda x: mp.log(-mp.expm1(-x)) if x < 1 else mp.log1p(-mp.exp(-x)), "rel_entr": lambda x, y: x * mp.log(x / y),
}  # fmt: skip

# The largest error in units of the last place, of F32 and of F64, and the operands: all between two bounds.
BOUNDS: dict[str, tuple[float, float, float, float]] = {
    "exp": (0.95, 0.95, -INFINITY, INFINITY), "exp_nonpositive": (0.95, 0.95, -INFINITY, 0.0), "exp2": (0.95, 0.95, -INFINITY, INFINITY),
    "expm1": (1.5, 1.9, -INFINITY, INFINITY), "log": (0.85, 0.85, 0.0, INFINITY), "log2": (0.8, 0.8, 0.0, INFINITY),
    "log10": (0.8, 0.8, 0.0, INFINITY), "log1p": (1.5, 1.4, -1.0, INFINITY), "log1p_nonnegative": (1.5, 1.4, 0.0, 2.0**99), "log_normal": (1.2, 0.85, 2.0**-126, 2.0**126), "sigmoid": (1.65, 1.65, -INFINITY, INFINITY),
    "log1pexp": (1.9, 1.9, -INFINITY, INFINITY), "rsqrt": (0.51, 0.51, 0.0, INFINITY), "cbrt": (0.6, 0.6, -INFINITY, INFINITY),
    "log1mexp": (3.0, 3.0, 0.0, INFINITY), "rel_entr": (2.7, 2.7, 0.0, INFINITY), "pow": (1.2, 1.2, 0.0, INFINITY), "hypot": (1.0, 1.0, -INFINITY, INFINITY),
    "sin": (2.4, 1.3, -INFINITY, INFINITY), "cos": (2.4, 1.3, -INFINITY, INFINITY), "tan": (2.5, 2.6, -INFINITY, INFINITY),
    "sinpi": (1.1, 1.1, -INFINITY, INFINITY), "cospi": (1.1, 1.1, -INFINITY, INFINITY), "sinc": (3.1, 3.1, -INFINITY, INFINITY),
    "asin": (2.2, 2.2, -1.0, 1.0), "acos": (1.3, 1.3, -1.0, 1.0), "atan": (1.8, 1.9, -INFINITY, INFINITY),
    "atan2": (1.9, 1.9, -INFINITY, INFINITY),
    "sinh": (1.9, 1.9, -INFINITY, INFINITY), "cosh": (2.1, 1.9, -INFINITY, INFINITY), "tanh": (1.5, 1.6, -INFINITY, INFINITY),
    "asinh": (1.8, 1.8, -INFINITY, INFINITY), "acosh": (2.6, 2.6, 1.0, INFINITY), "atanh": (2.3, 2.1, -1.0, 1.0),
}  # fmt: skip
ZEROS = ("logaddexp", "logaddexp2")  # which lose digits where they are zero but their operands are not


def reference(name: str) -> Callable[..., Any]:
    return REFERENCES.get(name) or getattr(mp, name)


def numbers(dtype: Any, least: float, most: float, count: int, seed: int) -> np.ndarray:
    """Of all sizes, between the bounds."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    powers = np.exp2(rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, count))
    close = 1 + rng.choice([-1, 1], count) * np.exp2(rng.uniform(-info.nmant, 0, count))
    signs = rng.choice([-1.0, 1.0], (2, count))
    drawn = [powers * signs[0], close * signs[1], *(rng.uniform(-size, size, count) for size in (1.0, 5.0, 90.0, 720.0))]
    found = np.concatenate(drawn).astype(dtype)
    found = np.abs(found) if least == 0.0 else -np.abs(found) if most == 0.0 else found
    return found[(found > least) & (found < most)]


def computed(name: str, element: E, operands: list[np.ndarray]) -> np.ndarray:
    function = FUNCTIONS[name]
    return evaluate(expanded((function(*(input_of(place, element) for place in range(function.arity))),)), operands)[0]


def errors(result: np.ndarray, exact: list[Any], floors: Any = None) -> np.ndarray:
    """In units in the last place of the exact results, or of the floors where those are larger."""
    info = np.finfo(result.dtype)
    found = np.zeros(len(exact))
    for place, (each, right) in enumerate(zip(result, exact, strict=True)):
        beyond = abs(right) > float(info.max) * (1 + float(info.epsneg) / 2)
        if beyond or not np.isfinite(each):
            found[place] = 0 if beyond and each == math.copysign(INFINITY, right) else INFINITY
            continue
        size = max(abs(float(right)), float(floors[place]) if floors is not None else 0.0)
        step = (
            max(2.0 ** (math.frexp(size)[1] - info.nmant - 1), float(info.smallest_subnormal))
            if size
            else float(info.smallest_subnormal)
        )
        found[place] = float(abs(mp.mpf(float(each)) - right) / step)
    return found


def exactly(name: str, operands: list[np.ndarray]) -> list[Any]:
    return [reference(name)(*map(mp.mpf, map(float, each))) for each in zip(*operands, strict=True)]


def pairs(dtype: Any, least: float) -> list[np.ndarray]:
    """Of which the first is at least so large: of all sizes, of the same size, and powers that are neither zero nor infinite."""
    first, second = (numbers(dtype, bound, INFINITY, 100, seed) for seed, bound in enumerate((least, -INFINITY)))
    second = np.random.default_rng(2).permutation(second)[: len(first)]
    near = second * np.exp2(np.random.default_rng(3).uniform(-3, 0, len(second))).astype(dtype)
    base = np.exp2(np.random.default_rng(4).uniform(-20, 20, 300)).astype(dtype)
    power = (np.random.default_rng(5).uniform(-0.99, 0.99, 300) * np.finfo(dtype).maxexp / np.log2(base)).astype(dtype)
    return [np.concatenate([first, np.abs(near) if least == 0.0 else near, base]), np.concatenate([second, second, power])]


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_digits(name: str, element: E) -> None:
    of_f32, of_f64, least, most = BOUNDS[name]
    dtype = DTYPES[element]
    operands = pairs(dtype, least) if FUNCTIONS[name].arity == 2 else [numbers(dtype, least, most, 250, 0)]
    operands = [np.abs(each) for each in operands] if name == "rel_entr" else operands
    found = errors(computed(name, element, operands), exactly(name, operands))
    worst = int(found.argmax())
    assert found[worst] <= (of_f32 if element is E.F32 else of_f64), [float(each[worst]) for each in operands]


def test_every_function_has_its_bounds() -> None:
    assert set(BOUNDS) | set(ZEROS) == set(NAMES)


@pytest.mark.parametrize("element", FLOATS)
def test_digits_of_what_is_added_to_one(element: E) -> None:
    """In units of 1: half of one is its own, and the distance has an error too."""
    rng, dtype = np.random.default_rng(0), DTYPES[element]
    top = rng.uniform(-50, 50, 3000).astype(dtype)
    x = (top - rng.exponential(3.0, 3000) * rng.choice([1e-6, 1.0, 1.0, 300.0], 3000)).astype(dtype)
    found = errors(computed("exp_below", element, [x, top]), exactly("exp_below", [x, top]), np.ones_like(top))
    assert found.max() <= 0.75
    odd = computed(
        "exp_below", element, [np.array([-INFINITY, INFINITY, math.nan, 7.0], dtype), np.array([3.0, -9.0, 1.0, 7.0], dtype)]
    )
    if element is E.F32:
        (rough,) = evaluate(expanded((FUNCTIONS["exp_below"](*(input_of(place, element) for place in range(2))),), True), [x, top])
        assert errors(rough, exactly("exp_below", [x, top]), np.ones_like(top)).max() <= 2.0**8  # of 2^-23
    assert odd[0] < 1e-37 and odd[1] > 1e37 and np.isnan(odd[2]) and odd[3] == 1.0


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", ZEROS)
def test_digits_of_logarithms_of_sums(name: str, element: E) -> None:
    """To the digits of the larger operand, where that is no more than the sum's."""
    operands = [np.random.default_rng(seed).uniform(-50, 50, 1500).astype(DTYPES[element]) for seed in (0, 1)]
    operands = [np.concatenate([operands[0], operands[0]]), np.concatenate([operands[1], operands[0] + operands[1] / 50])]
    found = errors(computed(name, element, operands), exactly(name, operands), np.maximum(*map(np.abs, operands)))
    assert found.max() <= 1.6


# The F64 that comes closest to a multiple of π/2, the F32 that does, and some that are only large.
FAR = {
    E.F64: [6381956970095103.0 * 2.0**797, 1e22, 2.0**1023, 1.7976931348623157e308, 2.0**20, 2.0**20 - 1e-10, 1e300],
    E.F32: [7.729178919452902e28, 65536.0, 65535.996, 3.4028234663852886e38, 1e10, 2.0**127],
}


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_far_angles(name: str, element: E) -> None:
    operands = [np.array(FAR[element], DTYPES[element])]
    with mp.workprec(1400):
        exact = [getattr(mp, name)(mp.mpf(float(each))) for each in operands[0]]
    assert errors(computed(name, element, operands), exact).max() <= (2.0 if name == "tan" else 1.1)


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_near_right_ones(name: str, element: E) -> None:
    """Where almost nothing is left of the argument."""
    limit, bound = {E.F32: (2**16, 2.6), E.F64: (2**20, 1.6)}[element]
    right = np.random.default_rng(0).integers(1, limit, 1500)
    operands = [(right * (np.pi / 2)).astype(DTYPES[element])]
    assert errors(computed(name, element, operands), exactly(name, operands)).max() <= bound


def test_bits_of_two_over_pi() -> None:
    with mp.workprec(1400):
        assert int(mp.floor(mp.ldexp(2 / mp.pi, 1280))) == trigonometry.TWO_OVER_PI


SPECIAL = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    2.0,
    -2.0,
    2.5,
    3.0,
    -3.0,
    1e5,
    -1e5,
    1e38,
    1e-40,
    -1e-40,
    INFINITY,
    -INFINITY,
    math.nan,
]
OTHERS: dict[str, Callable[..., Any]] = {
    "exp_nonpositive": np.exp, "log1p_nonnegative": np.log1p, "log_normal": np.log, "sigmoid": lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x))),
    "log1pexp": lambda x: np.logaddexp(x, 0), "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "sinc": lambda x: np.where(x == 0, 1, np.sin(np.pi * np.fmod(x, 2)) / (np.pi * x)),
    "log1mexp": lambda x: np.where(x < 0.7, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x))), "rel_entr": special.rel_entr,
}  # fmt: skip


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_special_numbers(name: str, element: E) -> None:
    """As NumPy has them, and the sign of zero too."""
    grid = np.meshgrid(*[np.array(SPECIAL, DTYPES[element])] * FUNCTIONS[name].arity)
    operands = [each.ravel() for each in grid]
    if name == "exp_nonpositive":
        operands = [-np.abs(operands[0])]
    if name == "log1p_nonnegative":
        operands = [np.minimum(np.abs(operands[0]), 2.0**99)]
    if name == "log_normal":
        operands = [np.clip(np.abs(operands[0]), 2.0**-126, 2.0**126)]
    with np.errstate(all="ignore"):
        wanted = (OTHERS.get(name) or getattr(np, name))(*operands).astype(DTYPES[element])
    result = computed(name, element, operands)
    eps = float(np.finfo(DTYPES[element]).eps)
    small = 100 * eps if name in ("sinpi", "cospi", "sinc") else 0.0  # NumPy's sines are not exactly zero there
    np.testing.assert_allclose(result, wanted, rtol=(8 if name in ZEROS else 4) * eps, atol=small)
    if not small:
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(wanted[zeros]))


# Where each derivative is looked at.
INSIDE = {
    "exp": (-80, 80), "exp_nonpositive": (-80, 0), "log1p_nonnegative": (0, 50), "expm1": (-80, 80), "exp2": (-120, 120), "log": (0.01, 50), "log2": (0.01, 50), "log_normal": (0.01, 50),
    "log10": (0.01, 50), "log1p": (-0.99, 50), "sigmoid": (-80, 80), "log1pexp": (-80, 80), "rsqrt": (0.01, 50), "pow": (0.01, 20),
    "log1mexp": (0.01, 50), "rel_entr": (0.01, 50),
    "asin": (-0.999, 0.999), "acos": (-0.999, 0.999), "acosh": (1.001, 50), "atanh": (-0.999, 0.999), "tanh": (-40, 40),
    "sinh": (-80, 80), "cosh": (-80, 80), "sinc": (-6, 6), "sinpi": (-6, 6), "cospi": (-6, 6),
}  # fmt: skip


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str, element: E) -> None:
    """To 8 units in the last place, of a slope of 0.01 at the least where slopes come down to zero or digits of operands are lost."""
    function, (least, most) = FUNCTIONS[name], INSIDE.get(name, (-20, 20))
    inputs = [input_of(place, element) for place in range(function.arity)]
    found = gradients(function(*inputs), inputs, constant(1.0, element))
    rng = np.random.default_rng(0)
    operands = [rng.uniform(least, most, 60).astype(DTYPES[element]) for _ in inputs]
    operands[0][:20] /= 16 if least < 0 and name != "log1p" else 1  # near zero
    floor = np.full(60, 0.01 if name in ("sin", "cos", "sinpi", "cospi", "sinc", "pow", "atan2", "hypot", *ZEROS) else 0.0)
    floor = np.ones(60) if name == "rel_entr" else floor  # of which one is a logarithm and 1
    for place, result in enumerate(evaluate(expanded(found), operands)):
        order = tuple(int(each == place) for each in range(function.arity))
        points = [tuple(map(float, each)) for each in zip(*operands, strict=True)]
        exact = [
            mp.diff(reference(name), point if len(point) > 1 else point[0], order if len(point) > 1 else 1) for point in points
        ]
        error = errors(result, exact, floor)
        assert error.max() <= 8, points[int(error.argmax())]


def test_derivatives_at_the_edges() -> None:
    """Where a formula would give NaN, as limits are taken: of equal infinities, of the origin, of powers of zero."""
    x, y = (input_of(place, E.F64) for place in range(2))
    one, zero, inf = (np.array([each]) for each in (1.0, 0.0, INFINITY))

    def slopes(name: str, a: np.ndarray, b: np.ndarray) -> list[float]:
        found = gradients(FUNCTIONS[name](x, y), [x, y], constant(1.0, E.F64))
        return [float(each[0]) for each in evaluate(expanded(found), [a, b])]

    assert slopes("logaddexp", -inf, -inf) == slopes("logaddexp2", inf, inf) == [0.5, 0.5]
    assert slopes("atan2", zero, zero) == [0.0, 0.0]
    assert slopes("pow", zero, one) == [1.0, 0.0]
    assert slopes("pow", zero, zero) == [0.0, 0.0]


@pytest.mark.parametrize("element", FLOATS)
def test_evaluated_fma_is_rounded_once(element: E) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(1000).astype(DTYPES[element]) for _ in range(2))
    c = (-(a * b) * (1 + rng.standard_normal(1000) * 10.0 ** rng.integers(-20, 5, 1000))).astype(DTYPES[element])
    (result,) = evaluate([fma(*(input_of(place, element) for place in range(3)))], [a, b, c])
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(result, np.array([float(each) for each in exact]).astype(DTYPES[element]))


def test_evaluated_integers() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**63), 2**63 - 1, 500) for _ in range(2))
    a[:4], b[:4] = [-(2**63), -(2**63), 2**63 - 1, -1], [-(2**63), 2**63 - 1, 2**63 - 1, 7]
    x, y = (input_of(place, E.I64) for place in range(2))
    high, whole, rest, zeros, shifted = evaluate(
        [mul_high(x, y), quotient(x, y), remainder(x, y), clz(x), shr_logical(x, 3)], [a, b]
    )
    for place, (first, second) in enumerate(zip(map(int, a), map(int, b), strict=True)):
        towards_zero = math.trunc(Fraction(first, second))
        bits = first % 2**64
        assert high[place] == first * second >> 64
        assert (whole[place], rest[place]) == (towards_zero, first - second * towards_zero)
        assert (zeros[place], shifted[place]) == (64 - bits.bit_length(), bits >> 3)


def test_evaluated_parameters_are_shaped_like_the_inputs() -> None:
    x = input_of(0, E.F32)
    first, second = evaluate(
        [x * convert(parameter_of(0), E.F32), constant(2.0, E.F64) + 1.0], [np.ones((2, 3), np.float32)], [0.1]
    )
    assert (first.shape, first.dtype, second.shape, second.dtype) == ((2, 3), np.float32, (2, 3), np.float64)
    assert (first == np.float32(0.1)).all()
    assert (second == 3.0).all()


PARAMETERS = {"squareplus": (3.0,), "softplus": (1.5, 20.0), "logit": (0.125,)}  # what is the same for all


@pytest.mark.parametrize("name", [name for name in ROUGH if name != "exp_below"])
@pytest.mark.parametrize("element", [E.F16, E.BF16])
def test_what_halves_are_computed_with(name: str, element: E, rng: np.random.Generator) -> None:
    """Off by a few 2^-16 of the result, or by less than halves have numbers for, in f32; NaN and infinities are where they belong."""
    function = FUNCTIONS[name]
    operands = [every_half(element) if place == 0 else rng.permutation(every_half(element)) for place in range(function.arity)]
    if name == "exp_nonpositive":
        operands = [np.where(operands[0] > 0, -operands[0], operands[0])]
    if name == "log1p_nonnegative":
        operands = [np.minimum(np.abs(operands[0]), 2.0**99)]
    if name == "log_normal":
        operands = [np.clip(np.abs(operands[0]), 2.0**-126, 2.0**126)]
    for place, parameter in enumerate(PARAMETERS.get(name, ()), start=1):
        operands[place] = np.full_like(operands[0], parameter)

    def found(kind: E, rough: bool) -> Any:
        expression = function(*(input_of(place, kind) for place in range(function.arity)))
        with np.errstate(invalid="ignore"):  # NaN of all kinds are among the operands
            (result,) = evaluate(expanded((expression,), rough), [operand.astype(DTYPES[kind]) for operand in operands])
            return result.astype(np.float64)

    result, exact = found(E.F32, True), found(E.F64, False)
    assert np.array_equal(np.isnan(result), np.isnan(exact))
    largest = 65504.0 if element is E.F16 else 3.4e38
    ends = np.abs(exact) > largest
    assert (np.abs(result[ends]) >= largest).all()
    with np.errstate(invalid="ignore"):
        error, least = np.abs(result - exact), 2.0**-24 if element is E.F16 else 2.0**-133
        allowed = np.maximum(np.abs(exact) * 2.0**-14.5, least / 16)
        if name.startswith("logaddexp") or name == "rel_entr_slope":  # sums of another number and one up to 1, which may cancel
            allowed = np.maximum(allowed, 2.0**-21)
        if name == "lgamma":  # near its zeros
            allowed = np.maximum(np.abs(exact) * 2.0**-14, least / 3)
        assert (error <= allowed)[~ends & ~np.isnan(exact)].all()
