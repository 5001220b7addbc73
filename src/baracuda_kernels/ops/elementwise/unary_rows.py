"""Ops of one operand, but for activations."""

from __future__ import annotations

import math
from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.bessel import i0, i0e, i1, i1e
from baracuda_kernels.formula.functions.elementary import (
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log1p_nonnegative,
    log1p_roughly,
    log2,
    log10,
)
from baracuda_kernels.formula.functions.gamma import digamma, gamma, lgamma, polygamma
from baracuda_kernels.formula.functions.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from baracuda_kernels.formula.functions.log_sums import log1mexp
from baracuda_kernels.formula.functions.normal import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from baracuda_kernels.formula.functions.pieces import ratio
from baracuda_kernels.formula.functions.powers import cbrt, pow, rsqrt
from baracuda_kernels.formula.functions.trigonometry import acos, asin, atan, cos, sin, sinc, tan
from baracuda_kernels.formula.operations import (
    absolute,
    ceil,
    clz,
    eq,
    floor,
    fma,
    is_nan,
    popcount,
    rarely,
    reciprocal,
    rint,
    sqrt,
    trunc,
    where,
)
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY, NAN, flat, is_negative, power_of_integers, truth
from baracuda_kernels.ops.elementwise.formats import mantissa_and_exponent, mantissa_gradient, nan_to_num, reduce_precision, reduced
from baracuda_kernels.ops.elementwise.rows import ALL, BOOLS, INTEGERS, NUMBERS, Choice, ElementwiseRow, Parameter

__all__ = ["ROWS"]

BOOL, F32 = ElementKind.BOOL, ElementKind.F32


def _sign(x: Expr) -> Expr:
    if x.element is BOOL:
        return x
    zero = constant(0, x.element)
    return where(x > 0, 1, zero if x.element is ElementKind.U8 else where(x < 0, -1, where(is_nan(x), x, zero)))


def _of_floats(rounding: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Integers are round as they are."""
    return lambda x: rounding(x) if x.element.is_float else x


def _round_decimals(x: Expr, decimals: Expr) -> Expr:
    """What has no digits to lose stays as it is, though a power of ten would make it infinite."""
    rest, power = absolute(decimals), constant(1, x.element)
    for bit in (256, 128, 64, 32, 16, 8, 4, 2, 1) if x.element is ElementKind.F64 else (32, 16, 8, 4, 2, 1):
        takes = rest >= bit
        power, rest = where(takes, power * 10.0**bit, power), where(takes, rest - bit, rest)
    scaled, whole = x * power, rint(x / power)
    after = where(absolute(scaled) < math.inf, rint(scaled) / power, x)
    return where(decimals < 0, where(eq(whole, 0), whole, whole * power), after)


def _test(of_float: Callable[[Expr], Expr], otherwise: bool = False) -> Callable[[Expr], Expr]:
    """A property that only floats can have, or lack."""
    return lambda x: of_float(x) if x.element.is_float else constant(otherwise, BOOL)


def _logit_gradient(d: Expr, y: Expr, x: Expr, eps: Expr) -> tuple[Expr, None]:
    return where((x < eps) | (x > 1 - eps), 0, d * logit_slope(x)), None


@function(lambda d, y, x: d * ((x + x - 1) * (y * y)))
def logit_slope(x: Expr) -> Expr:
    return where((x < 0) | (x > 1), NAN, 1 / (x * (1 - x)))


@logit_slope.roughly
def _logit_slope_roughly(x: Expr) -> Expr:
    """Of what is small the reciprocal is taken after it is scaled, as no number is subnormal then."""
    return where((x < 0) | (x > 1), NAN, fma(reciprocal(x * 2.0**8), 2.0**8, reciprocal(1 - x)))


@function(_logit_gradient)
def logit(x: Expr, eps: Expr) -> Expr:
    """log(x / (1 - x)) is log(1 + t) of the lesser one of x and 1 - x, but for its sign: nothing is lost in the rounding of t."""
    z = _within(x, eps)
    left = z < 0.5
    least = where(left, z, 1 - z)
    usual = log1p_nonnegative(ratio(fma(least, -2.0, 1.0), least))
    return rarely(~(least > 2.0**-99), log(z) - log1p(-z), where(left, -usual, usual))


@logit.roughly
def _logit_roughly(x: Expr, eps: Expr) -> Expr:
    """Both sides of the fraction are scaled, or that below would be too large for a reciprocal where x is no probability."""
    z, scale = _within(x, eps), 2.0**-8
    inverse = reciprocal(fma(z, -scale, scale))
    return log1p_roughly(fma(z, 2 * scale, -scale) * inverse, z * scale * inverse)


def _within(x: Expr, eps: Expr) -> Expr:
    return where(x < eps, eps, where(x > 1 - eps, 1 - eps, x))  # as it is if eps is NaN


@function(lambda d, y, x: d * (-1 - log(x)))
def entr(x: Expr) -> Expr:
    return where(eq(x, 0), 0, where(x < 0, -INFINITY, -x * log(x)))


def _constant_power_gradient(d: Expr, y: Expr, x: Expr, exponent: Expr) -> tuple[Expr, None]:
    return where(eq(exponent, 0), 0, d * (exponent * constant_power(x, exponent - 1))), None


@function(_constant_power_gradient)
def constant_power(x: Expr, exponent: Expr) -> Expr:
    """To a power that is the same for all elements: the first few, which are products, then cost no more than these."""
    square, is_one, is_two, is_three, is_four = x * x, *(eq(exponent, power) for power in (1, 2, 3, 4))
    first = where(is_two | is_three | is_four, square, 1)
    second = where(is_one | is_three, x, where(is_four, square, 1))
    is_other = ~(eq(exponent, 0) | is_one | is_two | is_three | is_four)
    return rarely(is_other, pow(x, exponent), first * second)


def _integer_pow(x: Expr, exponent: Expr) -> Expr:
    return constant_power(x, exponent) if x.element.is_float else power_of_integers(x, exponent)


POSITIVE, LARGE = ((0.05, 20.0),), ((-20.0, 20.0),)
ARITHMETIC = (
    ElementwiseRow("neg", lambda x: -x, "-x.", NUMBERS),
    ElementwiseRow("positive", lambda x: x, "x itself.", ALL),
    ElementwiseRow("conj", lambda x: x, "The complex conjugate; of real numbers, x itself.", NUMBERS),
    ElementwiseRow("real", lambda x: x, "The real part; of real numbers, x itself.", NUMBERS),
    ElementwiseRow("imag", lambda x: constant(0, x.element), "The imaginary part; of real numbers 0 (PyTorch raises).", NUMBERS),
    ElementwiseRow("angle", lambda x: where(x < 0, math.pi, where(is_nan(x), x, 0)),
        "pi where x is negative, else 0; of -0.0 it is 0, as in PyTorch (pi in NumPy).", gradient=flat),
    ElementwiseRow("abs", absolute, "The absolute value; the lowest integer stays as it is.", NUMBERS),
    ElementwiseRow("sign", _sign, "1, 0 or -1; NaN at NaN, as in NumPy and JAX (0 in PyTorch).", ALL, gradient=flat),
    ElementwiseRow("sgn", _sign, "x / |x|; of real numbers, the sign.", ALL, gradient=flat),
    ElementwiseRow("reciprocal", lambda x: 1 / x, "1 / x.", domain=((0.1, 10.0),)),
    ElementwiseRow("square", lambda x: x * x, "x²; integers wrap around.", NUMBERS),
    ElementwiseRow("sqrt", sqrt, "The square root, correctly rounded.", domain=POSITIVE),
    ElementwiseRow("rsqrt", rsqrt, "1 / sqrt(x).", domain=POSITIVE),
    ElementwiseRow("cbrt", cbrt, "The cube root.", domain=LARGE),
    ElementwiseRow("integer_pow", _integer_pow, "x to an integer power; negative powers of integers are 0, except of 1 and -1.", NUMBERS,
        parameters=(Parameter("exponent", 2, "an integer"),)),
    ElementwiseRow("deg2rad", lambda x: x * (math.pi / 180), "From degrees to radians.", domain=((-360.0, 360.0),)),
    ElementwiseRow("rad2deg", lambda x: x * (180 / math.pi), "From radians to degrees."),
    ElementwiseRow("floor", _of_floats(floor), "Rounded down to an integer.", NUMBERS),
    ElementwiseRow("ceil", _of_floats(ceil), "Rounded up to an integer.", NUMBERS),
    ElementwiseRow("round", _of_floats(rint), "The nearest integer, ties to even; with decimals, round_decimals.", NUMBERS,
        choice=Choice("decimals", {0: "round"}, otherwise="round_decimals")),
    ElementwiseRow("round_decimals", _round_decimals, "The nearest number with that many decimals, ties to even; negative ones round to powers of ten.",
        wide=True, gradient=lambda d, x, decimals: flat(d, x), parameters=(Parameter("decimals", 2, "an integer"),)),
    ElementwiseRow("trunc", _of_floats(trunc), "Rounded towards zero to an integer.", NUMBERS),
    ElementwiseRow("frac", lambda x: x - trunc(x), "The fractional part, x - trunc(x), with the sign of x."),
    ElementwiseRow("mantissa", lambda x: mantissa_and_exponent(x)[0], "The mantissa of `frexp`, from 0.5 to 1 with the sign of x.",
        gradient=mantissa_gradient),
    ElementwiseRow("nan_to_num", nan_to_num(F32), "NaN and infinities replaced by finite numbers.", NUMBERS, by_element=nan_to_num,
        parameters=(Parameter("nan", 0.0), Parameter("posinf", NAN, "NaN: the largest number of the element"),
                    Parameter("neginf", NAN, "NaN: the lowest number of the element"))),
    ElementwiseRow("reduce_precision", reduce_precision(F32), "Rounded to fewer exponent and fraction bits; numbers too small for them become 0.",
        parameters=(Parameter("exponent_bits", 8, "at least 1"), Parameter("mantissa_bits", 7)), domain=LARGE,
        by_element=reduce_precision, gradient=lambda d, x, *bits: reduced(d, *bits)),
)  # fmt: skip
PROPERTIES = tuple(
    ElementwiseRow(name, formula, says, elements, BOOL, differentiable=False)
    for name, formula, says, elements in (
        ("isnan", _test(is_nan), "Whether it is NaN.", ALL),
        ("isinf", _test(lambda x: eq(absolute(x), INFINITY)), "Whether it is infinite.", ALL),
        ("isfinite", _test(lambda x: absolute(x) < INFINITY, True), "Whether it is neither infinite nor NaN.", ALL),
        ("isneginf", _test(lambda x: eq(x, -INFINITY)), "Whether it is minus infinity.", ALL),
        ("isposinf", _test(lambda x: eq(x, INFINITY)), "Whether it is plus infinity.", ALL),
        ("isreal", lambda x: constant(True, BOOL), "Whether the imaginary part is 0; true for real numbers.", ALL),
        ("iscomplex", lambda x: constant(False, BOOL), "Whether the imaginary part is not 0; false for real numbers.", ALL),
        ("signbit", is_negative, "Whether the sign bit is set, also of -0.0 and NaN.", NUMBERS),
        ("logical_not", lambda x: ~truth(x), "Logical NOT: whether x is zero.", ALL),
    )
)
BITWISE = tuple(
    ElementwiseRow(name, formula, says, elements, differentiable=False)
    for name, formula, says, elements in (
        ("bitwise_not", lambda x: ~x, "Bitwise NOT: every bit inverted.", (*INTEGERS, *BOOLS)),
        ("population_count", popcount, "The number of bits that are set; negative numbers are in two's complement.", INTEGERS),
        ("clz", clz, "The number of leading zero bits.", INTEGERS),
    )
)
FUNCTIONS = (
    ElementwiseRow("exp", exp, "e to the power of x.", domain=LARGE),
    ElementwiseRow("exp2", exp2, "2 to the power of x.", domain=LARGE),
    ElementwiseRow("expm1", expm1, "exp(x) - 1, accurate around 0."),
    ElementwiseRow("log", log, "The natural logarithm.", domain=POSITIVE),
    ElementwiseRow("log2", log2, "The logarithm to base 2.", domain=POSITIVE),
    ElementwiseRow("log10", log10, "The logarithm to base 10.", domain=POSITIVE),
    ElementwiseRow("log1p", log1p, "log(1 + x), accurate around 0.", domain=((-0.9, 20.0),)),
    ElementwiseRow("log1mexp", log1mexp, "log(1 - exp(-x)).", domain=((0.05, 10.0),)),
    ElementwiseRow("logit", logit, "log(x / (1 - x)).", parameters=(Parameter("eps", NAN, "x is kept within [eps, 1 - eps]; NaN: as it is"),),
        domain=((0.02, 0.98),)),
    ElementwiseRow("entr", entr, "-x log(x); 0 at 0, -inf where x is negative.", domain=((0.02, 4.0),)),
    ElementwiseRow("sin", sin, "The sine.", domain=LARGE),
    ElementwiseRow("cos", cos, "The cosine.", domain=LARGE),
    ElementwiseRow("tan", tan, "The tangent.", domain=((-1.4, 1.4),)),
    ElementwiseRow("asin", asin, "The inverse sine.", domain=((-0.99, 0.99),)),
    ElementwiseRow("acos", acos, "The inverse cosine.", domain=((-0.99, 0.99),)),
    ElementwiseRow("atan", atan, "The inverse tangent."),
    ElementwiseRow("sinh", sinh, "The hyperbolic sine."),
    ElementwiseRow("cosh", cosh, "The hyperbolic cosine."),
    ElementwiseRow("tanh", tanh, "The hyperbolic tangent."),
    ElementwiseRow("asinh", asinh, "The inverse of sinh.", domain=LARGE),
    ElementwiseRow("acosh", acosh, "The inverse of cosh.", domain=((1.05, 20.0),)),
    ElementwiseRow("atanh", atanh, "The inverse of tanh.", domain=((-0.95, 0.95),)),
    ElementwiseRow("sinc", sinc, "sin(pi x) / (pi x), 1 at 0.", domain=((-0.9, 0.9),)),
)  # fmt: skip
SPECIAL = (
    ElementwiseRow("erf", erf, "The error function."),
    ElementwiseRow("erfc", erfc, "1 - erf(x), accurate where that is small."),
    ElementwiseRow("erfcx", erfcx, "exp(x x) erfc(x)."),
    ElementwiseRow("erfinv", erfinv, "The inverse of erf.", domain=((-0.98, 0.98),)),
    ElementwiseRow("ndtr", ndtr, "The normal distribution function."),
    ElementwiseRow("ndtri", ndtri, "The inverse of ndtr.", domain=((0.01, 0.45),)),
    ElementwiseRow("log_ndtr", log_ndtr, "The logarithm of ndtr."),
    ElementwiseRow("lgamma", lgamma, "The logarithm of |gamma(x)|.", domain=((2.5, 30.0),)),
    ElementwiseRow("gamma", gamma, "The gamma function.", domain=((0.1, 8.0),)),
    ElementwiseRow("digamma", digamma, "The derivative of log(gamma(x)).", domain=((2.0, 30.0),)),
    ElementwiseRow("polygamma", lambda x, n: polygamma(n, x), "The n-th derivative of digamma.", domain=((0.5, 10.0),),
        parameters=(Parameter("n", 1, "an integer, 0 or more"),)),
    ElementwiseRow("i0", i0, "The modified Bessel function of order 0."),
    ElementwiseRow("i0e", i0e, "exp(-|x|) i0(x).", domain=LARGE),
    ElementwiseRow("i1", i1, "The modified Bessel function of order 1."),
    ElementwiseRow("i1e", i1e, "exp(-|x|) i1(x).", domain=LARGE),
)  # fmt: skip
ROWS = (*ARITHMETIC, *PROPERTIES, *BITWISE, *FUNCTIONS, *SPECIAL)
