"""The operations that formulas are made of in the end, and what each gives: every backend has exactly these.

Comparisons with NaN are false, but for `ne`. Integers wrap around. `convert` between numbers rounds to nearest even, from a float to an
integer towards zero; what does not fit is anything.
"""

from __future__ import annotations

from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Number, constant, make, number_beside

__all__ = [
    "OPERATIONS", "absolute", "applied", "bitcast", "ceil", "clz", "convert", "div_roughly", "eq", "exp2_roughly", "floor", "fma", "greater", "is_nan", "less",
    "log2_roughly", "mul_high", "ne", "popcount", "quotient", "rarely", "reciprocal", "remainder", "rint", "rsqrt_roughly", "shr_logical", "sqrt", "sqrt_roughly", "trunc",
    "where",
]  # fmt: skip

Rule = Callable[..., ElementKind]


def _same(*elements: ElementKind) -> ElementKind:
    return elements[0]


def _truth(*elements: ElementKind) -> ElementKind:
    return ElementKind.BOOL


# How many operands, all of one element, and what they give. `where`, `rarely`, `convert` and `bitcast` are special.
OPERATIONS: dict[str, tuple[int, Rule]] = {
    "add": (2, _same), "sub": (2, _same), "mul": (2, _same), "neg": (1, _same), "absolute": (1, _same),
    "div": (2, _same), "reciprocal": (1, _same), "exp2_roughly": (1, _same), "log2_roughly": (1, _same), "rsqrt_roughly": (1, _same),
    "div_roughly": (2, _same), "sqrt_roughly": (1, _same), "fma": (3, _same), "sqrt": (1, _same),
    "floor": (1, _same), "ceil": (1, _same), "trunc": (1, _same), "rint": (1, _same),
    "lt": (2, _truth), "le": (2, _truth), "eq": (2, _truth), "ne": (2, _truth),
    "bit_and": (2, _same), "bit_or": (2, _same), "bit_xor": (2, _same), "bit_not": (1, _same),
    "shl": (2, _same), "shr": (2, _same), "shr_logical": (2, _same),
    "quotient": (2, _same), "remainder": (2, _same), "mul_high": (2, _same), "popcount": (1, _same), "clz": (1, _same),
    "where": (3, _same), "rarely": (3, _same), "convert": (1, _same), "bitcast": (1, _same),
}  # fmt: skip
F32_ONLY = ("div_roughly", "exp2_roughly", "log2_roughly", "rsqrt_roughly", "sqrt_roughly")
FLOATS_ONLY = ("div", "reciprocal", "fma", "sqrt", "floor", "ceil", "trunc", "rint")
INTEGERS_ONLY = ("shl", "shr", "shr_logical", "quotient", "remainder", "mul_high", "popcount", "clz")
BITS = ("bit_and", "bit_or", "bit_xor", "bit_not")  # of integers and of booleans


def applied(operation: str, *args: Expr | Number) -> Expr:
    """An operation on operands of one element; a number beside an expression takes that one's element."""
    count, rule = OPERATIONS[operation]
    like = next((arg for arg in args if isinstance(arg, Expr)), None)
    if like is None or len(args) != count:
        raise TypeError(f"{operation}: got {args}, wanted {count} operands, at least one of them an expression")
    operands = tuple(arg if isinstance(arg, Expr) else number_beside(arg, like) for arg in args)
    if any(operand.element is not like.element for operand in operands):
        raise TypeError(f"{operation}: got {' and '.join(str(operand.element) for operand in operands)}, wanted one dtype")
    allowed = _allowed(operation, like.element)
    if not allowed:
        raise TypeError(f"{operation} of {like.element}: there is no such operation")
    return make(operation, rule(like.element), operands)


def _allowed(operation: str, element: ElementKind) -> bool:
    if element is ElementKind.BOOL:
        return operation in BITS or operation in ("eq", "ne")
    if operation in F32_ONLY:
        return element is ElementKind.F32
    return operation not in ((*INTEGERS_ONLY, *BITS) if element.is_float else FLOATS_ONLY)


def where(condition: Expr, a: Expr | Number, b: Expr | Number) -> Expr:
    """`a` where the condition holds, else `b`: a choice, so that NaN in the other one does not show."""
    return _chosen("where", condition, a, b)


def rarely(condition: Expr, a: Expr, b: Expr) -> Expr:
    """As `where`, for an `a` that is expensive and rarely chosen: where no element of a vector, or of a program, chooses it, it need not be computed."""
    return _chosen("rarely", condition, a, b)


def _chosen(operation: str, condition: Expr, a: Expr | Number, b: Expr | Number) -> Expr:
    like = a if isinstance(a, Expr) else b
    if not isinstance(like, Expr) or condition.element is not ElementKind.BOOL:
        raise TypeError(f"{operation}: got {condition}, {a}, {b}; wanted a condition and two numbers, at least one an expression")
    first, second = (each if isinstance(each, Expr) else number_beside(each, like) for each in (a, b))
    if first.element is not second.element:
        raise TypeError(f"{operation}: got {first.element} and {second.element}, wanted one dtype")
    return first if first is second else make(operation, first.element, (condition, first, second))


def convert(value: Expr, element: ElementKind) -> Expr:
    """The same number in another element; of a boolean 1 or 0, and whether a number is not zero."""
    if value.element is element:
        return value
    if element is ElementKind.BOOL:
        return ne(value, constant(0, value.element))
    return make("convert", element, (value,))


def bitcast(value: Expr, element: ElementKind) -> Expr:
    """The same bits as another dtype of the same size."""
    if value.element.size != element.size:
        raise TypeError(f"bitcast: got {value.element} and {element}, wanted dtypes of one size")
    return value if value.element is element else make("bitcast", element, (value,))


def absolute(x: Expr) -> Expr:
    return applied("absolute", x)


def fma(a: Expr | Number, b: Expr | Number, c: Expr | Number) -> Expr:
    """a b + c, rounded once."""
    return applied("fma", a, b, c)


def reciprocal(x: Expr) -> Expr:
    """1 / x to within two units in the last place, for x whose size is up to 2^120; of subnormal ones it may be infinite. A division costs
    several times as much."""
    return applied("reciprocal", x)


def exp2_roughly(x: Expr) -> Expr:
    """2^x of an f32, off by 2^-17 of itself at most, where x is from -126 to 127; 0 from -127 down, infinite from 128 on."""
    return applied("exp2_roughly", x)


def log2_roughly(x: Expr) -> Expr:
    """The logarithm of an f32 to base 2, off by 2^-21 of itself at most, or by 2^-22 if that is more; zero, infinity and the rest as in `log2`."""
    return applied("log2_roughly", x)


def rsqrt_roughly(x: Expr) -> Expr:
    """1 / sqrt(x) of an f32, off by 2^-21 of itself at most, where x is from 2^-126 on: of 0 infinite, of infinity 0, below 0 NaN."""
    return applied("rsqrt_roughly", x)


def div_roughly(a: Expr, b: Expr) -> Expr:
    """a / b of f32, off by three units in the last place at most, whatever they are."""
    return applied("div_roughly", a, b)


def sqrt_roughly(x: Expr) -> Expr:
    """sqrt(x) of an f32, off by two units in the last place at most, whatever it is."""
    return applied("sqrt_roughly", x)


def sqrt(x: Expr) -> Expr:
    """The square root, correctly rounded."""
    return applied("sqrt", x)


def floor(x: Expr) -> Expr:
    return applied("floor", x)


def ceil(x: Expr) -> Expr:
    return applied("ceil", x)


def trunc(x: Expr) -> Expr:
    return applied("trunc", x)


def rint(x: Expr) -> Expr:
    """Rounds to the nearest integer, ties to even."""
    return applied("rint", x)


def less(a: Expr, b: Expr | Number) -> Expr:
    return applied("lt", a, b)


def greater(a: Expr, b: Expr | Number) -> Expr:
    return applied("lt", b, a)


def eq(a: Expr, b: Expr | Number) -> Expr:
    return applied("eq", a, b)


def ne(a: Expr, b: Expr | Number) -> Expr:
    return applied("ne", a, b)


def is_nan(x: Expr) -> Expr:
    return applied("ne", x, x)


def quotient(a: Expr, b: Expr | Number) -> Expr:
    """The quotient of integers, rounded towards zero; undefined for a divisor of zero."""
    return applied("quotient", a, b)


def remainder(a: Expr, b: Expr | Number) -> Expr:
    """The remainder of `quotient`; undefined for a divisor of zero."""
    return applied("remainder", a, b)


def mul_high(a: Expr, b: Expr | Number) -> Expr:
    """The upper half of the product of two integers."""
    return applied("mul_high", a, b)


def popcount(x: Expr) -> Expr:
    return applied("popcount", x)


def clz(x: Expr) -> Expr:
    """How many zeros stand before the first one."""
    return applied("clz", x)


def shr_logical(a: Expr, b: Expr | Number) -> Expr:
    """Shifts right, filling with zeros. A shift by the width or more is undefined, as for `<<` and `>>`."""
    return applied("shr_logical", a, b)
