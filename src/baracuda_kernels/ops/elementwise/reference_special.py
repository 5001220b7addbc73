"""What special functions and their derivatives are, in float64: SciPy's, and expansions of our own where those lose their digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import cos, exp, log, pi, sin, sqrt, where
from scipy import special

__all__ = ["PAIRS", "PAIR_SLOPES", "SLOPES", "VALUES"]

Function = Callable[..., Any]
FAR, TERMS = 25.0, 30  # from where Hankel's expansion is right to the last digit, and of how many terms


def _hankel(order: int, x: Any) -> tuple[Any, Any]:
    """The functions of both kinds from FAR on. Phases are taken from the sine and the cosine of x, however large it is."""
    x = where(numpy.isfinite(x), numpy.maximum(numpy.abs(x), FAR), numpy.nan)
    terms = [numpy.ones_like(x)]
    for k in range(1, TERMS):
        terms.append(terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k) / x)
    in_phase, behind = (sum((-1) ** place * each for place, each in enumerate(terms[first::2])) for first in (0, 1))
    lag = (2 * order + 1) * pi / 4
    cosine, sine = cos(x) * cos(lag) + sin(x) * sin(lag), sin(x) * cos(lag) - cos(x) * sin(lag)
    scale = sqrt(2 / pi / x)
    return scale * (in_phase * cosine - behind * sine), scale * (in_phase * sine + behind * cosine)


def _first_kind(order: int, near: Function) -> Function:
    return lambda x: where(numpy.abs(x) < FAR, near(x), where((x < 0) & (order == 1), -1, 1) * _hankel(order, x)[0])


def _second_kind(order: int, near: Function) -> Function:
    return lambda x: where(x < FAR, near(x), _hankel(order, x)[1])


J0, J1 = _first_kind(0, special.j0), _first_kind(1, special.j1)
Y0, Y1 = _second_kind(0, special.y0), _second_kind(1, special.y1)


def _airy(x: Any) -> Any:
    """To the left by the asymptotic expansion with a phase in long double; SciPy has none left of -2^20 either."""
    a = numpy.clip(-x, 15.0, 2.0**20).astype(numpy.longdouble)
    phase = a * numpy.sqrt(a) * 2 / 3
    terms = [numpy.ones_like(phase)]
    for k in range(1, 20):
        terms.append(terms[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)) / phase)
    in_phase, behind = (sum((-1) ** place * each for place, each in enumerate(terms[first::2])) for first in (0, 1))
    quarter = numpy.longdouble(0.5) ** 0.5  # the sine and the cosine of a quarter turn less
    sine, cosine = numpy.sin(phase), numpy.cos(phase)
    wave = quarter * (in_phase * (cosine + sine) + behind * (sine - cosine)) / (numpy.sqrt(numpy.pi) * numpy.sqrt(numpy.sqrt(a)))
    middle = special.airy(numpy.clip(x, -15.0, 110.0))[0]
    return where(
        numpy.isnan(x) | (x < -(2.0**20)), numpy.nan, where(x < -15, wave.astype(numpy.float64), where(x > 110, 0.0, middle))
    )


def _scaled_k1_less_k0(x: Any) -> Any:
    return special.k1e(x) - special.k0e(x)


def _factorial(x: Any) -> Any:
    return where(x < 0, 0.0, special.gamma(x + 1))


VALUES: dict[str, Function] = {
    "cube": lambda x: x * x * x,
    "sparse_plus": lambda x: where(x <= -1, 0.0, where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: numpy.clip(x / 2 + 0.5, 0, 1),
    "gammasgn": special.gammasgn, "factorial": _factorial,
    "bessel_j0": J0, "bessel_j1": J1, "bessel_y0": Y0, "bessel_y1": Y1,
    "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e, "scaled_modified_bessel_k1": special.k1e,
    "spherical_bessel_j0": lambda x: where(x == 0, 1.0, where(numpy.isinf(x), 0.0, sin(x) / x)), "airy_ai": _airy,
    "dawsn": special.dawsn, "exp1": special.exp1, "expi": special.expi, "spence": special.spence,
}  # fmt: skip
SLOPES: dict[str, Function] = {
    "cube": lambda x: 3 * x * x,
    "sparse_plus": lambda x: numpy.clip((x + 1) / 2, 0, 1), "sparse_sigmoid": lambda x: where(numpy.abs(x) < 1, 0.5, 0.0),
    "factorial": lambda x: where(x < 0, 0.0, special.gamma(x + 1) * special.digamma(x + 1)),
    "bessel_j0": lambda x: -special.j1(x), "bessel_j1": lambda x: (special.j0(x) - special.jn(2, x)) / 2,
    "bessel_y0": lambda x: -special.y1(x), "bessel_y1": lambda x: (special.y0(x) - special.yn(2, x)) / 2,
    "modified_bessel_k0": lambda x: -special.k1(x), "modified_bessel_k1": lambda x: -(special.k0(x) + special.kn(2, x)) / 2,
    "scaled_modified_bessel_k0": lambda x: -_scaled_k1_less_k0(x),
    "scaled_modified_bessel_k1": lambda x: _scaled_k1_less_k0(x) - special.k1e(x) / x,
    "spherical_bessel_j0": lambda x: -special.spherical_jn(1, x), "airy_ai": lambda x: special.airy(x)[1],
    "dawsn": lambda x: 1 - 2 * x * special.dawsn(x), "exp1": lambda x: -exp(-x) / x, "expi": lambda x: exp(x) / x,
    "spence": lambda x: where(x == 1, -1.0, log(x) / (1 - x)),
}  # fmt: skip
# With two results.
PAIRS: dict[str, Function] = {"modf": numpy.modf, "fresnel": special.fresnel, "sici": special.sici}
PAIR_SLOPES: dict[str, Function] = {
    "fresnel": lambda x: (sin(pi * x * x / 2), cos(pi * x * x / 2)), "sici": lambda x: (numpy.sinc(x / pi), cos(x) / x),
}  # fmt: skip
