"""The gradient of a running product on CUDA: of a tile, from the product before it and what comes back into it from those after it, in f64."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["around_groups", "first_of", "gradients", "or_zero", "product_of", "times"]


@triton.jit
def gradients(
    d, x, before, carry, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, SKIPS_NAN: tl.constexpr,
    GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile, and its carry."""
    product = product_of(x, SKIPS_NAN, GROUP)
    own = come_back(d, x, tl.zeros((GROUPS, LINES), tl.float64), SKIPS_NAN, GROUP)[0]
    ahead, after = around_groups(product, own, before, carry, PREFIXES, SUFFIXES, GROUPS, LINES)
    carried, slopes = come_back(d, x, after, SKIPS_NAN, GROUP)
    results = ()
    for k in tl.static_range(GROUP):
        result = (ahead * slopes[k]).to(tl.float64 if x[k].dtype == tl.float64 else tl.float32)
        results += ((or_zero(result, x[k]) if SKIPS_NAN else result,),)  # type: ignore[assignment]
        ahead *= factor(x[k], SKIPS_NAN)
    return results, first_of(carried, LINES)


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
def first_of(states, LINES: tl.constexpr):
    return tl.gather(states, tl.full((1, LINES), 0, tl.int32), 0)


@triton.jit
def or_zero(result, x):
    """Nothing goes to NaN, which is left out."""
    wide = x.to(result.dtype)
    return tl.where(wide != wide, 0.0, result)  # noqa: PLR0124


@triton.jit
def factor(x, SKIPS_NAN: tl.constexpr):
    wide = x if x.dtype == tl.float64 else x.to(tl.float32)
    return (tl.where(wide != wide, 1.0, wide) if SKIPS_NAN else wide).to(tl.float64)  # noqa: PLR0124


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def product_of(x, SKIPS_NAN: tl.constexpr, GROUP: tl.constexpr, FIRST: tl.constexpr = 0):
    """A product as a binary tree, which shortens the chain of dependencies."""
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
