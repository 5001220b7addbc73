"""Conversion of 16-bit floats to and from f32, as LLVM IR, one element or a vector of them.

bf16 is integer arithmetic everywhere. f16 uses the processor's own conversion where there is one; elsewhere LLVM would call a
runtime function that no one provides, so the same conversion is spelled out in integers.
"""

import functools
import platform

from llvmlite import ir

__all__ = ["force_integer_f16", "in_turn", "join_bf16", "narrow", "split_bf16", "uses_integer_f16", "widen"]

_forced = False


def force_integer_f16(forced: bool) -> None:
    """Makes kernels built from now on convert f16 in integers even where the processor can; results are the same."""
    global _forced
    _forced = forced


def uses_integer_f16() -> bool:
    """Whether f16 is converted in integers."""
    return _forced or not _has_f16_conversion()


@functools.cache
def _has_f16_conversion() -> bool:
    import llvmlite.binding as llvm

    if platform.machine().lower() in ("aarch64", "arm64"):
        return True
    return bool(llvm.get_host_cpu_features().get("f16c", False))


def widen(builder: ir.IRBuilder, name: str, raw: ir.Value) -> ir.Value:
    """16 stored bits to f32, exactly."""
    like = _Like(builder, raw)
    if name == "bf16":
        return like.cast(like.shl(builder.zext(raw, like.integer(32)), 16), ir.FloatType())
    if uses_integer_f16():
        return _widen_f16(like, raw)
    return builder.fpext(like.cast(raw, ir.HalfType()), like.of(ir.FloatType()))


def narrow(builder: ir.IRBuilder, name: str, value: ir.Value) -> ir.Value:
    """f32 to 16 stored bits, to nearest even; NaN stays NaN."""
    like = _Like(builder, value)
    if name == "bf16":
        return _narrow_bf16(like, value)
    if uses_integer_f16():
        return _narrow_f16(like, value)
    return like.cast(builder.fptrunc(value, like.of(ir.HalfType())), ir.IntType(16))


class _Like:
    """Integer operations with constants on values shaped like `model`, a scalar or a vector."""

    def __init__(self, builder: ir.IRBuilder, model: ir.Value) -> None:
        self.builder = builder
        self.count = model.type.count if isinstance(model.type, ir.VectorType) else None

    def of(self, scalar: ir.Type) -> ir.Type:
        return scalar if self.count is None else ir.VectorType(scalar, self.count)

    def integer(self, width: int) -> ir.Type:
        return self.of(ir.IntType(width))

    def constant(self, number: int) -> ir.Constant:
        return ir.Constant(self.integer(32), number if self.count is None else [number] * self.count)

    def cast(self, value: ir.Value, scalar: ir.Type) -> ir.Value:
        return self.builder.bitcast(value, self.of(scalar))

    def shl(self, value: ir.Value, count: int) -> ir.Value:
        return self.builder.shl(value, self.constant(count))

    def lshr(self, value: ir.Value, count: int) -> ir.Value:
        return self.builder.lshr(value, self.constant(count))

    def add(self, value: ir.Value, number: int) -> ir.Value:
        return self.builder.add(value, self.constant(number))

    def mask(self, value: ir.Value, number: int) -> ir.Value:
        return self.builder.and_(value, self.constant(number))

    def above(self, value: ir.Value, number: int) -> ir.Value:
        return self.builder.icmp_unsigned(">", value, self.constant(number))


def _round_off(like: _Like, pattern: ir.Value, count: int) -> ir.Value:
    """`pattern` shifted right by `count`, to nearest even."""
    odd = like.mask(like.lshr(pattern, count), 1)
    return like.lshr(like.builder.add(like.add(pattern, (1 << (count - 1)) - 1), odd), count)


def _narrow_bf16(like: _Like, value: ir.Value) -> ir.Value:
    builder = like.builder
    pattern = like.cast(value, ir.IntType(32))
    quiet = builder.or_(pattern, like.constant(0x400000))
    chosen = builder.select(builder.fcmp_unordered("uno", value, value), quiet, _round_bf16(like, pattern))
    return builder.trunc(like.lshr(chosen, 16), like.integer(16))


def _round_bf16(like: _Like, pattern: ir.Value) -> ir.Value:
    """The upper 16 bits to nearest even, whatever is left in the lower ones."""
    return like.add(like.builder.add(pattern, like.mask(like.lshr(pattern, 16), 1)), 0x7FFF)


def in_turn(element: str) -> bool:
    """Whether contiguous elements go to the two vectors of a pair in turn: a register of bf16 so comes apart without a shuffle."""
    return element == "bf16"


def split_bf16(builder: ir.IRBuilder, words: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Two bf16 in each word to f32: those in the lower bits, which come first in memory, and those in the upper."""
    like = _Like(builder, words)
    return like.cast(like.shl(words, 16), ir.FloatType()), like.cast(like.mask(words, 0xFFFF0000), ir.FloatType())


def join_bf16(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    """The inverse, to nearest even. A NaN must stem from 16-bit floats: then its lower bits are zero, and rounding leaves it alone."""
    like = _Like(builder, low)
    low, high = (_round_bf16(like, like.cast(value, ir.IntType(32))) for value in (low, high))
    return builder.or_(like.lshr(low, 16), like.mask(high, 0xFFFF0000))


# Subnormals of f16 are multiples of 2^-24. Beside 0.5, whose last f32 bit is 2^-24, they become a plain integer mantissa: the
# float adder normalises them in one direction and rounds them to nearest even in the other.

_HALF = 0x3F000000


def _half(like: _Like) -> ir.Value:
    return like.cast(like.constant(_HALF), ir.FloatType())


def _widen_f16(like: _Like, raw: ir.Value) -> ir.Value:
    builder = like.builder
    wide = builder.zext(raw, like.integer(32))
    magnitude = like.mask(wide, 0x7FFF)
    sign = like.shl(like.mask(wide, 0x8000), 16)
    shifted = like.shl(magnitude, 13)
    normal = like.add(shifted, 112 << 23)
    special = builder.or_(shifted, like.constant(0x7F800000))
    # A signalling NaN comes out quiet, as from the processor.
    special = builder.or_(special, builder.select(like.above(magnitude, 0x7C00), like.constant(0x400000), like.constant(0)))
    tiny = builder.fsub(like.cast(like.add(magnitude, _HALF), ir.FloatType()), _half(like))
    chosen = builder.select(like.above(magnitude, 0x7BFF), special, normal)
    chosen = builder.select(like.above(magnitude, 0x3FF), chosen, like.cast(tiny, ir.IntType(32)))
    return like.cast(builder.or_(chosen, sign), ir.FloatType())


def _narrow_f16(like: _Like, value: ir.Value) -> ir.Value:
    builder = like.builder
    pattern = like.cast(value, ir.IntType(32))
    magnitude = like.mask(pattern, 0x7FFFFFFF)
    sign = like.lshr(like.mask(pattern, 0x80000000), 16)
    normal = _round_off(like, like.add(magnitude, -(112 << 23)), 13)
    tiny = builder.fadd(like.cast(magnitude, ir.FloatType()), _half(like))
    subnormal = like.add(like.cast(tiny, ir.IntType(32)), -_HALF)
    nan = builder.or_(like.mask(like.lshr(magnitude, 13), 0x3FF), like.constant(0x7E00))
    chosen = builder.select(like.above(magnitude, 0x387FFFFF), normal, subnormal)
    chosen = builder.select(like.above(magnitude, 0x477FEFFF), like.constant(0x7C00), chosen)
    chosen = builder.select(like.above(magnitude, 0x7F800000), nan, chosen)
    return builder.trunc(builder.or_(chosen, sign), like.integer(16))
