"""`fuse` for tensors: a formula of the caller's as an operator like all others, with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from baracuda_kernels.ops.fusion import fuse as fusion
from baracuda_kernels.torch.operators import entry

__all__ = ["fuse"]

_made: WeakValueDictionary[tuple[str, str], Callable[..., Any]] = WeakValueDictionary()  # by formula and numbers


def fuse(formula: Callable[..., Any], *, wide: bool = False) -> Callable[..., Any]:
    """A function of one to eight tensors, every element of which is computed by `formula` in one kernel. All gradients are one kernel too.

    `formula` may also be what `baracuda_kernels.fuse` has made. Tensors have one element; they are broadcast. f16 and bf16 are computed in
    f32; `wide`, f32 is computed in f64. The operator is traced by `torch.compile` without a break, and known to `torch.func` and autocast.
    """
    fused = formula if isinstance(formula, fusion.Fused) and not wide else fusion.fuse(formula, wide=wide)
    made = _made.get((fused.name, fused.numbers))
    return _made.setdefault((fused.name, fused.numbers), _of(fused)) if made is None else made


def _of(fused: fusion.Fused) -> Callable[..., Any]:
    operator, numbers = entry(fused.name), fused.numbers

    def call(*given: Any, **named: Any) -> Any:
        return operator(numbers, *given, **named)

    call.__name__ = call.__qualname__ = fused.name
    # A code object of its own, since torch.compile counts by it what it has compiled.
    call.__code__ = call.__code__.replace(co_name=fused.name, co_qualname=fused.name)
    call.__doc__ = fused.__doc__
    return call
