"""Ops of two operands."""

from __future__ import annotations

from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.elementary import between, exp_series, log, log1p
from baracuda_kernels.formula.functions.gamma import zeta
from baracuda_kernels.formula.functions.incomplete import beta, betaln, igamma, igammac
from baracuda_kernels.formula.functions.log_sums import logaddexp, logaddexp2, rel_entr
from baracuda_kernels.formula.functions.pieces import LN2, by_element, nearest, power_of_two
from baracuda_kernels.formula.functions.powers import hypot, pow
from baracuda_kernels.formula.functions.trigonometry import atan2
from baracuda_kernels.formula.operations import (
    absolute,
    convert,
    eq,
    exp2_roughly,
    fma,
    is_nan,
    mul_high,
    ne,
    shr_logical,
    where,
)
from baracuda_kernels.ops.elementwise.arithmetic import (
    INFINITY,
    flat,
    floor_quotient,
    floor_remainder,
    greatest_divisor,
    larger,
    least_multiple,
    power_of_integers,
    smaller,
    truncated_quotient,
    truncated_remainder,
    truth,
    wide_gradient,
    with_sign_of,
)
from baracuda_kernels.ops.elementwise.formats import next_after
from baracuda_kernels.ops.elementwise.rows import ALL, BOOLS, INTEGERS, NUMBERS, Choice, ElementwiseRow, Parameter

__all__ = ["ROWS"]

BOOL, F64 = ElementKind.BOOL, ElementKind.F64


def _plus(x: Expr, y: Expr, factor: Expr) -> Expr:
    """x + factor y; floats are rounded once."""
    return fma(factor, y, x) if x.element.is_float else x + factor * y


def _add(x: Expr, y: Expr, alpha: Expr) -> Expr:
    return x | (y & alpha) if x.element is BOOL else _plus(x, y, alpha)


def _chosen(of_truths: Callable[[Expr, Expr], Expr], of_numbers: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    return lambda x, y: (of_truths if x.element is BOOL else of_numbers)(x, y)


def _ordered(compared: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """Truths are compared as 0 and 1."""
    return lambda x, y: compared(*(convert(each, ElementKind.U8) if each.element is BOOL else each for each in (x, y)))


def _shared(d: Expr, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """The gradients of the larger and of the smaller operand; of equal ones a half each, as in PyTorch."""
    half = where(eq(x, y), 0.5 * d, d)
    return where(x < y, 0, half), where(x > y, 0, half)


def _shift(shifted: Callable[[Expr, Expr], Expr], beyond: Callable[[Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """The count of bits may be anything: from the width on, and if it is negative, as in PyTorch, all bits are gone."""

    def formula(x: Expr, y: Expr) -> Expr:
        return where((y < 0) | (y >= 8 * x.element.size), beyond(x), shifted(x, y))

    return formula


def _sign_alone(x: Expr) -> Expr:
    return _none(x) if x.element is ElementKind.U8 else x >> (8 * x.element.size - 1)


def _none(x: Expr) -> Expr:
    return constant(0, x.element)


def _pow(x: Expr, exponent: Expr) -> Expr:
    return pow(x, exponent) if x.element.is_float else power_of_integers(x, exponent)


def _float_power(x: Expr, y: Expr) -> Expr:
    return pow(convert(x, F64), convert(y, F64))


def _ldexp_gradient(d: Expr, r: Expr, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return ldexp(d, y), d * r * LN2[0]


@function(_ldexp_gradient)
def ldexp(x: Expr, y: Expr) -> Expr:
    """In steps, as 2^y may overflow where the product does not: a part near 1, and a power of two in four factors."""
    most = by_element(x, 280.0, 2200.0)
    bounded = between(y, -most, most)
    k, n = nearest(bounded, 1.0)
    _, quarter = nearest(k, 0.25)  # no factor leads back where another has lost digits
    step = power_of_two(quarter, x)
    near = absolute(y) < by_element(x, 1024.0, 2200.0)  # else 2^y is infinite or 0, whatever it is multiplied by
    part = where(near, exp_series((bounded - k) * LN2[0]), where(y > 0, INFINITY, where(y < 0, 0.0, y)))
    return x * step * step * part * step * power_of_two(n - 3 * quarter, x)


@ldexp.roughly
def _ldexp_roughly(x: Expr, y: Expr) -> Expr:
    """In steps, as 2^y may overflow where the product does not."""
    step = exp2_roughly(y * 0.25)
    return x * step * step * step * step


@function(lambda d, r, x, y: (where(eq(x, 0) & (y <= 0), 0, d * log(y)), d * x / y))
def xlogy(x: Expr, y: Expr) -> Expr:
    return where(eq(x, 0) & ~is_nan(y), 0, x * log(y))


@function(lambda d, r, x, y: (where(eq(x, 0) & (y <= -1), 0, d * log1p(y)), d * x / (1 + y)))
def xlog1py(x: Expr, y: Expr) -> Expr:
    return where(eq(x, 0) & ~is_nan(y), 0, x * log1p(y))


def _isclose(x: Expr, y: Expr, rtol: Expr, atol: Expr, equal_nan: Expr) -> Expr:
    apart = absolute(x - y)
    near = (apart < INFINITY) & (apart <= atol + absolute(rtol * y))
    return eq(x, y) | near | (is_nan(x) & is_nan(y) & ne(equal_nan, 0))


ALPHA = (Parameter("alpha", 1.0),)
POSITIVE, BITS = ((0.1, 10.0),), (*INTEGERS, *BOOLS)
APART = ((-20.0, 20.0), (0.5, 4.0))  # of a dividend and a divisor
ARITHMETIC = (
    ElementwiseRow("add", _add, "x + alpha y; of booleans, logical OR.", ALL, parameters=ALPHA),
    ElementwiseRow("sub", lambda x, y, alpha: _plus(x, y, -alpha), "x - alpha y.", NUMBERS, parameters=ALPHA),
    ElementwiseRow("rsub", lambda x, y, alpha: _plus(y, x, -alpha), "y - alpha x.", NUMBERS, parameters=ALPHA),
    ElementwiseRow("mul", _chosen(lambda x, y: x & y, lambda x, y: x * y), "x y; of booleans, logical AND.", ALL),
    ElementwiseRow("div", lambda x, y: x / y,
        "x / y, for floats only; with rounding_mode, trunc_divide or floor_divide.", domain=APART,
        choice=Choice("rounding_mode", {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"})),
    ElementwiseRow("floor_divide", floor_quotient,
        "x / y rounded down; integers divided by 0 give 0 (PyTorch raises).", NUMBERS, domain=APART, gradient=flat),
    ElementwiseRow("trunc_divide", truncated_quotient,
        "x / y rounded towards 0; integers divided by 0 give 0 (PyTorch raises).", NUMBERS, domain=APART, gradient=flat),
    ElementwiseRow("remainder", floor_remainder,
        "The remainder of floor_divide, with the sign of y; integers by 0 give 0 (PyTorch raises).", NUMBERS, domain=APART),
    ElementwiseRow("fmod", truncated_remainder,
        "The remainder of trunc_divide, with the sign of x; integers by 0 give 0 (PyTorch raises).", NUMBERS,
        domain=APART),
    ElementwiseRow("mulhi", mul_high, "The upper half of the product of two integers.", INTEGERS, differentiable=False),
    ElementwiseRow("gcd", greatest_divisor, "The greatest common divisor.", INTEGERS, domain=((-100.0, 100.0),), differentiable=False),
    ElementwiseRow("lcm", least_multiple, "The least common multiple.", INTEGERS, domain=((-12.0, 12.0),), differentiable=False),
    ElementwiseRow("maximum", _chosen(lambda x, y: x | y, larger), "The larger one; NaN if one of them is.", ALL, gradient=_shared),
    ElementwiseRow("minimum", _chosen(lambda x, y: x & y, smaller), "The smaller one; NaN if one of them is.", ALL,
        gradient=lambda d, x, y: _shared(d, x, y)[::-1]),
    ElementwiseRow("fmax", lambda x, y: where((x >= y) | is_nan(y), x, y), "The larger one; NaN only if both are.", NUMBERS),
    ElementwiseRow("fmin", lambda x, y: where((x <= y) | is_nan(y), x, y), "The smaller one; NaN only if both are.", NUMBERS),
    ElementwiseRow("copysign", with_sign_of, "x with the sign of y."),
    ElementwiseRow("heaviside", lambda x, y: where(eq(x, 0), y, where(x > 0, constant(1, x.element), 0)),
        "0 where x is negative, 1 where it is positive, y at 0; 0 at NaN (NaN in NumPy).", NUMBERS, differentiable=False,
        operands=("input", "values")),
    ElementwiseRow("nextafter", next_after(ElementKind.F32), "The next number of the dtype from x towards y.", by_element=next_after,
        gradient=lambda d, x, y: (where(eq(x, y), 0, d), _none(d))),
    ElementwiseRow("prelu", lambda x, weight: where(x > 0, x, weight * x), "x, times the weight where it is negative; weights of rank 1 are those of channels, along axis 1.",
        operands=("input", "weight"), by_channel=True),
)  # fmt: skip
COMPARISONS = tuple(
    ElementwiseRow(name, formula, says, ALL, BOOL, differentiable=False)
    for name, formula, says in (
        ("eq", eq, "x = y."),
        ("ne", ne, "x != y; NaN differs from itself."),
        ("gt", _ordered(lambda x, y: x > y), "x > y."),
        ("ge", _ordered(lambda x, y: x >= y), "x >= y."),
        ("lt", _ordered(lambda x, y: x < y), "x < y."),
        ("le", _ordered(lambda x, y: x <= y), "x <= y."),
        ("logical_and", lambda x, y: truth(x) & truth(y), "Logical AND: neither is zero."),
        ("logical_or", lambda x, y: truth(x) | truth(y), "Logical OR: at least one is not zero."),
        ("logical_xor", lambda x, y: truth(x) ^ truth(y), "Logical XOR: exactly one is not zero."),
    )
)
BITWISE = tuple(
    ElementwiseRow(name, formula, says, elements, domain=((-8.0, 8.0), (0.0, 9.0)), differentiable=False)
    for name, formula, says, elements in (
        ("bitwise_and", lambda x, y: x & y, "Bitwise AND.", BITS),
        ("bitwise_or", lambda x, y: x | y, "Bitwise OR.", BITS),
        ("bitwise_xor", lambda x, y: x ^ y, "Bitwise XOR.", BITS),
        ("bitwise_left_shift", _shift(lambda x, y: x << y, _none),
         "x shifted left by y bits; 0 if y is negative or at least the width of the dtype.", INTEGERS),
        ("bitwise_right_shift", _shift(lambda x, y: x >> y, _sign_alone),
         "x shifted right by y bits, arithmetically; if y is negative or at least the width of the dtype, only the sign is left (0 or -1).", INTEGERS),
        ("shift_right_logical", _shift(shr_logical, _none),
         "x shifted right by y bits, filled with zeros; 0 if y is negative or at least the width of the dtype.", INTEGERS),
    )
)  # fmt: skip
FUNCTIONS = (
    ElementwiseRow("pow", _pow, "x to the power of y; negative powers of integers are 0, except of 1 and -1.", NUMBERS,
        domain=((0.1, 6.0), (-4.0, 4.0)), operands=("input", "exponent")),
    ElementwiseRow("float_power", _float_power, "x to the power of y, in f64.", NUMBERS, F64, domain=((0.1, 6.0), (-4.0, 4.0)),
        wide=True, gradient=wide_gradient(pow), operands=("input", "exponent")),
    ElementwiseRow("atan2", atan2, "The angle of the point (y, x), from -pi to pi."),
    ElementwiseRow("hypot", hypot, "sqrt(x x + y y), which overflows only if the result does."),
    ElementwiseRow("ldexp", ldexp, "x · 2^y; y is a float and need not be an integer."),
    ElementwiseRow("logaddexp", logaddexp, "log(exp(x) + exp(y)).", domain=((0.5, 8.0),)),
    ElementwiseRow("logaddexp2", logaddexp2, "log2(2^x + 2^y).", domain=((0.5, 8.0),)),
    ElementwiseRow("xlogy", xlogy, "x log(y); 0 where x is 0.", domain=((-4.0, 4.0), (0.05, 20.0))),
    ElementwiseRow("xlog1py", xlog1py, "x log(1 + y); 0 where x is 0.", domain=((-4.0, 4.0), (-0.9, 20.0))),
    ElementwiseRow("rel_entr", rel_entr, "x log(x / y); 0 where x is 0, +inf where one is negative.", domain=POSITIVE),
    ElementwiseRow("isclose", _isclose, "|x - y| <= atol + |rtol y|, or equal.", result=BOOL, wide=True, differentiable=False,
        parameters=(Parameter("rtol", 1e-5, least=0.0), Parameter("atol", 1e-8, least=0.0), Parameter("equal_nan", 0.0, "not 0: NaN is near NaN"))),
    ElementwiseRow("igamma", igamma, "The lower incomplete gamma function of order x at y, divided by gamma(x).", domain=POSITIVE,
        differentiable=False),
    ElementwiseRow("igammac", igammac, "1 - igamma(x, y), accurate where that is small.", domain=POSITIVE, differentiable=False),
    ElementwiseRow("zeta", zeta, "The Hurwitz zeta function: the sum of (k + y)^-x over k = 0, 1, ….", domain=((1.2, 8.0), (0.5, 10.0)),
        differentiable=False),
    ElementwiseRow("beta", beta, "gamma(x) gamma(y) / gamma(x + y).", domain=((0.5, 6.0),)),
    ElementwiseRow("betaln", betaln, "The logarithm of |beta(x, y)|.", domain=((1.5, 10.0),)),
)  # fmt: skip
ROWS = (*ARITHMETIC, *COMPARISONS, *BITWISE, *FUNCTIONS)
