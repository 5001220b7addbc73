"""Formulas run by NumPy, number by number in their own elements, so that they can be checked without compiling anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, in_order

__all__ = ["evaluate"]

_DTYPES: dict[ElementKind, Any] = {
    ElementKind.F32: np.float32, ElementKind.F64: np.float64, ElementKind.I8: np.int8, ElementKind.I16: np.int16,
    ElementKind.I32: np.int32, ElementKind.I64: np.int64, ElementKind.U8: np.uint8, ElementKind.BOOL: np.bool_,
}  # fmt: skip


def evaluate(results: Sequence[Expr], inputs: Sequence[np.ndarray], parameters: Sequence[float] = ()) -> list[np.ndarray]:
    """What expressions of operations alone give for these inputs, which have one shape or broadcast to one."""
    shape = np.broadcast_shapes(*(np.shape(each) for each in inputs))
    known: dict[Expr, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for here in in_order(tuple(results)):
            dtype = _DTYPES[here.element]
            args = [known[arg] for arg in here.args]
            found: Any
            if here.operation == "bitcast":
                found = _bits(args[0], dtype)
            elif here.value is None:
                found = _OPERATIONS[here.operation](*args)
            else:
                given = {"input": inputs, "parameter": parameters}.get(here.operation)
                found = here.value if given is None else given[int(here.value)]
            known[here] = np.asarray(found).astype(dtype)  # of a convert, this is all there is to it
    return [np.broadcast_to(known[each], shape) for each in results]


def _bits(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(x).view(dtype).reshape(x.shape)


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Rounded once: a sum that is rounded to odd can be rounded again to fewer digits."""
    if a.dtype == np.float32:
        return _odd_sum(a.astype(np.float64) * b, c).astype(np.float32)
    # The product of the fractions and its error are exact; the exponents wait.
    (a_fraction, a_power), (b_fraction, b_power) = np.frexp(a), np.frexp(b)
    power = a_power + b_power
    product, rest = _two_product(a_fraction, b_fraction)
    total, lost = _two_sum(np.ldexp(c, -power), rest)
    total, more = _two_sum(product, total)
    result = np.ldexp(total + _odd_sum(more, lost), power)
    return np.where(np.isfinite(result) & (a != 0) & (b != 0), result, a * b + c)


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum rounded to odd: of the two f64 around an inexact sum, the one whose last bit is 1."""
    total, lost = _two_sum(a, b)
    inexact = np.isfinite(lost) & (lost != 0) & (_bits(total, np.int64) & 1 == 0)
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, lost)), total)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of half as many digits, whose sum it is."""
    wide = x * 134217729.0  # 2^27 + 1
    high = wide - (wide - x)
    return high, x - high


def _mul_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        return (a.astype(np.int64) * b) >> bits
    a_low, b_low, a_high, b_high = a & 0xFFFFFFFF, b & 0xFFFFFFFF, a >> 32, b >> 32
    below = _unsigned(a_low) * _unsigned(b_low) >> np.uint64(32)
    first = a_high * b_low + below.view(np.int64)
    second = a_low * b_high + (first & 0xFFFFFFFF)
    return a_high * b_high + (first >> 32) + (second >> 32)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(b == 0, 0, (a - np.fmod(a, b)) // np.where(b == 0, 1, b))


def _clz(x: np.ndarray) -> np.ndarray:
    bits, smeared = 8 * x.dtype.itemsize, _unsigned(x)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            smeared = smeared | smeared >> smeared.dtype.type(shift)
    return bits - np.bitwise_count(smeared)


_OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "div_roughly": np.divide, "reciprocal": lambda x: 1 / x, "exp2_roughly": np.exp2,
    "log2_roughly": np.log2, "rsqrt_roughly": lambda x: 1 / np.sqrt(x), "neg": np.negative, "absolute": np.absolute,
    "fma": _fma, "sqrt": np.sqrt, "sqrt_roughly": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor, "bit_not": np.invert,
    "shl": np.left_shift, "shr": np.right_shift, "shr_logical": lambda a, b: (_unsigned(a) >> _unsigned(b)).view(a.dtype),
    "quotient": _quotient, "remainder": np.fmod, "mul_high": _mul_high, "popcount": lambda x: np.bitwise_count(_unsigned(x)), "clz": _clz,
    "where": np.where, "rarely": np.where, "convert": lambda x: x,
}  # fmt: skip
