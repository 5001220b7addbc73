"""Calls that become other calls: of elements that are cast first, of an array of rank 0, of a name that several functions share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.arguments import renamed, synonyms_of
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.framework import framework_of
from baracuda_kernels.core.function import COMMON, Function
from baracuda_kernels.core.view import element_from

__all__ = ["AlongAxis", "Converting", "OneOf"]

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

    def meant(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        given, named = super().meant(given, named)
        array: Any = given[0] if given else named.get(next(iter(self.inputs)))
        if named.get("dtype") is None or framework_of(array) is None:
            return given, named
        is_cast = ElementKind.of(array.dtype) is element_from(self.name, "dtype", named["dtype"])
        if is_cast:
            return given, named
        return self.spread(given, named, registry.function("cast"))

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


class OneOf:
    """A name that several functions share: which one is called, the arguments say.

    @OneOf
    def max(named, input, dim=None, keepdim=False):
        '''What it computes.'''
        return "amax", {"input": input, "dim": dim, "keepdim": keepdim}

    `named` are the arguments that were given by name, as they were.
    """

    def __init__(self, choose: Callable[..., tuple[str, dict[str, Any]]]) -> None:
        self.choose, self.name = choose, choose.__name__
        self.__name__ = self.__qualname__ = choose.__name__
        self.__doc__, self.__module__ = choose.__doc__, choose.__module__
        self.public = inspect.Signature(list(inspect.signature(choose).parameters.values())[1:])
        common = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COMMON]
        self.__signature__ = self.public.replace(parameters=[*self.public.parameters.values(), *common])
        self.synonyms = synonyms_of(self.public.parameters)
        self._places = list(self.public.parameters)
        registry.register_shared(self)

    def __call__(self, *given: Any, **named: Any) -> Any:
        name, arguments = self.chosen(given, named)
        return registry.function(name)(**arguments)

    def select(self, *given: Any, **named: Any) -> Any:
        """The plan that such a call runs."""
        name, arguments = self.chosen(given, named)
        return registry.function(name).select(**arguments)

    def chosen(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The function that is called, and its arguments by their names."""
        common = {name: named[name] for name in COMMON if name in named}
        own = {name: named[name] for name in named if name not in common}
        if [name for name in own if name in self.synonyms]:
            own = renamed(self.name, self.synonyms, self._places[: len(given)], own)
        try:
            name, arguments = self.choose(named, *given, **own)
        except TypeError:
            try:
                self.public.bind(*given, **own)
            except TypeError as cause:
                raise TypeError(f"{self.name}: {cause}") from None
            raise
        return name, {**arguments, **common}

    def call_text(self) -> str:
        """How it is called, without what every function takes."""
        return f"{self.name}{self.public}"

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<function {self.name}{self.__signature__}>"
