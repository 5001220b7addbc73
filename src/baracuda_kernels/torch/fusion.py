"""`fuse` for tensors: a formula of the caller's as an operator like all others, with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.ops.fusion import fuse as fusion
from baracuda_kernels.torch.operators import entry

__all__ = ["fuse"]


def fuse(formula: Callable[..., Any], *, wide: bool = False) -> Callable[..., Any]:
    """A function of one to six tensors, every element of which is computed by `formula` in one kernel. All gradients are one kernel too.

    `formula` may also be what `baracuda_kernels.fuse` has made. Tensors have one element; they are broadcast. f16 and bf16 are computed in
    f32; `wide`, f32 is computed in f64. The operator is traced by `torch.compile` without a break, and known to `torch.func` and autocast.
    """
    fused = formula if isinstance(formula, fusion.Fused) and not wide else fusion.fuse(formula, wide=wide)
    return entry(fused.name)
