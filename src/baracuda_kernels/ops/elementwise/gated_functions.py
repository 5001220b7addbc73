"""Gated activations as functions: of two tensors, or of one whose halves they are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View, axis_of
from baracuda_kernels.ops.elementwise.table_functions import Elementwise

__all__ = ["GatedActivation"]

Call = tuple[tuple[Any, ...], dict[str, Any]]


class GatedActivation(Elementwise):
    """Of one array it takes the halves along `dim`, as views of its memory."""

    MORE = (
        inspect.Parameter("gate", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=View, default=None),
        inspect.Parameter("dim", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int, default=-1),
    )

    def __call__(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().__call__(*given, **named)

    def select(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().select(*given, **named)

    def spread(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
        """The call with both operands. In place of the second one the axis may stand, as it does in PyTorch."""
        rest = dict(named)
        whole = given[0] if given else rest.get("input")
        gate = given[1] if len(given) > 1 else rest.get("gate")
        if gate is not None and not isinstance(gate, int):
            if rest.get("dim", -1) != -1 or len(given) > 2:
                wanted = "None, where dim says which halves of the first operand are meant"
                raise InvalidProblem(self.name, [Reason(ReasonCode.UNEXPECTED_OPERAND, "gate", "an array", wanted)])
            return given, rest
        if not hasattr(whole, "shape") or len(given) > 2:
            return given, rest
        dim = rest.pop("dim", -1) if gate is None else gate
        for name in ("input", "gate"):
            rest.pop(name, None)
        return self._halves(whole, dim), rest

    def _halves(self, whole: Any, dim: Any) -> tuple[Any, Any]:
        shape = tuple(whole.shape)
        axis = axis_of(self.name, len(shape), dim, "dim")
        if shape[axis] % 2:
            raise InvalidProblem(self.name, [Reason(ReasonCode.SHAPE, "input", shape, f"an even extent along dim {axis}")])
        if hasattr(whole, "chunk"):  # one step for PyTorch's autograd
            first, second = whole.chunk(2, axis)
            return first, second
        before, middle = (slice(None),) * axis, shape[axis] // 2
        return whole[(*before, slice(0, middle))], whole[(*before, slice(middle, None))]
