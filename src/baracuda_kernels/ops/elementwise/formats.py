"""Formulas that depend on which numbers an element has. They are made for the element in memory, as 16-bit floats are computed in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant
from baracuda_kernels.formula.function import function
from baracuda_kernels.formula.functions.pieces import sign_bit, with_sign
from baracuda_kernels.formula.operations import absolute, bitcast, convert, eq, is_nan, shr_logical, where
from baracuda_kernels.ops.elementwise.arithmetic import INFINITY, bits_of, is_negative, smaller

__all__ = ["mantissa_and_exponent", "mantissa_gradient", "nan_to_num", "next_after", "reduce_precision", "reduced"]

Formula = Callable[..., Expr]


class ElementFormat(NamedTuple):
    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def largest(self) -> float:
        return (2.0 - 2.0**-self.fraction_bits) * 2.0**self.bias


FORMATS = {
    ElementKind.F16: ElementFormat(5, 10),
    ElementKind.BF16: ElementFormat(8, 7),
    ElementKind.F32: ElementFormat(8, 23),
    ElementKind.F64: ElementFormat(11, 52),
}


def mantissa_and_exponent(x: Expr) -> tuple[Expr, Expr]:
    """The mantissa from 0.5 to 1, and the exponent as an integer of the same size; of zeros, infinities and NaN themselves, and 0."""
    form = FORMATS[x.element]
    digits, ones = form.fraction_bits, (1 << form.exponent_bits) - 1
    is_tiny = absolute(x) < 2.0 ** (1 - form.bias)
    bits = bits_of(where(is_tiny, x * 2.0 ** (digits + 1), x))
    exponent = ((bits >> digits) & ones) - where(is_tiny, constant(form.bias + digits, bits.element), form.bias - 1)
    mantissa = bitcast((bits & ~(ones << digits)) | ((form.bias - 1) << digits), x.element)
    has_none = eq(x, 0) | ~(absolute(x) < INFINITY)
    return where(has_none, x, mantissa), where(has_none, 0, exponent)


@function(lambda d, y, x: constant(0, x.element))
def mantissa_scale(x: Expr) -> Expr:
    """The power of two that a number is multiplied with to be its mantissa."""
    mantissa, _ = mantissa_and_exponent(x)
    return where(eq(mantissa, x) | is_nan(x), 1.0, mantissa / x)


def mantissa_gradient(d: Expr, x: Expr) -> Expr:
    return d * mantissa_scale(x)


def nan_to_num(element: ElementKind) -> Formula:
    def formula(x: Expr, nan: Expr, posinf: Expr, neginf: Expr) -> Expr:
        if not x.element.is_float:
            return x
        largest = FORMATS[element].largest
        above, below = where(is_nan(posinf), largest, posinf), where(is_nan(neginf), -largest, neginf)
        return where(is_nan(x), nan, where(eq(x, INFINITY), above, where(eq(x, -INFINITY), below, x)))

    return formula


def reduce_precision(element: ElementKind) -> Formula:
    """The fraction is rounded to nearest even, then a number without such an exponent becomes infinite, or zero."""

    def formula(x: Expr, exponent_bits: Expr, mantissa_bits: Expr) -> Expr:
        register, bits = FORMATS[x.element], bits_of(absolute(x))
        one, infinite = constant(1, bits.element), bits_of(constant(INFINITY, x.element))
        exponents, kept = (convert(each, bits.element) for each in (exponent_bits, mantissa_bits))
        dropped = where(kept < register.fraction_bits, register.fraction_bits - where(kept < 0, 0, kept), 0)
        is_shorter, unit = where(dropped > 0, one, 0), one << dropped
        odd = shr_logical(bits, dropped) & is_shorter
        rounded = (bits + ((unit >> 1) - is_shorter) + odd) & -unit
        reach = (one << where(exponents < 1, 0, exponents - 1)) - one
        is_narrower = exponents < FORMATS[element].exponent_bits
        too_large = where(is_narrower, (register.bias + 1 + reach) << register.fraction_bits, infinite)
        too_small = where(is_narrower, (register.bias + 1 - reach) << register.fraction_bits, 0)
        found = where(rounded >= too_large, infinite, where(rounded < too_small, 0, rounded))
        return where(is_nan(x), x, with_sign(bitcast(found, x.element), sign_bit(x)))

    return formula


def _reduced_gradient(d: Expr, y: Expr, x: Expr, *bits: Expr) -> tuple[Expr, None, None]:
    return reduced(d, *bits), None, None


@function(_reduced_gradient)
def reduced(x: Expr, exponent_bits: Expr, mantissa_bits: Expr) -> Expr:
    """The same of a number as it is computed: gradients are rounded as numbers are."""
    return reduce_precision(x.element)(x, exponent_bits, mantissa_bits)  # type: ignore[no-any-return]


def next_after(element: ElementKind) -> Formula:
    """A step of one unit in the bits. Times 2^-112 an f16 lies among the numbers of f32 just as in its own format, only finer."""
    scale = 2.0**-112 if element is ElementKind.F16 else 1.0

    def formula(x: Expr, y: Expr) -> Expr:
        step = 1 << (FORMATS[x.element].fraction_bits - FORMATS[element].fraction_bits)
        bits = bits_of(smaller(absolute(x), constant(2.0**16, x.element)) * scale if element is ElementKind.F16 else absolute(x))
        outwards = eq(x, 0) | eq(x < y, x > 0)
        found = bitcast(where(outwards, bits + step, bits - step), x.element)
        found = found * (1.0 / scale) if scale != 1.0 else found
        towards_minus = where(eq(x, 0), is_negative(y), is_negative(x))
        return where(is_nan(x) | is_nan(y), x + y, where(eq(x, y), y, where(towards_minus, -found, found)))

    return formula
