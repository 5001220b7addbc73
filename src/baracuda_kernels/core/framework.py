"""The array libraries whose arrays functions take and return, recognized by the type of an array."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core.arrays import Seer
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.turns import imported

__all__ = ["Framework", "framework_of"]


@dataclass(frozen=True)
class Framework:
    """How arrays of one library are allocated; each has a module in `interop`."""

    name: str
    maker: Callable[[Shape, ElementKind, Device], Callable[[], Any]]  # makes arrays without values
    address: Callable[[Any], int]  # of an array it made
    contiguous: str  # how a user makes `{}` contiguous
    current_stream: Callable[[Device], Stream] = Stream.on
    queued_on: Callable[[Stream], AbstractContextManager[Any]] | None = None  # memory made within belongs to that stream
    used_on: Callable[[Iterable[Any], Stream], None] | None = None  # told of arrays that a stream, maybe not theirs, will use
    finished: Callable[[Any, Any], Any] | None = None  # from what `maker` made to what the caller gets; with what he gave first
    written: Callable[[Iterable[Any]], None] | None = None  # told of the caller's arrays that were written
    derivative: Callable[[Any], str | None] | None = None  # what is being taken of an array, which results here would not have
    see_constants: Seer | None = None  # sees arrays that need none; where they always do, None
    is_traced: Callable[[Any], bool] | None = None  # whether an array stands for values that are not there yet
    trace: Callable[..., Any] | None = None  # records a call of a function with such arrays


# package, the base of its arrays, the module of interop
_KNOWN = (
    ("torch", "Tensor", "torch_arrays"),
    ("numpy", "ndarray", "numpy_arrays"),
    ("jax", "Array", "jax_arrays"),
    ("cupy", "ndarray", "cupy_arrays"),
)
_by_type: dict[type, Framework | None] = {}


def framework_of(array: Any) -> Framework | None:
    """The framework of an array; None if it is not an array of a known library."""
    kind = type(array)
    if kind not in _by_type:
        _by_type[kind] = _find(array)
    return _by_type[kind]


def _find(array: Any) -> Framework | None:
    for package, base, module in _KNOWN:
        # A library that is not imported cannot have made the array, so none is imported here.
        loaded = sys.modules.get(package)
        if loaded is not None and isinstance(array, getattr(loaded, base, ())):
            found: Framework = imported(f"baracuda_kernels.arrays.{module}").FRAMEWORK
            return found
    return None
