"""The gradient of a running product of 16-bit floats on CUDA, along rows: vectors of factors in f32, and what they come to in f64.

Within a vector a thread multiplies and adds in f32, where the products of its factors from the first on stay within 2^-31 and 2^33: then all
products in between have room too. A tile where they do not, as with zeros, is one for f64.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.scan.triton_product_tile import around_groups, first_of, or_zero, product_of

__all__ = ["gradients_in_f32", "product_in_f32"]

UP = tl.constexpr(2.0**32)  # of products, which are then within 2 and 2^65: their exponents begin with the bits 1 and 0
BEGINS, HAS_STRAYED = tl.constexpr(0x40000000), tl.constexpr(0x60000000)
RAISED = tl.constexpr(2.0**64)  # of gradients: what f32 cuts off below its smallest numbers is then less than 16-bit floats have
MOST_AHEAD = tl.constexpr(42)  # powers of two of the product before a vector, up to which that is so
LEAST_AHEAD = tl.constexpr(-127 - 70)  # from which on it makes zero of all gradients
SHARE, LOWERED = tl.constexpr(70), tl.constexpr(2.0**-70)  # what gradients are raised by once that power is in them, as there
MOST_AFTER = tl.constexpr(2.0**60)  # of what comes back, which that power is to make less of
REST, EXPONENT_OF_ONE = tl.constexpr(~(0x7FF << 52)), tl.constexpr(1023 << 52)  # bits of f64


@triton.jit
def product_in_f32(x, SKIPS_NAN: tl.constexpr, GROUP: tl.constexpr, VECTOR: tl.constexpr):
    """The product of a group's factors, in f64."""
    own = factors_of(x, SKIPS_NAN, GROUP)
    strayed = tl.zeros_like(own[0]).to(tl.int32)
    product = tl.zeros_like(own[0]).to(tl.float64) + 1.0
    for first in tl.static_range(0, GROUP, VECTOR):
        running = running_products(own, first, VECTOR)
        strayed |= have_strayed(running, VECTOR)
        product *= running[VECTOR - 1].to(tl.float64) * (1.0 / UP)
    if tl.max(strayed & HAS_STRAYED) > 0:
        product = product_of(x, SKIPS_NAN, GROUP)
    return product


@triton.jit
def gradients_in_f32(
    d, x, before, carry, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, SKIPS_NAN: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile in f32; its carry, and whether the range of f32 was exceeded."""
    own = factors_of(x, SKIPS_NAN, GROUP)
    strayed = tl.full((GROUPS, LINES), 0, tl.int32)
    runnings, products, sums = (), (), ()
    product = tl.full((GROUPS, LINES), 1.0, tl.float64)
    for first in tl.static_range(0, GROUP, VECTOR):
        running = running_products(own, first, VECTOR)
        strayed |= have_strayed(running, VECTOR)
        slope = d[first + VECTOR - 1].to(tl.float32) * RAISED
        for k in tl.static_range(1, VECTOR):
            slope = tl.fma(own[first + VECTOR - k], slope, d[first + VECTOR - 1 - k].to(tl.float32) * RAISED)
        runnings += running
        products += (running[VECTOR - 1].to(tl.float64) * (1.0 / UP),)  # type: ignore[assignment]
        sums += ((own[first] * slope).to(tl.float64) * (1.0 / RAISED),)  # type: ignore[assignment]
    for v in tl.static_range(len(products)):
        product *= products[v]
    total = into_vectors(products, sums, tl.full((GROUPS, LINES), 0.0, tl.float64))[0]
    ahead, after = around_groups(product, total, before, carry, PREFIXES, SUFFIXES, GROUPS, LINES)
    carried, afters = into_vectors(products, sums, after)
    has_room = ((strayed & HAS_STRAYED) == 0) & (tl.abs(carried) < float("inf"))
    results = ()
    for v in tl.static_range(len(products)):
        found, has_more = vector_gradients(d, own, runnings, ahead, afters[v], v * VECTOR, VECTOR)
        has_room &= has_more
        for k in tl.static_range(VECTOR):
            results += ((or_zero(found[k], x[v * VECTOR + k]) if SKIPS_NAN else found[k],),)  # type: ignore[assignment]
        ahead *= products[v]
    return results, first_of(carried, LINES), tl.min(has_room.to(tl.int32)) == 0


@triton.jit
def into_vectors(products, sums, after):
    """What comes out of a group of vectors, from what comes in after the last, and what comes into each."""
    afters = ()
    for v in tl.static_range(len(products)):
        afters = (after,) + afters  # type: ignore[assignment]  # noqa: RUF005
        after = tl.fma(products[len(products) - 1 - v], after, sums[len(products) - 1 - v])
    return after, afters


@triton.jit
def vector_gradients(d, own, running, ahead, after, FIRST: tl.constexpr, VECTOR: tl.constexpr):
    """Gradients have the power of two of the product before the vector in them from the start: the less that is, the larger they may be."""
    bits = ahead.to(tl.int64, bitcast=True)
    power = ((bits >> 52) & 0x7FF).to(tl.int32) - 1023
    near_one = ((bits & REST) | EXPONENT_OF_ONE).to(tl.float64, bitcast=True).to(tl.float32)
    has_room = (power <= MOST_AHEAD) & (tl.abs(after) <= MOST_AFTER)
    power = tl.maximum(power, LEAST_AHEAD) + SHARE
    scale = ((power + 127) << 23).to(tl.float32, bitcast=True)
    slope = (after * ((power + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)).to(tl.float32)
    slope = tl.fma(d[FIRST + VECTOR - 1].to(tl.float32), scale, slope)
    lowered = near_one * (LOWERED / UP)
    results = ()
    for k in tl.static_range(VECTOR):
        if k > 0:
            slope = tl.fma(own[FIRST + VECTOR - k], slope, d[FIRST + VECTOR - 1 - k].to(tl.float32) * scale)
        before = lowered * running[FIRST + VECTOR - 2 - k] if k < VECTOR - 1 else near_one * LOWERED
        results = (before * slope,) + results  # type: ignore[assignment]  # noqa: RUF005
    return results, has_room & (tl.abs(slope) < float("inf"))


@triton.jit
def factors_of(x, SKIPS_NAN: tl.constexpr, GROUP: tl.constexpr):
    own = ()
    for k in tl.static_range(GROUP):
        each = x[k].to(tl.float32)
        own += (tl.where(each != each, 1.0, each) if SKIPS_NAN else each,)  # type: ignore[assignment]  # noqa: PLR0124
    return own


@triton.jit
def running_products(own, FIRST: tl.constexpr, VECTOR: tl.constexpr):
    running = (own[FIRST] * UP,)
    for k in tl.static_range(1, VECTOR):
        running += (running[k - 1] * own[FIRST + k],)  # type: ignore[assignment]
    return running


@triton.jit
def have_strayed(running, VECTOR: tl.constexpr):
    """In two of the bits, whether any is out of range. The first one that is has been reached from one that is not, and so is seen."""
    bits = running[0].to(tl.int32, bitcast=True) ^ BEGINS
    for k in tl.static_range(1, VECTOR):
        bits |= running[k].to(tl.int32, bitcast=True) ^ BEGINS
    return bits
