"""Complex numbers in formulas. An expression of a complex element is written like any other; a kernel is made of its two parts, which are real.

Three operations lead from one to the other, and only they are left of complex numbers in what a backend sees: `real` and `imag` of an operand
that is read, and `complex`, both parts of a result that is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Number, Program, constant, input_of, make, number_beside, traced_like

__all__ = [
    "IN_PARTS",
    "PARTS",
    "conj",
    "imag",
    "in_words",
    "is_complex",
    "joined",
    "of_parts",
    "operands_of",
    "real",
    "timed",
    "whole_of",
]

PARTS = ("real", "imag", "complex")
WORD = ElementKind.I64  # what a complex number of f32 is read and written as, where there is nothing better
_WHOLE = {ElementKind.F32: ElementKind.C64, ElementKind.F64: ElementKind.C128}


def whole_of(element: ElementKind) -> ElementKind:
    """The complex element with such parts."""
    return _WHOLE[element]


def is_complex(x: Expr | Number) -> bool:
    return x.element.is_complex if isinstance(x, Expr) else isinstance(x, complex)


def real(z: Expr) -> Expr:
    """The real part; of real numbers, the number itself."""
    return _part(z, 0)


def imag(z: Expr) -> Expr:
    """The imaginary part; of real numbers 0."""
    return _part(z, 1)


def _part(z: Expr, place: int) -> Expr:
    if not z.element.is_complex:
        return constant(0, z.element) if place else z
    if z.operation == "complex":
        return traced_like(z.args[place], z)
    if z.operation == "constant":
        value = complex(z.value or 0)
        return constant(value.imag if place else value.real, z.element.part)
    return make(PARTS[place], z.element.part, (z,))


def joined(re: Expr | Number, im: Expr | Number) -> Expr:
    """The complex number of these parts, at least one of them an expression."""
    like = re if isinstance(re, Expr) else im
    assert isinstance(like, Expr)
    first, second = (each if isinstance(each, Expr) else number_beside(each, like) for each in (re, im))
    if like.element not in _WHOLE or first.element is not second.element:
        raise TypeError(f"complex: got {first.element} and {second.element}, wanted two parts of f32 or of f64")
    return make("complex", _WHOLE[like.element], (first, second))


def of_parts(operation: str, *args: Expr) -> Expr:
    """One of the operations that lead from complex numbers to their parts and back."""
    return joined(*args) if operation == "complex" else _part(args[0], PARTS.index(operation))


def conj(z: Expr) -> Expr:
    """The conjugate; of real numbers, the number itself."""
    return joined(real(z), -imag(z)) if z.element.is_complex else z


def timed(z: Expr, i: int) -> Expr:
    """z by i or by -i, exactly."""
    return joined(-imag(z), real(z)) if i > 0 else joined(imag(z), -real(z))


# --- what operations come to ---------------------------------------------------------------------------------------------------
# Beside a complex operand a real one is not made complex: what is 0 is neither added nor multiplied, where signs and infinities would suffer.


def _each(of_part: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda *args: joined(of_part(*map(real, args)), of_part(*map(imag, args)))


def _add(a: Expr, b: Expr) -> Expr:
    both = is_complex(a) and is_complex(b)
    return joined(real(a) + real(b), imag(a) + imag(b) if both else imag(a if is_complex(a) else b))


def _sub(a: Expr, b: Expr) -> Expr:
    if not is_complex(a):
        return joined(a - real(b), -imag(b))
    return joined(real(a) - real(b), imag(a) - imag(b) if is_complex(b) else imag(a))


def _mul(a: Expr, b: Expr) -> Expr:
    """As PyTorch and NumPy have it: infinities are not restored where a sum of products is NaN."""
    if not is_complex(a) or not is_complex(b):
        factor, z = (b, a) if is_complex(a) else (a, b)
        return joined(real(z) * factor, imag(z) * factor)
    return joined(real(a) * real(b) - imag(a) * imag(b), real(a) * imag(b) + imag(a) * real(b))


def _div(a: Expr, b: Expr) -> Expr:
    """Smith's: by the ratio of the divisor's parts, whose squares need not be numbers. By zero, both parts are divided by it."""
    from baracuda_kernels.formula.operations import absolute, eq, where

    if not is_complex(b):
        return joined(real(a) / b, imag(a) / b)
    c, d = real(b), imag(b)
    across = absolute(c) < absolute(d)
    most, least = where(across, d, c), where(across, c, d)
    is_zero = eq(most, 0)
    ratio = where(is_zero, 0, least / most)
    whole = where(is_zero, absolute(most), most + least * ratio)
    if not is_complex(a):
        return joined(where(across, a * ratio, a) / whole, -(where(across, a, a * ratio) / whole))
    x, y = where(across, imag(a), real(a)), where(across, real(a), imag(a))
    turned = y - x * ratio
    return joined((x + y * ratio) / whole, where(across, -turned, turned) / whole)


def _fma(a: Expr, b: Expr, c: Expr) -> Expr:
    from baracuda_kernels.formula.operations import fma

    factor, z = (a, b) if is_complex(b) else (b, a)
    if is_complex(factor) or not is_complex(z):
        return _add(_mul(a, b) if is_complex(z) else a * b, c)
    return joined(fma(factor, real(z), real(c)), fma(factor, imag(z), imag(c)) if is_complex(c) else factor * imag(z))


def _eq(a: Expr, b: Expr) -> Expr:
    from baracuda_kernels.formula.operations import eq

    return eq(real(a), real(b)) & eq(imag(a), imag(b))


def _ne(a: Expr, b: Expr) -> Expr:
    from baracuda_kernels.formula.operations import ne

    return ne(real(a), real(b)) | ne(imag(a), imag(b))


def _chosen(operation: str) -> Callable[..., Expr]:
    def choice(condition: Expr, a: Expr, b: Expr) -> Expr:
        from baracuda_kernels.formula import operations

        choose = getattr(operations, operation)
        return joined(choose(condition, real(a), real(b)), choose(condition, imag(a), imag(b)))

    return choice


# Of operands that are read, or are `complex` themselves. Those that come to functions are added where these are: `absolute`, `sqrt`.
IN_PARTS: dict[str, Callable[..., Expr]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "fma": _fma, "neg": _each(lambda x: -x),
    "eq": _eq, "ne": _ne, "where": _chosen("where"), "rarely": _chosen("rarely"),
}  # fmt: skip


# --- for backends that have no complex numbers ---------------------------------------------------------------------------------


@functools.cache
def in_words(program: Program) -> Program:
    """The program with complex numbers of f32 as words of 64 bits, and those of f64 as two operands, one part after the other."""
    if not any(element.is_complex for element in (*program.inputs, *program.outputs)):
        return program
    inputs, outputs = ([held for element in elements for held in _held(element)] for elements in (program.inputs, program.outputs))
    starts = [sum(len(_held(element)) for element in program.inputs[:place]) for place in range(len(program.inputs))]

    def read(leaf: Expr) -> tuple[Expr, Expr]:
        place = int(leaf.value or 0)
        first = starts[place]
        if leaf.element is ElementKind.C64:
            return _parts_of_word(input_of(first, WORD))
        return input_of(first, ElementKind.F64), input_of(first + 1, ElementKind.F64)

    done: dict[Expr, Expr] = {}
    for here in program.order:
        if here.operation == "input":
            done[here] = joined(*read(here)) if here.element.is_complex else input_of(starts[int(here.value or 0)], here.element)
        elif here.operation in ("real", "imag"):
            done[here] = _part(done[here.args[0]], PARTS.index(here.operation))
        else:
            done[here] = make(here.operation, here.element, tuple(done[arg] for arg in here.args), here.value)
    results: list[Expr] = []
    for result, element in zip(program.results, program.outputs, strict=True):
        found = done[result]
        parts = (found,) if not element.is_complex else (real(found), imag(found))
        results += (_word(*parts),) if element is ElementKind.C64 else parts
    return Program(tuple(inputs), tuple(outputs), tuple(results), program.parameters)


def operands_of(element: ElementKind) -> int:
    """How many operands hold such elements, in words."""
    return len(_held(element))


def _held(element: ElementKind) -> tuple[ElementKind, ...]:
    return (WORD,) if element is ElementKind.C64 else (element.part,) * (1 + element.is_complex)


def _word(re: Expr, im: Expr) -> Expr:
    """Both parts as one word, the first in the lower half, as they lie in memory."""
    from baracuda_kernels.formula.operations import bitcast, convert

    low, high = (convert(bitcast(part, ElementKind.I32), WORD) for part in (re, im))
    return (high << 32) | (low & (1 << 32) - 1)


def _parts_of_word(word: Expr) -> tuple[Expr, Expr]:
    from baracuda_kernels.formula.operations import bitcast, convert

    low, high = (bitcast(convert(half, ElementKind.I32), ElementKind.F32) for half in (word, word >> 32))
    return low, high
