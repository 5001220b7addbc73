"""The gradient of a running product on CUDA, where there are lines enough, along rows.

A program walks along its lines twice: from the first element on for the product before every tile, and back from the last for the gradients.
The thread that has a vector of elements multiplies and adds them up by itself; only what its vector comes to changes threads.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.gpu.indexing import along, offset
from baracuda_kernels.ops.scan.triton_back import read
from baracuda_kernels.ops.scan.triton_bodies import row_of
from baracuda_kernels.ops.scan.triton_groups import apart, terms, together

__all__ = ["product_gradients_of_lines"]


@triton.jit
def product_gradients_of_lines(
    d_result, factors, d_input, befores, lines, blocks, extent, tiles, extents, outer_steps, beside_steps, axis_steps,
    TERM: tl.constexpr, VALUE: tl.constexpr, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, WIDE: tl.constexpr,
    BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr, GROUP: tl.constexpr, SEVERAL: tl.constexpr,
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
            begun = tile * STEPS + group * GROUP
            place = begun[:, :, None] + tl.arange(0, GROUP)[None, None, :]
            x = apart(tl.load(x_source + along(place, axis_steps[1], ALONG[1]), mask=is_there[:, :, None]), GROUP)
            values = ()
            for k in tl.static_range(GROUP):
                values += ((x[k], x[k]),)  # type: ignore[assignment]
            tl.store(befores[0] + slot + tile, before, mask=is_there)
            product = product_of(terms(values, begun, TERM, GROUPS, LINES, GROUP), GROUP)
            before *= row_of(PREFIXES((product,)), GROUPS - 1, GROUPS)[0]
        tl.store(befores[0] + slot + tiles - 1, before, mask=is_there)
        tl.debug_barrier()

    carry = tl.full((1, LINES), 0.0, tl.float64)
    mirrored = tl.broadcast_to(GROUPS - 1 - group, (GROUPS, LINES))
    nearer = tl.broadcast_to(tl.maximum(GROUPS - 2 - group, 0), (GROUPS, LINES))
    farther = tl.broadcast_to(tl.maximum(group - 1, 0), (GROUPS, LINES))
    for walked in range(0, tiles):
        tile = tiles - 1 - walked
        begun = tile * STEPS + group * GROUP
        place = begun[:, :, None] + tl.arange(0, GROUP)[None, None, :]
        inside = (place < extent) & is_there[:, :, None]
        values = read((d_source, x_source), place, inside, axis_steps, ALONG, GROUP)
        own = inside_or_one(terms(values, begun, TERM, GROUPS, LINES, GROUP), begun, extent, GROUP)
        product = product_of(own, GROUP)
        sum_of_own = come_back(own, tl.zeros((GROUPS, LINES), tl.float64), GROUP)[0]
        # What comes from the vectors after each, which are scanned from the last on, and from those before.
        slope, sums = SUFFIXES((tl.gather(product, mirrored, 0), tl.gather(sum_of_own, mirrored, 0)))
        is_last = group == GROUPS - 1
        after = tl.where(is_last, 0.0, tl.gather(sums, nearer, 0)) + tl.where(is_last, 1.0, tl.gather(slope, nearer, 0)) * carry
        ahead = tl.where(group == 0, 1.0, tl.gather(PREFIXES((product,))[0], farther, 0))
        if SEVERAL:
            ahead *= tl.load(befores[0] + slot + tile, mask=is_there)
        carried, slopes = come_back(own, after, GROUP)
        results = ()
        for k in tl.static_range(GROUP):
            value = VALUE((ahead * slopes[k], product), values[k], ((begun + k).to(tl.int64),))
            results += ((tl.broadcast_to(value[0], (GROUPS, LINES)),),)  # type: ignore[assignment]
            ahead *= own[k][1]
        carry = row_of((carried,), 0, GROUPS)[0]
        tl.store(
            target + along(place, axis_steps[2], ALONG[2]), together(results, 0, GROUP).to(d_input.dtype.element_ty), mask=inside
        )


@triton.jit
def product_of(own, GROUP: tl.constexpr):
    product = own[0][1]
    for k in tl.static_range(1, GROUP):
        product *= own[k][1]
    return product


@triton.jit
def come_back(own, after, GROUP: tl.constexpr):
    """What comes out of a vector of (d, x) at its first element, from what comes in after its last, and d with what follows of each."""
    slopes = ()
    for k in tl.static_range(GROUP):
        d, x = own[GROUP - 1 - k]
        slope = d + after
        after = x * slope
        slopes = (slope,) + slopes  # type: ignore[assignment]  # noqa: RUF005
    return after, slopes


@triton.jit
def inside_or_one(own, begun, extent, GROUP: tl.constexpr):
    """Factors of 1 without gradients beyond the end."""
    found = ()
    for k in tl.static_range(GROUP):
        is_inside = begun + k < extent
        found += ((tl.where(is_inside, own[k][0], 0.0), tl.where(is_inside, own[k][1], 1.0)),)  # type: ignore[assignment]
    return found
