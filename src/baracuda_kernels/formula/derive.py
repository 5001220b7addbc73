"""Derivatives of formulas, and formulas without functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, constant, in_order, make
from baracuda_kernels.formula.function import FUNCTIONS, ROUGH
from baracuda_kernels.formula.operations import convert, div_roughly, sqrt_roughly, where

__all__ = ["expanded", "expanded_gradients", "gradients", "has_reciprocal"]


def _zero(like: Expr) -> Expr:
    return constant(0, like.element)


# The gradient of each operand from that of the result, the result and the operands. What is not here has none.
_RULES: dict[str, Callable[..., tuple[Expr | None, ...]]] = {
    "add": lambda d, y, a, b: (d, d),
    "sub": lambda d, y, a, b: (d, -d),
    "mul": lambda d, y, a, b: (d * b, d * a),
    "div": lambda d, y, a, b: (d / b, -(d * y / b)),
    "neg": lambda d, y, x: (-d,),
    "absolute": lambda d, y, x: (where(x < 0, -d, where(x > 0, d, x * 0)),),
    "fma": lambda d, y, a, b, c: (d * b, d * a, d),
    "sqrt": lambda d, y, x: (d / (y + y),),
    "where": lambda d, y, c, a, b: (None, where(c, d, _zero(d)), where(c, _zero(d), d)),
    "rarely": lambda d, y, c, a, b: (None, where(c, d, _zero(d)), where(c, _zero(d), d)),
    "convert": lambda d, y, x: (convert(d, x.element) if x.element.is_float and y.element.is_float else None,),
}


def gradients(result: Expr, inputs: Sequence[Expr], upstream: Expr) -> list[Expr]:
    """The gradient of each input, from that of the result."""
    order = in_order((result,))
    known: dict[Expr, Expr] = {result: upstream}
    for here in reversed(order):
        of_result = known.get(here)
        if of_result is None:
            continue
        rule: Any = FUNCTIONS[here.operation].gradient if here.operation in FUNCTIONS else _RULES.get(here.operation)
        if rule is None:
            continue
        found = rule(of_result, here, *here.args)
        for arg, more in zip(here.args, found if isinstance(found, tuple) else (found,), strict=True):
            if more is not None:
                known[arg] = known[arg] + more if arg in known else more
    return [known.get(each, _zero(each)) for each in inputs]


def expanded(results: Sequence[Expr], rough: bool = False) -> tuple[Expr, ...]:
    """The results with functions replaced by operations; `rough` where every result is rounded to a 16-bit float."""
    done: dict[Expr, Expr] = {}
    for here in in_order(tuple(results)):
        args = tuple(done[arg] for arg in here.args)
        if here.operation in FUNCTIONS:
            is_rough = rough and here.operation in ROUGH and here.element is ElementKind.F32
            expansion = ROUGH[here.operation] if is_rough else FUNCTIONS[here.operation].expansion
            done[here] = expanded((expansion(*args),), rough)[0]  # it may use other functions
        else:
            done[here] = here if args == here.args else make(here.operation, here.element, args)
    return tuple(done[result] for result in results)


def expanded_gradients(
    results: Sequence[Expr], rough: bool = False, reciprocals: Mapping[Expr, Expr] | None = None
) -> tuple[Expr, ...]:
    """The same of gradients, which need not be those of a quotient that is rounded correctly: where that is `rough`, divisions and roots are,
    and products by `reciprocals` take the place of divisions by what these are of."""
    found = expanded(results, rough)
    return _roughened(found, reciprocals or {}) if rough else found


_EXACT = ("floor", "ceil", "trunc", "rint", "bitcast")  # what may jump if an operand is a little off, as booleans and integers may


def _roughened(results: tuple[Expr, ...], reciprocals: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """Uses approximate divisions and roots of f32, except where a discontinuous operation depends on them."""
    order = in_order(results)
    exact: set[Expr] = set()
    for here in reversed(order):
        if here in exact or here.operation in _EXACT or not here.element.is_float:
            exact.update(here.args)
    done: dict[Expr, Expr] = {}
    for here in order:
        args = tuple(done[arg] for arg in here.args)
        if here.element is not ElementKind.F32 or here in exact or here.operation not in ("div", "sqrt"):
            done[here] = here if args == here.args else make(here.operation, here.element, args)
        else:
            done[here] = _quotient_roughly(reciprocals, *args) if here.operation == "div" else sqrt_roughly(*args)
    return tuple(done[result] for result in results)


def has_reciprocal(number: float) -> bool:
    """Whether a product by its reciprocal is as good as a rough division by it."""
    return 2.0**-100 < abs(number) < 2.0**100


def _quotient_roughly(reciprocals: Mapping[Expr, Expr], a: Expr, b: Expr) -> Expr:
    if b.operation == "constant" and b.value is not None and has_reciprocal(b.value):
        return a * (1 / float(b.value))
    return a * reciprocals[b] if b in reciprocals else div_roughly(a, b)
