"""The gradient of a running product on CUDA, where there are lines enough, along rows.

A program walks along its lines twice: from the first element on for the product before every tile, and back from the last for the gradients.
The thread that has a group of elements multiplies and adds them up by itself; only what its group comes to changes threads.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.scan.triton_groups import apart, together
from baracuda_kernels.ops.scan.triton_product_halves import gradients_in_f32, product_in_f32
from baracuda_kernels.ops.scan.triton_product_tile import gradients, product_of, times
from baracuda_kernels.targets.cuda.triton.indexing import along, offset

__all__ = ["product_gradients_of_lines"]


@triton.jit
def product_gradients_of_lines(
    d_result, factors, d_input, befores, lines, blocks, extent, tiles, extents, outer_steps, beside_steps, axis_steps,
    PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, SKIPS_NAN: tl.constexpr, WIDE: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr,
    LINES: tl.constexpr, STEPS: tl.constexpr, GROUP: tl.constexpr, VECTOR: tl.constexpr, SEVERAL: tl.constexpr, IN_F32: tl.constexpr,
):  # fmt: skip
    """Of elements x with gradients d of the products: x g, where g is d and the next x g, runs back along a line."""
    GROUPS: tl.constexpr = STEPS // GROUP
    block = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = block % blocks * LINES + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_there = line < lines
    d_source = (d_result + offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0]))[:, :, None]
    x_source = (factors + offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1]))[:, :, None]
    target = (d_input + offset(outer, extents, outer_steps[2]) + along(line, beside_steps[2], BESIDE[2]))[:, :, None]
    slot = (outer.to(tl.int64) * lines + line) * tiles
    group = tl.arange(0, GROUPS)[:, None]
    if SEVERAL:
        before = tl.full((1, LINES), 1.0, tl.float64)
        following = read_groups(x_source, group * GROUP, extent, is_there, 1.0, GROUP, VECTOR)
        for tile in range(0, tiles - 1):
            tl.store(befores[0] + slot + tile, before, mask=is_there)
            x = following
            following = read_groups(x_source, (tile + 1) * STEPS + group * GROUP, extent, is_there, 1.0, GROUP, VECTOR)
            product = product_in_f32(x, SKIPS_NAN, GROUP, VECTOR) if IN_F32 else product_of(x, SKIPS_NAN, GROUP)
            before *= tl.reduce(product, 0, times, keep_dims=True)
        tl.store(befores[0] + slot + tiles - 1, before, mask=is_there)
        tl.debug_barrier()

    carry = tl.full((1, LINES), 0.0, tl.float64)
    for walked in range(0, tiles):
        tile = tiles - 1 - walked
        begun = tile * STEPS + group * GROUP
        d = read_groups(d_source, begun, extent, is_there, 0.0, GROUP, VECTOR)
        x = read_groups(x_source, begun, extent, is_there, 1.0, GROUP, VECTOR)
        before = tl.full((1, LINES), 1.0, tl.float64)
        if SEVERAL:
            before = tl.load(befores[0] + slot + tile, mask=is_there, other=1.0)
        if IN_F32:
            found = gradients_in_f32(d, x, before, carry, PREFIXES, SUFFIXES, SKIPS_NAN, GROUPS, LINES, GROUP, VECTOR)
            if found[2]:
                results, after = gradients(d, x, before, carry, PREFIXES, SUFFIXES, SKIPS_NAN, GROUPS, LINES, GROUP)
            else:
                results, after = found[0], found[1]
        else:
            results, after = gradients(d, x, before, carry, PREFIXES, SUFFIXES, SKIPS_NAN, GROUPS, LINES, GROUP)
        carry = after
        for first in tl.static_range(0, GROUP, VECTOR):
            place = (begun + first)[:, :, None] + tl.arange(0, VECTOR)[None, None, :]
            inside = (place < extent) & is_there[:, :, None]
            tl.store(target + place, together(results, 0, VECTOR, first).to(d_input.dtype.element_ty), mask=inside)


@triton.jit
def read_groups(source, begun, extent, is_there, other, GROUP: tl.constexpr, VECTOR: tl.constexpr):
    """The elements of groups that begin there, one by one; so many lie in a vector."""
    found = ()
    for first in tl.static_range(0, GROUP, VECTOR):
        place = (begun + first)[:, :, None] + tl.arange(0, VECTOR)[None, None, :]
        found += apart(tl.load(source + place, mask=(place < extent) & is_there[:, :, None], other=other), VECTOR)
    return found
