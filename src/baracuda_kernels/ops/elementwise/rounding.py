"""Numbers of one element as those of another: rounded once to the nearest, and defined where they do not fit."""

from __future__ import annotations

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.formula.complex import imag, joined, real
from baracuda_kernels.formula.expression import SHORT, Expr, constant, register
from baracuda_kernels.formula.operations import absolute, bitcast, convert, eq, is_nan, ne, where
from baracuda_kernels.ops.elementwise.arithmetic import bits_of
from baracuda_kernels.ops.elementwise.formats import LARGEST

__all__ = ["converted", "within"]

F32, F64 = ElementKind.F32, ElementKind.F64
LONG = (ElementKind.I64, ElementKind.U64)


def converted(x: Expr, target: ElementKind) -> Expr:
    """The number as it is stored in `target`, in its register; of a complex one, where only one part has room, the real part."""
    if target.is_complex:
        return joined(converted(real(x), target.part), converted(imag(x), target.part))
    if x.element.is_complex and target is not ElementKind.BOOL:
        return converted(real(x), target)
    if x.element.is_float and target in LIMITS:
        return _integer(x, target)
    if target in SHORT and x.element in (F64, ElementKind.I32, ElementKind.U32, *LONG):
        return _odd(convert(_exact(x), F64))
    return convert(x, register(target))


def within(x: Expr, target: ElementKind) -> Expr:
    """The number or, of what is beyond the least or the largest finite one of `target`, that one. NaN stays; floats become integers so anyway."""
    if target.is_complex:
        return joined(within(real(x), target.part), within(imag(x), target.part))
    x = real(x) if x.element.is_complex and target is not ElementKind.BOOL else x
    if ElementKind.BOOL in (x.element, target) or (x.element.is_float and target in LIMITS):
        return x
    low, high = LIMITS[target] if target in LIMITS else (-LARGEST[target], LARGEST[target])
    if x.element in LIMITS:
        least, most = LIMITS[x.element]
        x = where(x < int(low), int(low), x) if least < low else x
        return where(x > int(high), int(high), x) if most > high else x
    x = convert(x, target) if target is F64 else x
    return where(x > high, high, where(x < low, low, x))


def _integer(x: Expr, target: ElementKind) -> Expr:
    """Towards zero; beyond the least and the largest integer, that one, and 0 of NaN."""
    low, high = LIMITS[target]
    fits = (x >= float(low)) & (x < float(high + 1))
    beyond = where(x < float(low), constant(low, target), where(is_nan(x), constant(0, target), high))
    return where(fits, convert(where(fits, x, 0), target), beyond)


def _exact(x: Expr) -> Expr:
    """A number that f64 holds exactly: a long integer is rounded to odd, so that it can be rounded again to fewer digits."""
    if x.element not in LONG:
        return x
    is_odd, is_short = where(eq(x & 4095, 0), constant(0, x.element), 1), x <= 1 << 52
    is_short = is_short if x.element.is_unsigned else is_short & (x >= -(1 << 52))
    return where(is_short, x, ((x >> 12) | is_odd) << 12)


def _odd(x: Expr) -> Expr:
    """An f64 as an f32 that is rounded to odd: of the two around it, the one whose last bit is 1."""
    near = convert(x, F32)
    again, bits = convert(near, F64), bits_of(near)
    shorter = where(absolute(again) > absolute(x), bits - 1, bits)
    return where(ne(again, x) & ~is_nan(x), bitcast(shorter | 1, F32), near)
