"""Numbers of one element as those of another: rounded once to the nearest, and defined where they do not fit."""

from __future__ import annotations

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.formula.expression import HALVES, Expr, constant, register
from baracuda_kernels.formula.operations import absolute, bitcast, convert, eq, is_nan, ne, where
from baracuda_kernels.ops.elementwise.arithmetic import bits_of

__all__ = ["converted"]

F32, F64, I64 = ElementKind.F32, ElementKind.F64, ElementKind.I64


def converted(x: Expr, target: ElementKind) -> Expr:
    """The number as it is stored in `target`, in its register."""
    if x.element.is_float and target in LIMITS:
        return _integer(x, target)
    if target in HALVES and x.element in (F64, ElementKind.I32, I64):
        return _odd(convert(_exact(x), F64))
    return convert(x, register(target))


def _integer(x: Expr, target: ElementKind) -> Expr:
    """Towards zero; beyond the least and the largest integer, that one, and 0 of NaN."""
    low, high = LIMITS[target]
    fits = (x >= float(low)) & (x < float(high + 1))
    beyond = where(x < float(low), constant(low, target), where(is_nan(x), constant(0, target), high))
    return where(fits, convert(where(fits, x, 0), target), beyond)


def _exact(x: Expr) -> Expr:
    """A number that f64 holds exactly: of a long i64 that is rounded to odd, so that it can be rounded again to fewer digits."""
    if x.element is not I64:
        return x
    is_odd = where(eq(x & 4095, 0), constant(0, I64), 1)
    return where((x >= -(1 << 52)) & (x <= 1 << 52), x, ((x >> 12) | is_odd) << 12)


def _odd(x: Expr) -> Expr:
    """An f64 as an f32 that is rounded to odd: of the two around it, the one whose last bit is 1."""
    near = convert(x, F32)
    again, bits = convert(near, F64), bits_of(near)
    shorter = where(absolute(again) > absolute(x), bits - 1, bits)
    return where(ne(again, x) & ~is_nan(x), bitcast(shorter | 1, F32), near)
