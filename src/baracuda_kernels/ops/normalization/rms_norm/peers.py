"""What RMSNorm is compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, PeerCall, compiled, liger
from baracuda_kernels.ops.normalization.rms_norm.descriptor import RMSNormBackwardDescriptor, RMSNormDescriptor


def rms_norm(descriptor: RMSNormDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    """PyTorch keeps no rms, and has no form that writes into given memory."""
    import torch

    x, gamma, extents, eps = operands["x"], _shaped_gamma(descriptor, operands), descriptor.row_shape, descriptor.eps

    def call(x: Any) -> Any:
        return torch.nn.functional.rms_norm(x, extents, gamma, eps)

    yield ALLOCATING, lambda: call(x)
    yield COMPILED, compiled(call, operands["y"], x)
    if gamma is not None and descriptor.norm_rank == 1:

        def make() -> PeerCall:
            from liger_kernel.ops.rms_norm import rms_norm_forward

            return lambda: rms_norm_forward(x, gamma, eps, 0.0, "llama", None)

        yield from liger(x, make)


def rms_norm_backward(descriptor: RMSNormBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
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
    if gamma is None or descriptor.norm_rank != 1:
        return
    plain_x, plain_gamma, rms = operands["x"], operands["gamma"], operands["rms"]

    def gradients(dy: Any, x: Any, gamma: Any, rms: Any) -> Any:
        """The formulas, widened to f32 and rounded once."""
        dy, x, inverse = dy.float(), x.float(), 1.0 / rms.float()
        scaled = dy * gamma.float()
        projected = (scaled * x).mean(-1, keepdim=True)
        dx = scaled * inverse - x * projected * inverse**3
        return dx, (dy * x * inverse).flatten(0, -2).sum(0)

    yield COMPILED, compiled(gradients, (operands["dx"], operands["dgamma"]), dy, plain_x, plain_gamma, rms)

    def make() -> PeerCall:
        from liger_kernel.ops.rms_norm import rms_norm_backward, rms_norm_forward

        _, _, rstd, block, warps, mode = rms_norm_forward(plain_x, plain_gamma, 1e-5, 0.0, "llama", None)
        return lambda: rms_norm_backward(dy, plain_x, plain_gamma, rstd, 0.0, mode, block, warps, False, None)

    yield from liger(dy, make)


def _shaped_gamma(descriptor: Any, operands: dict[str, Any]) -> Any:
    return operands["gamma"].detach().reshape(descriptor.row_shape) if descriptor.has_gamma else None
