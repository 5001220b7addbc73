"""`fuse`: a Python function of a few numbers as one function on arrays.

    scaled = bk.fuse(lambda x, y: bk.gelu(x) * y + 1)
    z = scaled(x, y)

It is traced once for each element. Python's operators and the functions of the tables work on what it is given.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View, broadcast_shape
from baracuda_kernels.ops.fusion.fusion import (
    MOST_OPERANDS,
    NAMES,
    FusedBackwardPlan,
    FusedPlan,
    backward_program_for,
    program_for,
)

__all__ = ["Fused", "fuse"]


class Fused(Function):
    """A function that `fuse` has made."""

    in_torch = "baracuda_kernels.torch.fuse of it"


def fuse(formula: Callable[..., Any], *, wide: bool = False) -> Fused:
    """A function of one to six arrays, every element of which is computed by `formula` in one kernel, with its gradients.

    Arrays have one element; they are broadcast like NumPy's. f16 and bf16 are computed in f32; `wide`, f32 is computed in f64.
    """
    if not inspect.isfunction(formula) and not inspect.ismethod(formula):
        got = type(formula).__name__
        raise InvalidProblem("fuse", [Reason(ReasonCode.WRONG_TYPE, "formula", got, "a Python function of its operands")])
    count = len(inspect.signature(formula).parameters)
    if not 1 <= count <= MOST_OPERANDS:
        got, wanted = f"a function of {count} operands", f"one of 1 to {MOST_OPERANDS}"
        raise InvalidProblem("fuse", [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "formula", got, wanted)])
    identity = "".join(program_for(formula, count, element, wide).text() for element in FLOATS)
    name = f"fused_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    backward = _function(f"{name}_backward", ("d_result",), count, FusedBackwardPlan, None, formula, wide)
    return _function(name, (), count, FusedPlan, backward.name, formula, wide)


def _function(
    name: str, leading: tuple[str, ...], count: int, plan: Any, gradient: str | None, formula: Callable[..., Any], wide: bool
) -> Fused:
    names = (*leading, *NAMES[:count])
    make = backward_program_for if leading else program_for

    @functools.cache
    def text(element: ElementKind) -> str:
        return make(formula, count, element, wide).text()

    def describe(**given: Any) -> Any:
        operands = {each: given[each] for each in names}
        element = operands[names[0]].element
        if element not in FLOATS:
            raise InvalidProblem(name, [Reason(ReasonCode.ELEMENT, names[0], element, " or ".join(map(str, FLOATS)))])
        return plan.descriptor_type(text(element), broadcast_shape(name, operands), element)

    kinds = inspect.Parameter
    parameters = [kinds(each, kinds.POSITIONAL_OR_KEYWORD, annotation=View) for each in names]
    absent = [kinds(each, kinds.KEYWORD_ONLY, annotation=View, default=None) for each in NAMES[count:]]
    describe.__signature__ = inspect.Signature([*parameters, *absent])  # type: ignore[attr-defined] # as inspect looks for it
    describe.__name__ = describe.__qualname__ = name
    describe.__module__ = formula.__module__ or "__main__"  # it is the caller's, and none of the library's functions
    describe.__doc__ = "The gradients of a fused function." if leading else inspect.getdoc(formula) or "A fused function."
    return Fused(describe, plan, gradient)
