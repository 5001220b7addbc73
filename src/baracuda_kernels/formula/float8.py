"""Floats of 8 bits, as formulas of their bytes: the same numbers on every device, whether or not it has instructions for them."""

from __future__ import annotations

from dataclasses import dataclass

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant, in_order
from baracuda_kernels.formula.operations import absolute, bitcast, convert, eq, is_nan, where

__all__ = ["FORMATS8", "Format8", "narrowed", "stored", "widened"]

F32, I32, U8 = ElementKind.F32, ElementKind.I32, ElementKind.U8
DIGITS, BIAS, INFINITE = 23, 127, 0x7F800000  # of f32


@dataclass(frozen=True)
class Format8:
    """How a number lies in a byte, below its sign. What is above `most` is no finite number."""

    digits: int  # of the fraction
    bias: int  # of the exponent
    most: int  # the byte of the largest finite number
    beyond: int  # the byte of what is larger
    nan: int
    infinite: int = 0x80  # the byte of infinity; past all where there is none
    has_minus_zero: bool = True  # else its byte is NaN, the only one

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def unit(self) -> float:
        """The least number above zero, and the distance of the least ones."""
        return 2.0 ** (1 - self.bias - self.digits)

    @property
    def largest(self) -> float:
        fraction = self.most & ((1 << self.digits) - 1)
        return (2.0**self.digits + fraction) * 2.0 ** ((self.most >> self.digits) - self.bias - self.digits)


FORMATS8 = {
    ElementKind.F8E4M3FN: Format8(3, 7, 0x7E, 0x7F, 0x7F),
    ElementKind.F8E5M2: Format8(2, 15, 0x7B, 0x7C, 0x7E, infinite=0x7C),
    ElementKind.F8E4M3FNUZ: Format8(3, 8, 0x7F, 0x80, 0x80, has_minus_zero=False),
    ElementKind.F8E5M2FNUZ: Format8(2, 16, 0x7F, 0x80, 0x80, has_minus_zero=False),
}


def widened(byte: Expr, element: ElementKind) -> Expr:
    """The f32 of a byte, exactly. Subnormal numbers are counted in units, so that no f32 is subnormal on the way."""
    form, bits = FORMATS8[element], convert(byte, I32)
    size, moved = bits & 0x7F, DIGITS - form.digits
    normal = (size << moved) + ((BIAS - form.bias) << DIGITS)
    tiny = bitcast(convert(size, F32) * form.unit, I32)
    found = where(size < 1 << form.digits, tiny, normal)
    if form.has_minus_zero:
        found = where(size > form.most, where(eq(size, form.infinite), constant(INFINITE, I32), INFINITE | 1 << 22), found)
        return bitcast(found | ((bits & 0x80) << 24), F32)
    return bitcast(where(eq(bits, form.nan), constant(INFINITE | 1 << 22, I32), found | ((bits & 0x80) << 24)), F32)


def narrowed(x: Expr, element: ElementKind) -> Expr:
    """The byte of an f32, rounded once to nearest even. Below the normal numbers the sum with a number whose last digit is a unit rounds."""
    form = FORMATS8[element]
    size, cut = absolute(x), DIGITS - form.digits
    bits = bitcast(size, I32)
    rounded = (bits + ((1 << (cut - 1)) - 1) + ((bits >> cut) & 1)) >> cut
    normal = rounded - ((BIAS - form.bias) << form.digits)
    in_units = constant(form.unit * 2.0**DIGITS, F32)
    tiny = bitcast(size + in_units, I32) - bitcast(in_units, I32)
    found = where(size < form.least_normal, tiny, normal)
    sign = (bitcast(x, I32) >> 24) & 0x80
    if form.has_minus_zero:
        found = where(is_nan(x), form.nan, where(found > form.most, form.beyond, found)) | sign
    else:
        found = where(eq(found, 0), 0, where(is_nan(x) | (found > form.most), form.nan, found | sign))
    return convert(found, U8)


def stored(result: Expr, element: ElementKind) -> Expr:
    """What is written of a result for an operand of that element: of what was read from such a byte, that byte."""
    if element not in FORMATS8 or result.element is U8:
        return result
    for read in in_order((result,)):
        if read.operation == "input" and read.element is U8 and widened(read, element) is result:
            return read
    return narrowed(result, element)
