"""JAX's arrays, on the CPU. They are immutable, so results are computed in NumPy arrays and passed on without a copy."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable
from typing import Any

import jax

from baracuda_kernels.arrays.numpy_arrays import address, dtype_of
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import aligned_bytes
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.framework import Framework
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.turns import imported


def maker(shape: Shape, element: ElementKind, device: Device) -> Callable[[], Any]:
    if device.kind is not DeviceKind.CPU:
        wanted = "arrays on the CPU; elsewhere, torch.from_dlpack(array) is a PyTorch tensor over the same memory"
        raise rejection("JAX", [Reason(ReasonCode.OTHER_DEVICE, "JAX", device, wanted)])
    dtype = dtype_of(element)
    size = math.prod(shape) * dtype.itemsize

    def make() -> Any:
        return aligned_bytes(size).view(dtype).reshape(shape)  # JAX takes over no other memory

    return make


def finished(array: Any, like: Any) -> Any:
    """On the device of an array that was given."""
    source, _ = like  # the array, and the capsule through which it was seen
    with wide_types() if array.dtype.itemsize >= 8 else contextlib.nullcontext():
        return jax.device_put(array, next(iter(source.devices())))


def wide_types(wide: bool = True) -> Any:
    """A context: JAX narrows 64-bit numbers unless told otherwise, even where it was given some."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(wide)
    return importlib.import_module("jax.experimental").enable_x64(wide)


def is_traced(array: Any) -> bool:
    return isinstance(array, jax.core.Tracer)


def trace(*call: Any) -> Any:
    return imported("baracuda_kernels.arrays.jax_tracing").trace(*call)


FRAMEWORK = Framework("JAX", maker, address, "jax.numpy.array({}, copy=True)", finished=finished, is_traced=is_traced, trace=trace)
