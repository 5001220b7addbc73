"""PyTorch's own softmax kernels, writing into the caller's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.ops.softmax.descriptor import SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.targets.aten import DTYPES, as_torch


def forward(problem: SoftmaxDescriptor) -> Bind:
    import torch

    function = torch._softmax if problem.kind is SoftmaxKind.SOFTMAX else torch._log_softmax
    axis = problem.softmax_axis
    return _unbound(lambda x, y: function(x, axis, False, out=y))


def backward(problem: SoftmaxDescriptor) -> Bind:
    import torch

    axis, dtype = problem.softmax_axis, DTYPES[problem.element]
    if problem.kind is SoftmaxKind.SOFTMAX:
        return _unbound(lambda dy, y, dx: torch._softmax_backward_data(dy, y, axis, dtype, grad_input=dx))
    return _unbound(lambda dy, y, dx: torch._log_softmax_backward_data(dy, y, axis, dtype, out=dx))


def _unbound(call: Callable[..., Any]) -> Bind:
    import torch

    def bind(layouts: Any) -> Launch:
        def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
            with torch.no_grad(), stream.current():
                call(*as_torch(addresses, layouts))

        return launch

    return bind
