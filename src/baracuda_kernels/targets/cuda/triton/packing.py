"""Holding 16-bit floats in registers, two per word. The compiler would give each a register of its own."""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.core.kernel import is_interpreted

__all__ = ["hold", "release"]

INTERPRETED = tl.constexpr(is_interpreted())


@triton.jit
def hold(values):
    """Neighbours along the last axis packed into words; anything but 16-bit floats stays as it is. For one axis or two."""
    if values.dtype.primitive_bitwidth == 16:
        if len(values.shape) == 1:
            low, high = tl.split(tl.reshape(values, (values.shape[0] // 2, 2)))
        else:
            low, high = tl.split(tl.reshape(values, (values.shape[0], values.shape[1] // 2, 2)))
        return (low.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF) | (high.to(tl.int16, bitcast=True).to(tl.int32) << 16)
    else:
        return values


@triton.jit
def release(words, HALF: tl.constexpr):
    """The numbers that `hold` packed. The compiler must not see through it, or it keeps the numbers and not the words."""
    if HALF.primitive_bitwidth == 16:
        if not INTERPRETED:
            words = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [words], dtype=tl.int32, is_pure=False, pack=1)
        low = words.to(tl.int16).to(HALF, bitcast=True)
        high = (words >> 16).to(tl.int16).to(HALF, bitcast=True)
        if len(words.shape) == 1:
            return tl.reshape(tl.join(low, high), (words.shape[0] * 2,))
        else:
            return tl.reshape(tl.join(low, high), (words.shape[0], words.shape[1] * 2))
    else:
        return words
