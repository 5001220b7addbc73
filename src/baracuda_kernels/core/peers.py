"""What the kernels are compared with in the bench. Each op package declares its own in `peers.py`:

a function named like the op, taking the descriptor and the operands (PyTorch tensors by name, outputs included), that
yields the peers' names and zero-argument callables. Nothing costly happens before a callable's first call.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.registry import op_name

ALLOCATING = "PyTorch"
GIVEN = "PyTorch, given memory"
COMPILED = "torch.compile"
JAX = "JAX"
LIGER = "Liger"

PeerCall = Callable[[], object]


class PeerUnavailable(Exception):
    """A peer that cannot run here, and why."""


def peers_of(plan: type[Plan[Any, Any]], descriptor: Any, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    """The peers that the op's package declares, if any."""
    package = plan.__module__.rpartition(".")[0]
    if importlib.util.find_spec(f"{package}.peers") is None:
        return
    declared = getattr(importlib.import_module(f"{package}.peers"), op_name(plan), None)
    if declared is not None:
        yield from declared(descriptor, operands)


def compiled(function: Callable[..., Any], output: Any, *inputs: Any) -> PeerCall:
    """`function(*inputs)` through torch.compile, into the given output, or several of each."""
    outputs = output if isinstance(output, tuple) else (output,)

    def into(outputs: tuple[Any, ...], *inputs: Any) -> None:
        results = function(*inputs)
        for given, result in zip(outputs, results if isinstance(results, tuple) else (results,), strict=True):
            given.copy_(result)

    def set_up() -> PeerCall:
        if not any(map(shutil.which, ("c++", "g++", "clang++"))):
            raise PeerUnavailable("no C++ compiler found")
        call = compiled_when_called(into)
        return lambda: call(outputs, *inputs)

    return _set_up_when_called(set_up)


def compiled_when_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` through torch.compile, which fails or not in the first call."""
    ready: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if ready:
            return ready[0](*arguments)
        import torch

        torch._dynamo.reset()  # the cache is per function and short; each problem starts afresh
        made = torch.compile(function, dynamic=False)
        try:
            result = made(*arguments)
        except torch._dynamo.exc.BackendCompilerFailed as failure:
            raise PeerUnavailable(str(failure.inner_exception).partition("\n")[0]) from failure
        ready.append(made)
        return result

    return call


def differentiated(function: Callable[..., Any], upstream: Any, *inputs: Any) -> PeerCall:
    """PyTorch's gradients of `function(*inputs)`, through a graph that is recorded before any timing."""

    def set_up() -> PeerCall:
        import torch

        leaves = [each.detach().requires_grad_() for each in inputs]
        result = function(*leaves)

        def call() -> Any:
            return torch.autograd.grad(result, leaves, upstream, retain_graph=True)

        if any(found._is_zerotensor() or found.data_ptr() == upstream.data_ptr() for found in call()):
            raise PeerUnavailable("its gradient is the given one itself, or known to be zero, and not written anywhere")
        return call

    return _set_up_when_called(set_up)


def liger(tensor: Any, make: Callable[[], PeerCall], name: str = LIGER) -> Iterator[tuple[str, PeerCall]]:
    """A kernel of Liger, for operands on CUDA; `make` imports it."""
    yield from installed("liger_kernel", tensor, make, name)


def installed(package: str, tensor: Any, make: Callable[[], PeerCall], name: str) -> Iterator[tuple[str, PeerCall]]:
    """A kernel of a package that may be there, for operands on CUDA; `make` imports it."""

    def set_up() -> PeerCall:
        if importlib.util.find_spec(package) is None:
            raise PeerUnavailable(f"{package} is not installed")
        call = make()
        try:
            call()
        except Exception as failure:  # whatever another package cannot do here, the others are timed
            raise PeerUnavailable(f"{type(failure).__name__}: {str(failure).partition(chr(10))[0]}") from failure
        return call

    if tensor.is_cuda:
        yield name, _set_up_when_called(set_up)


def jitted(make: Callable[[Any], Callable[..., Any]], *inputs: Any) -> PeerCall:
    """`make(jax)` gives the function; it is jitted, and the inputs are handed to JAX once, before any timing."""

    def set_up() -> PeerCall:
        if importlib.util.find_spec("jax") is None:
            raise PeerUnavailable("jax is not installed")
        import jax

        config: Any = jax.config
        config.update("jax_enable_x64", True)
        function = jax.jit(make(jax))
        arrays = [jax.dlpack.from_dlpack(tensor) for tensor in inputs]
        return lambda: function(*arrays).block_until_ready()

    return _set_up_when_called(set_up)


def _set_up_when_called(set_up: Callable[[], PeerCall]) -> PeerCall:
    ready: list[PeerCall] = []

    def call() -> object:
        if not ready:
            ready.append(set_up())
        return ready[0]()

    return call
