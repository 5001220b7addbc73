"""Functions with a weight for each channel, which lie along axis 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.ops.elementwise.table_functions import Elementwise

__all__ = ["ByChannel"]


class ByChannel(Elementwise):
    """A weight of rank 1 is a view of itself along axis 1, as in PyTorch; any other broadcasts."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().__call__(*given, **named)

    def select(self, *given: Any, **named: Any) -> Any:
        given, named = self.spread(given, named)
        return super().select(*given, **named)

    def spread(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with the weight as it broadcasts."""
        first, second = self.inputs
        x = given[0] if given else named.get(first)
        weight: Any = given[1] if len(given) > 1 else named.get(second)
        shape, extents = getattr(x, "shape", None), tuple(getattr(weight, "shape", ()))
        if shape is None or len(extents) != 1 or 1 <= len(shape) <= 2:  # as it broadcasts already
            return given, dict(named)
        if len(shape) == 0 and extents != (1,):
            raise InvalidProblem(self.name, [Reason(ReasonCode.SHAPE, second, extents, "one weight, for one element")])
        placed = weight.reshape((*extents, *[1] * (len(shape) - 2)) if len(shape) else ())
        if len(given) > 1:
            return (given[0], placed, *given[2:]), dict(named)
        return given, {**named, second: placed}
