"""Running products of 16-bit floats on CUDA, along rows, in f32.

The thread that has a group of factors multiplies them as they are, where none of them is so large or small that a group of them could leave
the range of f32. What a group comes to is a number near 1 and a power of two apart, as in every product, so that nothing overflows on the way.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Program, input_of
from baracuda_kernels.ops.scan.scaled import multiplied, scaled, settled
from baracuda_kernels.ops.scan.triton_bodies import scanning
from baracuda_kernels.ops.scan.triton_groups import apart, before_groups, joined_back, joined_on, together
from baracuda_kernels.targets.cuda.formulas.source import taking
from baracuda_kernels.targets.cuda.triton.indexing import along, offset

__all__ = ["factor_functions", "scan_factors"]

MOST = tl.constexpr(2.0**12)  # of a factor: eight of them, and what comes before, can be multiplied with powers of two of f32
BITS_OF_LEAST = tl.constexpr(((127 - 12) << 24) - 1)  # of 2^-12, without the sign, less one
FARTHEST = tl.constexpr(252)  # exponents that two f32 numbers make; beyond, products of 16-bit floats are zero or infinite


@functools.cache
def factor_functions() -> dict[str, Any]:
    """The functions of factors, as f32 numbers and powers of two."""
    states = (ElementKind.F32, ElementKind.I32)
    state, later = (tuple(input_of(at + place, each) for place, each in enumerate(states)) for at in (0, 2))
    join = Program((*states, *states), states, multiplied(state, later))
    return {
        "SCALED": taking(Program(states[:1], states, scaled(state[0])), 1),
        "SETTLED": taking(Program(states, states, settled(state)), 2),
        "JOINED": taking(join, 2, 2),
        "SCAN": scanning(join),
    }


@triton.jit
def scan_factors(
    factors, products, lines, blocks, extent, tiles, extents, outer_steps, beside_steps, axis_steps,
    SCALED: tl.constexpr, SETTLED: tl.constexpr, JOINED: tl.constexpr, SCAN: tl.constexpr, SKIPS_NAN: tl.constexpr, REVERSE: tl.constexpr,
    BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr, GROUP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = STEPS // GROUP
    block = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    line = block % blocks * LINES + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_there = (line < lines)[:, :, None]
    source = (factors + offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0]))[:, :, None]
    target = (products + offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1]))[:, :, None]
    walked = (tl.arange(0, GROUPS)[:, None] * GROUP)[:, :, None]
    place = (extent - GROUP - walked if REVERSE else walked) + tl.arange(0, GROUP)[None, None, :]
    inside = (place >= 0) & (place < extent) & is_there
    following = tl.load(source + along(place, axis_steps[0], ALONG[0]), mask=inside, other=1.0)
    carry = (tl.full((1, LINES), 1.0, tl.float32), tl.full((1, LINES), 0, tl.int32))
    for _ in range(0, tiles):
        x, here, is_inside = following.to(tl.float32), place, inside
        place = place - STEPS if REVERSE else place + STEPS
        inside = (place >= 0) & (place < extent) & is_there
        following = tl.load(source + along(place, axis_steps[0], ALONG[0]), mask=inside, other=1.0)
        if SKIPS_NAN:
            x = tl.where(x != x, 1.0, x)  # noqa: PLR0124
        if are_tame(x):
            results, after = tame_products(carry, apart(x, GROUP), SCALED, SETTLED, JOINED, SCAN, REVERSE, GROUPS, LINES, GROUP)
        else:
            results, after = any_products(carry, apart(x, GROUP), SCALED, SETTLED, JOINED, SCAN, REVERSE, GROUPS, LINES, GROUP)
        carry = SETTLED(after)
        tl.store(
            target + along(here, axis_steps[1], ALONG[1]), together(results, 0, GROUP).to(products.dtype.element_ty), mask=is_inside
        )


@triton.jit
def are_tame(x):
    """Whether all factors are zero or of a moderate size. One less than their bits is as large as can be for zeros, and else in their order."""
    bits = (x.to(tl.uint32, bitcast=True) << 1) - 1  # without the sign
    is_tame = (tl.max(tl.abs(x), 2) <= MOST) & (tl.min(bits, 2) >= BITS_OF_LEAST)
    return tl.min(is_tame.to(tl.int32)) > 0


@triton.jit
def tame_products(
    carry, own, SCALED: tl.constexpr, SETTLED: tl.constexpr, JOINED: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    factors = ()
    for k in tl.static_range(GROUP):
        factors += ((own[k],),)  # type: ignore[assignment]
    within = joined_back(factors, times, GROUP) if REVERSE else joined_on(factors, times, GROUP)
    before, after = before_groups(carry, SCALED(within[0 if REVERSE else GROUP - 1]), JOINED, SCAN, GROUPS, LINES)
    before = SETTLED(before)  # near 1 again, so that its product with a power of two is finite, and zero times it no NaN
    power, more = power_of_two(before[1])
    power *= before[0]
    results = ()
    for k in tl.static_range(GROUP):
        results += ((within[k][0] * power * more,),)  # type: ignore[assignment]
    return results, after


@triton.jit
def any_products(
    carry, own, SCALED: tl.constexpr, SETTLED: tl.constexpr, JOINED: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    factors = ()
    for k in tl.static_range(GROUP):
        factors += (SCALED((own[k],)),)  # type: ignore[assignment]
    within = joined_back(factors, JOINED, GROUP) if REVERSE else joined_on(factors, JOINED, GROUP)
    before, after = before_groups(carry, SETTLED(within[0 if REVERSE else GROUP - 1]), JOINED, SCAN, GROUPS, LINES)
    results = ()
    for k in tl.static_range(GROUP):
        m, e = JOINED(before, within[k])
        power, more = power_of_two(e)
        results += ((m * power * more,),)  # type: ignore[assignment]
    return results, after


@triton.jit
def times(earlier, later):
    return (earlier[0] * later[0],)


@triton.jit
def power_of_two(e):
    """As two factors, neither of which is subnormal or infinite: both on the same side of 1, so that nothing is lost between them."""
    bounded = tl.minimum(tl.maximum(e, -FARTHEST), FARTHEST)
    half = bounded >> 1
    return ((half + 127) << 23).to(tl.float32, bitcast=True), ((bounded - half + 127) << 23).to(tl.float32, bitcast=True)
