"""What each operation of a formula is in Triton's language, and the functions that it takes for those which Triton lacks.

A few are spelled otherwise in Triton's interpreter, which knows no machine instructions, and rounds twice in `tl.fma`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import is_interpreted
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import Expr, input_of
from baracuda_kernels.formula.operations import fma

__all__ = ["NAMES", "OPERATIONS", "TYPES", "text_of"]

TYPES = {
    ElementKind.F32: "tl.float32", ElementKind.F64: "tl.float64", ElementKind.BOOL: "tl.int1", ElementKind.I8: "tl.int8",
    ElementKind.I16: "tl.int16", ElementKind.I32: "tl.int32", ElementKind.I64: "tl.int64", ElementKind.U8: "tl.uint8",
}  # fmt: skip


# --- functions -----------------------------------------------------------------------------------------------------------------


@triton.jit
def quotient(a, b):
    """Towards zero. LLVM takes it that no divisor is zero and no quotient too large, and would drop tests for either."""
    if a.dtype.is_int_unsigned():
        return a // tl.where(b == 0, 1, b)
    else:
        negates = b == -1
        return tl.where(negates, -a, a // tl.where((b == 0) | negates, 1, b))


@triton.jit
def remainder(a, b):
    if a.dtype.is_int_unsigned():
        return a % tl.where(b == 0, 1, b)
    else:
        return a % tl.where((b == 0) | (b == -1), 1, b)


@triton.jit
def mul_high(a, b):
    """The upper half of a product."""
    BITS: tl.constexpr = a.dtype.primitive_bitwidth
    if BITS < 64:
        return (a.to(tl.int64) * b.to(tl.int64) >> BITS).to(a.dtype)
    else:
        high = tl.umulhi(a.to(tl.uint64), b.to(tl.uint64)).to(tl.int64)
        # A negative factor is 2^64 too large as an unsigned one.
        return high - tl.where(a < 0, b, 0) - tl.where(b < 0, a, 0)


@triton.jit
def popcount(x):
    """How many bits are set: in pairs, fours and bytes side by side, and a product adds up the bytes."""
    u = _unsigned(x)
    u -= (u >> 1) & 0x5555555555555555
    u = (u & 0x3333333333333333) + ((u >> 2) & 0x3333333333333333)
    u = (u + (u >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (u * 0x0101010101010101 >> 56).to(x.dtype)


@triton.jit
def clz(x):
    """All bits below the first one are set, and what is left is counted."""
    u = _unsigned(x)
    for shift in tl.static_range(6):
        u |= u >> (1 << shift)
    return x.dtype.primitive_bitwidth - popcount(u.to(tl.int64)).to(x.dtype)


@triton.jit
def _unsigned(x):
    """The bits of an integer, zeros before them."""
    if x.dtype.is_int_unsigned() or x.dtype.primitive_bitwidth == 64:
        return x.to(tl.uint64)
    elif x.dtype.primitive_bitwidth == 8:
        return x.to(tl.uint8).to(tl.uint64)
    elif x.dtype.primitive_bitwidth == 16:
        return x.to(tl.uint16).to(tl.uint64)
    else:
        return x.to(tl.uint32).to(tl.uint64)


def _rint(x: Any) -> Any:
    """rint for the interpreter: added to a number this large, no fraction remains."""
    large = 2.0**23 if x.dtype == tl.float32 else 2.0**52
    size = tl.abs(x)
    whole = tl.where(size < large, size + large - large, size)
    return tl.where(x < 0, whole * -1.0, tl.where(size > 0, whole, x))


def _fma(a: Any, b: Any, c: Any) -> Any:
    """fma for the interpreter, whose own rounds twice."""
    result = tl.fma(a, b, c)
    element = ElementKind.F64 if a.dtype == tl.float64 else ElementKind.F32
    operands = [each.handle.data for each in (a, b, c)]
    (rounded_once,) = evaluate((fma(*(input_of(place, element) for place in range(3))),), operands)
    result.handle.data = rounded_once.copy()
    return result


# What the texts below mean by their names.
NAMES = {
    "tl": tl, "quotient": quotient, "remainder": remainder, "mul_high": mul_high, "popcount": popcount,
    "clz": clz, "interpreted_rint": _rint, "interpreted_fma": _fma,
}  # fmt: skip

# --- texts ---------------------------------------------------------------------------------------------------------------------


def _machine(instruction: str, arity: int, interpreted: str) -> str | Callable[[Expr], str]:
    """An instruction of the machine. Triton's own functions, some of them in some of its versions, take a subnormal f32 for zero."""

    def compiled(here: Expr) -> str:
        kind, constraint = ("f64", "d") if here.element is ElementKind.F64 else ("f32", "f")
        places = ", ".join(f"${place}" for place in range(arity + 1))
        constraints = ",".join([f"={constraint}", *[constraint] * arity])
        operands = ", ".join(f"{{{place}}}" for place in range(arity))
        code = f"{instruction.replace('KIND', kind)} {places};"
        return f'tl.inline_asm_elementwise("{code}", "{constraints}", [{operands}], {TYPES[here.element]}, is_pure=True, pack=1)'

    return interpreted if is_interpreted() else compiled


def _reciprocal(here: Expr) -> str:
    """One instruction, but in f64, where none is near enough."""
    instruction = "rcp.rn.f64" if here.element is ElementKind.F64 else "rcp.approx.ftz.f32"
    text = _machine(instruction, 1, "1.0 / {0}")
    return text if isinstance(text, str) else text(here)


def _shift(sign: str) -> Callable[[Expr], str]:
    """Shifts by less than the width: with a longer shift LLVM may spoil other numbers too."""
    return lambda here: f"{{0}} {sign} ({{1}} & {8 * here.element.size - 1})"


def _shift_logical(here: Expr) -> str:
    bits = 8 * here.element.size
    return f"({{0}}.to(tl.uint{bits}) >> ({{1}} & {bits - 1}).to(tl.uint{bits})).to({TYPES[here.element]})"


def _bitcast(here: Expr) -> str:
    if ElementKind.BOOL in (here.element, here.args[0].element):  # a byte in memory, one bit in a register
        return f"{{0}}.to({TYPES[here.element]})"
    return f"{{0}}.to({TYPES[here.element]}, bitcast=True)"


_NOT = {ElementKind.U8: "{0} ^ 255", ElementKind.BOOL: "{0} == 0"}  # for which the interpreter has no ~, or none of single numbers

OPERATIONS: dict[str, str | Callable[[Expr], str]] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "neg": lambda here: "{0} * -1.0" if here.element.is_float else "-{0}",  # of a float that is 0 - x, which loses the sign of zero
    "absolute": "tl.abs({0})",
    "div": _machine("div.rn.KIND", 2, "{0} / {1}"),
    "div_roughly": _machine("div.full.f32", 2, "{0} / {1}"),
    "reciprocal": _reciprocal,
    "exp2_roughly": _machine("ex2.approx.ftz.f32", 1, "tl.exp2({0})"),
    "log2_roughly": _machine("lg2.approx.f32", 1, "tl.log2({0})"),
    "rsqrt_roughly": _machine("rsqrt.approx.ftz.f32", 1, "1.0 / tl.sqrt({0})"),
    "fma": "interpreted_fma({0}, {1}, {2})" if is_interpreted() else "tl.fma({0}, {1}, {2})",
    "sqrt": _machine("sqrt.rn.KIND", 1, "tl.sqrt({0})"),
    "sqrt_roughly": _machine("sqrt.approx.f32", 1, "tl.sqrt({0})"),
    "floor": _machine("cvt.rmi.KIND.KIND", 1, "tl.floor({0})"),
    "ceil": _machine("cvt.rpi.KIND.KIND", 1, "tl.ceil({0})"),
    "trunc": _machine("cvt.rzi.KIND.KIND", 1, "tl.where({0} < 0, tl.ceil({0}), tl.floor({0}))"),
    "rint": _machine("cvt.rni.KIND.KIND", 1, "interpreted_rint({0})"),
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    # Of booleans by a choice: the interpreter has no & or | of a block and one number.
    "bit_and": lambda here: "tl.where({0}, {1}, {0})" if here.element is ElementKind.BOOL else "{0} & {1}",
    "bit_or": lambda here: "tl.where({0}, {0}, {1})" if here.element is ElementKind.BOOL else "{0} | {1}",
    "bit_xor": "{0} ^ {1}",
    "bit_not": lambda here: _NOT.get(here.element, "~{0}"),
    "shl": _shift("<<"),
    "shr": _shift(">>"),
    "shr_logical": _shift_logical,
    "quotient": "quotient({0}, {1})",
    "remainder": "remainder({0}, {1})",
    "mul_high": "mul_high({0}, {1})",
    "popcount": "popcount({0})",
    "clz": "clz({0})",
    "where": "tl.where({0}, {1}, {2})",
    "rarely": "tl.where({0}, {1}, {2})",
    "convert": lambda here: f"{{0}}.to({TYPES[here.element]})",
    "bitcast": _bitcast,
}


def text_of(here: Expr, *args: str) -> str:
    """An operation on numbers of these names."""
    text = OPERATIONS[here.operation]
    return (text if isinstance(text, str) else text(here)).format(*args)
