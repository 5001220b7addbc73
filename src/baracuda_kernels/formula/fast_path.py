"""Fast paths: formulas without the expensive parts that few arguments need."""

from __future__ import annotations

import functools

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Program, in_order, make

__all__ = ["usual"]


@functools.cache
def usual(program: Program) -> Program | None:
    """The program without its `rarely` choices (the fast path); one more result says whether any is taken. None if it has none."""
    done: dict[Expr, Expr] = {}
    asked: dict[Expr, Expr] = {}  # the conditions, by what is chosen
    for here in in_order(program.results):
        args = tuple(done[arg] for arg in here.args)
        if here.operation == "rarely":
            done[here], asked[here] = args[2], args[0]
        else:
            done[here] = here if args == here.args else make(here.operation, here.element, args, here.value)
    if not asked:
        return None
    conditions = list(dict.fromkeys(asked[here] for here in _reached(program)))
    flag = functools.reduce(lambda one, other: one | other, conditions)
    return Program(
        program.inputs,
        (*program.outputs, ElementKind.BOOL),
        (*(done[result] for result in program.results), flag),
        program.parameters,
    )


def _reached(program: Program) -> list[Expr]:
    """The choices that remain on the fast path."""
    seen: dict[Expr, None] = {}
    stack = list(reversed(program.results))
    while stack:
        here = stack.pop()
        if here not in seen:
            seen[here] = None
            stack += (here.args[2], here.args[0]) if here.operation == "rarely" else here.args
    return [here for here in seen if here.operation == "rarely"]
