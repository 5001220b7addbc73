"""Matrix products for Triton bodies, on the matrix units where the elements have them."""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted

__all__ = ["product"]

INTERPRETED = tl.constexpr(is_interpreted())


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr):
    """total + a @ b. PRECISION says how f32 operands are multiplied: "ieee", "tf32" or "tf32x3"; others are as they are."""
    if INTERPRETED and a.dtype.primitive_bitwidth == 16:
        a, b = a.to(tl.float32), b.to(tl.float32)  # the interpreter's own products of bf16 are wrong
    return tl.dot(a, b, total, input_precision=PRECISION, out_dtype=total.dtype)
