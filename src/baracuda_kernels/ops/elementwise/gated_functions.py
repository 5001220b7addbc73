"""Gated activations as functions: of two tensors, or of one whose halves they are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View, axis_of
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow
from baracuda_kernels.ops.elementwise.table_functions import Elementwise

__all__ = ["GatedActivation"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class GatedActivation(Elementwise):
    """Of one array it takes the halves along `dim`, as views of its memory."""

    @staticmethod
    def more(row: ElementwiseRow) -> Sequence[inspect.Parameter]:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return (
            inspect.Parameter(row.operands[1], kind, annotation=View, default=None),
            inspect.Parameter("dim", kind, annotation=int, default=-1),
        )

    def __call__(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().__call__(*given, **named)

    def select(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().select(*given, **named)

    def spread(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        """The call with both operands. In place of the second one the axis may stand, as it does in PyTorch."""
        rest = dict(named)
        first, second = self.inputs
        whole = given[0] if given else rest.get(first)
        other = given[1] if len(given) > 1 else rest.get(second)
        if other is not None and not isinstance(other, int):
            if rest.get("dim", -1) != -1 or len(given) > 2:
                wanted = "None, where dim says which halves of the first operand are meant"
                raise InvalidProblem(self.name, [Reason(ReasonCode.UNEXPECTED_OPERAND, second, "an array", wanted)])
            return given, rest
        twice = [name for name in (first, second)[: len(given)] if name in rest]
        former = [name for name in self.former if name in rest and name not in self.inputs]
        if not hasattr(whole, "shape") or len(given) > 2 or twice or former:
            return given, rest  # what is wrong is said there
        dim = rest.pop("dim", -1) if other is None else other
        for name in self.inputs:
            rest.pop(name, None)
        return self._halves(whole, dim), rest

    def _halves(self, whole: Any, dim: Any) -> tuple[Any, Any]:
        shape = tuple(whole.shape)
        axis = axis_of(self.name, len(shape), dim, "dim")
        if shape[axis] % 2:
            raise InvalidProblem(
                self.name, [Reason(ReasonCode.SHAPE, next(iter(self.inputs)), shape, f"an even extent along dim {axis}")]
            )
        if hasattr(whole, "chunk"):  # one step for PyTorch's autograd
            first, second = whole.chunk(2, axis)
            return first, second
        before, middle = (slice(None),) * axis, shape[axis] // 2
        return whole[(*before, slice(0, middle))], whole[(*before, slice(middle, None))]
