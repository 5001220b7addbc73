"""Functions that make another call of the one they are given: of elements that are cast first, of an array of rank 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.framework import framework_of
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.view import element_from

__all__ = ["AlongAxis", "Converting"]

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


class AlongAxis(Function):
    """A function along one axis, to which arrays of rank 0 are arrays of one element."""

    def _first(self, seers: Any, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        arrays = [value for value in (*given, *named.values()) if framework_of(value) is not None]
        if not arrays or any(array.ndim for array in arrays):
            return super()._first(seers, given, named, out, preference, stream)
        whole = tuple(map(_lifted, given)), {name: _lifted(value) for name, value in named.items()}
        outs = tuple(map(_lifted, out)) if isinstance(out, tuple | list) else _lifted(out)
        results = super()._first(seers, *whole, outs, preference, stream)
        if out is not None:
            return out
        return tuple(each[0] for each in results) if isinstance(results, tuple) else results[0]


def _lifted(value: Any) -> Any:
    return value if framework_of(value) is None else value.reshape(1)


class Converting(Function):
    """A function whose elements may be cast first, by a separate call, to the `dtype` that it is given."""

    CALLS = ("cast",)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if "dtype" in named:
            given, named = self.spread(given, named, registry.function("cast"))
        return super().__call__(*given, **named)

    def spread(
        self, given: tuple[Any, ...], named: Mapping[str, Any], cast: Callable[..., Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with elements of that `dtype`, which it still names: autocast leaves them as they were asked for."""
        if named.get("dtype") is None:
            return given, dict(named)
        element = element_from(self.name, "dtype", named["dtype"])
        first = next(iter(self.inputs))
        if given:
            return (cast(given[0], element), *given[1:]), dict(named)
        return given, {**named, **({first: cast(named[first], element)} if first in named else {})}
