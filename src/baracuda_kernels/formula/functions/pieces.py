"""What the expansions of functions are put together from: polynomials, exact sums and products, and the bits of floats."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from struct import pack, unpack
from typing import TypeVar

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Number, constant
from baracuda_kernels.formula.operations import bitcast, fma, reciprocal, rsqrt_roughly, where

__all__ = [
    "HALF_PI", "LN2", "FloatFormat", "bits_of", "by_element", "choose", "fast_two_sum", "format_of", "nearest", "parts", "polynomial",
    "power_of_two", "ratio", "root_roughly", "sign_bit", "to_bits", "two_product", "with_sign",
]  # fmt: skip

T = TypeVar("T")

# Numbers as sums of floats, the largest first.
LN2 = (0.6931471805599453, 2.3190468138462996e-17, 5.707708438416212e-34)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)


@dataclass(frozen=True)
class FloatFormat:
    """How a float is laid out in an integer of its size."""

    integer: ElementKind
    width: int
    digits: int  # of the fraction
    bias: int  # of the exponent

    @property
    def magic(self) -> float:
        """Added to a number, it leaves the nearest integer in the lowest bits."""
        return 1.5 * 2.0**self.digits

    @property
    def sign(self) -> int:
        return -(1 << (self.width - 1))


_FORMATS = {ElementKind.F32: FloatFormat(ElementKind.I32, 32, 23, 127), ElementKind.F64: FloatFormat(ElementKind.I64, 64, 52, 1023)}


def format_of(x: Expr) -> FloatFormat:
    return _FORMATS[x.element]


def by_element(x: Expr, f32: T, f64: T) -> T:
    return f32 if x.element is ElementKind.F32 else f64


def parts(number: tuple[float, ...], like: Expr, count: int) -> list[float]:
    """The first parts of a number as a sum of floats, in the element of `like`."""
    rest, found = list(number), []
    for _ in range(count):
        whole = fsum(rest)
        found.append(by_element(like, unpack("<f", pack("<f", whole))[0], whole))
        rest.append(-found[-1])
    return found


def polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """That of the lowest power first."""
    *rest, last = coefficients
    total = constant(last, x.element)
    for each in reversed(rest):
        total = fma(x, total, each)
    return total


def fast_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The sum and what rounding took from it, where |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Expr, b: Expr | Number) -> tuple[Expr, Expr]:
    """The product and what rounding took from it."""
    product = a * b
    return product, fma(a, b, -product)


def ratio(a: Expr, b: Expr) -> Expr:
    """a / b where `reciprocal` of b is good: in f32 cheaper than a division, and next to never another number."""
    if b.element is ElementKind.F64:
        return a / b
    inverse = reciprocal(b)
    near = a * inverse
    return fma(fma(-near, b, a), inverse, near)


def root_roughly(x: Expr) -> Expr:
    """sqrt(x) of an f32 that is 0 or from 2^-70 to 2^126, off by 2^-21 of itself; NaN below 0."""
    return x * rsqrt_roughly(x + 2.0**-100)


def to_bits(x: Expr) -> Expr:
    return bitcast(x, format_of(x).integer)


def nearest(x: Expr, scale: float) -> tuple[Expr, Expr]:
    """The integer nearest to x times scale, as a float, and as the lowest bits of an integer. It fits into half the bits."""
    magic = format_of(x).magic
    shifted = x + magic if scale == 1.0 else fma(x, scale, magic)
    return shifted - magic, to_bits(shifted)


def bits_of(number: float, like: Expr) -> int:
    """The bits of a number in the dtype of `like`, as an integer."""
    return int(unpack("<i", pack("<f", number))[0] if like.element is ElementKind.F32 else unpack("<q", pack("<d", number))[0])


def power_of_two(n: Expr, like: Expr) -> Expr:
    """2 to the n, a normal number, from the lowest bits of n."""
    layout = format_of(like)
    return bitcast((n + layout.bias) << layout.digits, like.element)


def choose(condition: Expr, a: Number, b: Number, element: ElementKind) -> Expr:
    """One of two constants, by a condition."""
    return where(condition, constant(a, element), constant(b, element))


def sign_bit(x: Expr) -> Expr:
    """The sign bit of a float, in its place; all other bits zero."""
    return to_bits(x) & format_of(x).sign


def with_sign(x: Expr, sign: Expr) -> Expr:
    """The number, negated where that bit is set."""
    return bitcast(to_bits(x) ^ sign, x.element)
