"""Functions for Triton bodies, written with operations that the interpreter has too."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["LOG2E", "exp", "rounded_product"]

LOG2E = tl.constexpr(1.44269502162933349609375)  # log2(e) as f32 has it
LOG2E_REST = tl.constexpr(1.92596299e-8)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def exp(x, PRECISE: tl.constexpr):
    """e^x. The hardware's 2^t alone loses |x| half-ulps to the rounding of t = x log2 e; PRECISE puts them back for f32."""
    if not PRECISE or x.dtype == tl.float64:
        return tl.exp(x)
    else:
        t = x * LOG2E
        lost = tl.fma(x, LOG2E, -t) + x * LOG2E_REST
        power = tl.exp2(t)
        # Where 2^t is 0, infinite or NaN there is nothing to put back.
        return tl.where((t > -200.0) & (t < 200.0), power + power * (lost * LN2), power)


@triton.jit
def rounded_product(a, b):
    """a b, never fused into a sum that follows. Lanes that add each other's products would fuse their own only, and not agree."""
    return tl.fma(a, b, tl.zeros_like(a))
