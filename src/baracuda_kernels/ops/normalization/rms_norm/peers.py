"""What RMSNorm is timed beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.bench.peers import ALLOCATING, COMPILED, Call, compiled
from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor


def rms_norm(descriptor: RMSNormDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    """PyTorch keeps no rms, and has no form that writes into given memory."""
    import torch

    x, gamma, extents, eps = operands["x"], _shaped_gamma(descriptor, operands), descriptor.row_shape, descriptor.eps

    def call(x: Any) -> Any:
        return torch.nn.functional.rms_norm(x, extents, gamma, eps)

    yield ALLOCATING, lambda: call(x)
    yield COMPILED, compiled(call, operands["y"], x)


def rms_norm_backward(descriptor: RMSNormBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    """Autograd over a graph that was built beforehand."""
    import torch

    dy, x, gamma = operands["dy"], operands["x"].detach().requires_grad_(), _shaped_gamma(descriptor, operands)
    inputs = [x] if gamma is None else [x, gamma.requires_grad_()]
    graph: list[Any] = []

    def call() -> Any:
        if not graph:
            graph.append(torch.nn.functional.rms_norm(x, descriptor.row_shape, gamma, 1e-5))
        return torch.autograd.grad(graph[0], inputs, dy, retain_graph=True)

    yield ALLOCATING, call


def _shaped_gamma(descriptor: Any, operands: dict[str, Any]) -> Any:
    return operands["gamma"].detach().reshape(descriptor.row_shape) if descriptor.has_gamma else None
