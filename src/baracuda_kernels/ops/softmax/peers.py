"""What the softmax family is compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, JAX, PeerCall, compiled, jitted, liger
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor, SoftmaxKind


def softmax(descriptor: SoftmaxDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    x, y, axis = operands["x"], operands["y"], descriptor.softmax_axis
    name = "softmax" if descriptor.kind is SoftmaxKind.SOFTMAX else "log_softmax"
    function = getattr(torch, name)
    yield ALLOCATING, lambda: function(x, axis)
    yield GIVEN, lambda: function(x, axis, out=y)
    yield COMPILED, compiled(lambda x: function(x, axis), y, x)
    yield JAX, jitted(lambda jax: lambda x: getattr(jax.nn, name)(x, axis), x)
    if _liger_serves(descriptor):

        def make() -> PeerCall:
            from liger_kernel.ops.softmax import _softmax_forward

            return lambda: _softmax_forward(x)

        yield from liger(x, make)


def softmax_backward(descriptor: SoftmaxDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    dy, y, dx, axis = operands["dy"], operands["y"], operands["dx"], descriptor.softmax_axis
    is_softmax = descriptor.kind is SoftmaxKind.SOFTMAX
    function: Any = torch._softmax_backward_data if is_softmax else torch._log_softmax_backward_data
    output = {"grad_input" if is_softmax else "out": dx}
    yield ALLOCATING, lambda: function(dy, y, axis, dy.dtype)
    yield GIVEN, lambda: function(dy, y, axis, dy.dtype, **output)
    yield COMPILED, compiled(lambda dy, y: function(dy, y, axis, dy.dtype), dx, dy, y)
    yield JAX, jitted(lambda jax: _jax_gradient(jax, descriptor), dy, y)
    if _liger_serves(descriptor):

        def make() -> PeerCall:
            from liger_kernel.ops.softmax import _softmax_backward, _softmax_forward

            _, *settings = _softmax_forward(y)
            return lambda: _softmax_backward(dy, y, *settings)

        yield from liger(dy, make)


def _liger_serves(descriptor: SoftmaxDescriptor) -> bool:
    return descriptor.kind is SoftmaxKind.SOFTMAX and descriptor.softmax_axis == len(descriptor.input_shape) - 1


def _jax_gradient(jax: Any, descriptor: SoftmaxDescriptor) -> Any:
    """The formulas, 16-bit floats widened to f32 and rounded once."""
    axis = descriptor.softmax_axis

    def gradient(dy: Any, y: Any) -> Any:
        wide = jax.numpy.promote_types(dy.dtype, "float32")
        dy, y, narrow = dy.astype(wide), y.astype(wide), dy.dtype
        if descriptor.kind is SoftmaxKind.SOFTMAX:
            return (y * (dy - (y * dy).sum(axis, keepdims=True))).astype(narrow)
        return (dy - jax.numpy.exp(y) * dy.sum(axis, keepdims=True)).astype(narrow)

    return gradient
