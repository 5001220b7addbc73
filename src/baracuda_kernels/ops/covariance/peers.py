"""What covariances are compared with in the bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, JAX, PeerCall, compiled, jitted
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor, CovKind


def _pytorchs(descriptor: CovDescriptor, operands: dict[str, Any]) -> Callable[[Any], Any]:
    import torch

    if descriptor.kind is CovKind.CORRCOEF:
        return torch.corrcoef
    given: dict[str, Any] = {
        "fweights": operands.get("fweights"),
        "aweights": operands.get("aweights"),
        "correction": descriptor.correction,
    }
    return lambda x: torch.cov(x, **given)


def cov(descriptor: CovDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    x, function = operands["input"], _pytorchs(descriptor, operands)
    yield ALLOCATING, lambda: function(x)
    yield COMPILED, compiled(function, operands["result"], x)
    if not descriptor.is_weighted and descriptor.correction == 1:
        yield JAX, jitted(lambda jax: getattr(jax.numpy, descriptor.kind.value), x)


def cov_backward(descriptor: CovBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    x = operands["input"].detach().clone().requires_grad_()
    graph: list[Any] = []
    function = _pytorchs(descriptor, operands)

    def autograd() -> object:
        if not graph:  # the forward is not timed
            with torch.enable_grad():
                graph.append(function(x))
        return torch.autograd.grad(graph[0], x, operands["d_result"], retain_graph=True)

    yield ALLOCATING, autograd
