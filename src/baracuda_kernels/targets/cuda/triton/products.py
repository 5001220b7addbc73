"""Matrix products for Triton bodies, on the tensor cores where these support the dtype."""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted

__all__ = ["product", "rounded_to_tf32"]

INTERPRETED = tl.constexpr(is_interpreted())


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr):
    """total + a @ b. PRECISION says how f32 operands are multiplied: "ieee", "tf32" or "tf32x3"; others are as they are."""
    if INTERPRETED and a.dtype.primitive_bitwidth == 16:
        a, b = a.to(tl.float32), b.to(tl.float32)  # the interpreter's own products of bf16 are wrong
    return tl.dot(a, b, total, input_precision=PRECISION, out_dtype=total.dtype)


@triton.jit
def rounded_to_tf32(values):
    """Rounds f32 to the nearest TF32 number: the tensor cores truncate. The interpreter's products use f32 as it is."""
    if INTERPRETED:
        return values
    else:
        return tl.inline_asm_elementwise("cvt.rna.tf32.f32 $0, $1;", "=r,r", [values], dtype=tl.float32, is_pure=True, pack=1)
