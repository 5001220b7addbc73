"""What a value is, to its type and its last bit: what calls, plans and programs are kept under.

Python says that 0.0 == -0.0 and that (1,) == (True,) == (1.0,), so values as they are would make one key of different calls.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any, TypeVar

from baracuda_kernels.core.bounded import Bounded

__all__ = ["IDENTITIES", "identity", "remembered"]

Maker = Callable[[Any], Any]
R = TypeVar("R")


def identity(value: Any) -> tuple[type, Any]:
    """A key that is equal for two values only if they have the same type and the same bits."""
    kind = type(value)
    make = IDENTITIES[kind]
    return kind, value if make is None else make(value)


def remembered(most: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Like `functools.lru_cache`, for functions whose arguments may be floating-point numbers."""

    def decorated(function: Callable[..., R]) -> Callable[..., R]:
        known = Bounded(most)

        @functools.wraps(function)
        def call(*arguments: Any) -> R:
            key = tuple(map(identity, arguments))
            try:
                found: R | None = known.get(key)
            except TypeError:  # an argument that cannot be looked up
                return function(*arguments)
            if found is None:
                found = function(*arguments)
                known.put(key, found)
            return found

        return call

    return decorated


class _Identities(dict[type, Maker | None]):
    """What makes the second half of an identity, by type; None where values of a type are told apart by `==` already."""

    def __missing__(self, kind: type) -> Maker | None:
        make = self[kind] = _maker(kind)
        return make


def _maker(kind: type) -> Maker | None:
    if issubclass(kind, tuple | list):
        return _of_sequence
    if issubclass(kind, numbers.Complex) and not issubclass(kind, numbers.Real):
        return repr
    is_of_numpy = any((base.__module__, base.__name__) == ("numpy", "generic") for base in kind.__mro__)
    if (issubclass(kind, numbers.Number) or is_of_numpy) and not issubclass(kind, numbers.Integral):
        return _of_number
    if hasattr(kind, "__array__") and not is_of_numpy:
        return _of_array
    return None


def _of_array(value: Any) -> Any:
    return [value]  # a list cannot be looked up; JAX warns where a traced array is


def _of_sequence(values: Any) -> Any:
    kinds = (*map(type, values),)
    if _TOLD_APART.issuperset(kinds):
        return kinds, (*values,)
    return (*map(identity, values),)


def _of_number(value: Any) -> Any:
    # Zeros have signs, and a NaN equals nothing.
    return value if value and value == value else repr(value)  # noqa: PLR0124


_TOLD_APART: frozenset[type] = frozenset({int, str, bool, type(None)})
IDENTITIES = _Identities(dict.fromkeys(_TOLD_APART))
