"""The gradient of a running product on CUDA, where there are lines enough, along rows.

A program walks along its lines twice: from the first element on for the product before every tile, and back from the last for the gradients.
The thread that has a group of elements multiplies and adds them up by itself; only what its group comes to changes threads.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.gpu.indexing import along, offset
from baracuda_kernels.ops.scan.triton_groups import apart, together

__all__ = ["product_gradients_of_lines"]


@triton.jit
def product_gradients_of_lines(
    d_result, factors, d_input, befores, lines, blocks, extent, tiles, extents, outer_steps, beside_steps, axis_steps,
    PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, SKIPS_NAN: tl.constexpr, WIDE: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr,
    LINES: tl.constexpr, STEPS: tl.constexpr, GROUP: tl.constexpr, VECTOR: tl.constexpr, SEVERAL: tl.constexpr,
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
        for tile in range(0, tiles - 1):
            tl.store(befores[0] + slot + tile, before, mask=is_there)
            x = read_groups(x_source, tile * STEPS + group * GROUP, extent, is_there, 1.0, GROUP, VECTOR)
            before *= tl.reduce(product_of(x, SKIPS_NAN, GROUP), 0, times, keep_dims=True)
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
            before = tl.load(befores[0] + slot + tile, mask=is_there)
        results, carry = gradients(d, x, before, carry, PREFIXES, SUFFIXES, SKIPS_NAN, GROUPS, LINES, GROUP)
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


@triton.jit
def gradients(
    d, x, before, carry, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, SKIPS_NAN: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Of a tile, from the product before it and what comes back into it; and what comes out of it."""
    product = product_of(x, SKIPS_NAN, GROUP)
    own = come_back(d, x, tl.zeros((GROUPS, LINES), tl.float64), SKIPS_NAN, GROUP)[0]
    ahead, after = around_groups(product, own, before, carry, PREFIXES, SUFFIXES, GROUPS, LINES)
    carried, slopes = come_back(d, x, after, SKIPS_NAN, GROUP)
    results = ()
    for k in tl.static_range(GROUP):
        result = (ahead * slopes[k]).to(tl.float64 if x[k].dtype == tl.float64 else tl.float32)
        results += ((tl.where(x[k] != x[k], 0.0, result) if SKIPS_NAN else result,),)  # type: ignore[assignment]
        ahead *= factor(x[k], SKIPS_NAN)
    return results, tl.gather(carried, tl.full((1, LINES), 0, tl.int32), 0)


@triton.jit
def around_groups(
    product, own, before, carry, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr
):
    """The product before each group, and what comes back into it from the groups after it, which are scanned from the last on."""
    group = tl.arange(0, GROUPS)[:, None]
    mirrored = tl.broadcast_to(GROUPS - 1 - group, (GROUPS, LINES))
    nearer = tl.broadcast_to(tl.maximum(GROUPS - 2 - group, 0), (GROUPS, LINES))
    farther = tl.broadcast_to(tl.maximum(group - 1, 0), (GROUPS, LINES))
    slope, sums = SUFFIXES((tl.gather(product, mirrored, 0), tl.gather(own, mirrored, 0)))
    after = tl.where(
        group == GROUPS - 1,
        carry,
        tl.fma(tl.gather(slope, nearer, 0), tl.broadcast_to(carry, (GROUPS, LINES)), tl.gather(sums, nearer, 0)),
    )
    ahead = tl.where(group == 0, before, tl.gather(PREFIXES((product,))[0], farther, 0) * before)
    return ahead, after


@triton.jit
def factor(x, SKIPS_NAN: tl.constexpr):
    wide = x if x.dtype == tl.float64 else x.to(tl.float32)
    return (tl.where(wide != wide, 1.0, wide) if SKIPS_NAN else wide).to(tl.float64)  # noqa: PLR0124


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def product_of(x, SKIPS_NAN: tl.constexpr, GROUP: tl.constexpr, FIRST: tl.constexpr = 0):
    """By halves, so that products wait for few others."""
    if GROUP == 1:
        return factor(x[FIRST], SKIPS_NAN)
    else:
        return product_of(x, SKIPS_NAN, GROUP // 2, FIRST) * product_of(x, SKIPS_NAN, GROUP // 2, FIRST + GROUP // 2)


@triton.jit
def come_back(d, x, after, SKIPS_NAN: tl.constexpr, GROUP: tl.constexpr):
    """What comes out of a group at its first element, from what comes in after its last, and d with what follows of each."""
    slopes = (d[GROUP - 1].to(tl.float64) + after,)
    for k in tl.static_range(1, GROUP):
        slopes = (tl.fma(factor(x[GROUP - k], SKIPS_NAN), slopes[0], d[GROUP - 1 - k].to(tl.float64)),) + slopes  # type: ignore[assignment]  # noqa: RUF005
    return factor(x[0], SKIPS_NAN) * slopes[0], slopes
