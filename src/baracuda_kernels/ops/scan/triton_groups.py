"""Contiguous elements in groups, each of which a thread has to itself: only what groups come to changes threads."""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.scan.triton_bodies import chosen
from baracuda_kernels.targets.cuda.triton.indexing import filled

__all__ = ["apart", "before_groups", "joined_back", "joined_on", "terms", "together"]


@triton.jit
def apart(values, GROUP: tl.constexpr):
    """The elements of groups, the last axis, one by one."""
    if GROUP == 1:
        return (tl.reshape(values, (values.shape[0], values.shape[1])),)
    else:
        even, odd = tl.split(tl.reshape(values, (values.shape[0], values.shape[1], GROUP // 2, 2)))
        evens, odds = apart(even, GROUP // 2), apart(odd, GROUP // 2)
        found = ()
        for k in tl.static_range(GROUP // 2):
            found += (evens[k], odds[k])  # type: ignore[assignment]
        return found


@triton.jit
def together(results, i: tl.constexpr, GROUP: tl.constexpr, FIRST: tl.constexpr = 0, EVERY: tl.constexpr = 1):
    """The results of a group's elements, stacked along a last axis."""
    if GROUP == 1:
        return results[FIRST][i][:, :, None]
    else:
        even = together(results, i, GROUP // 2, FIRST, 2 * EVERY)
        pairs = tl.join(even, together(results, i, GROUP // 2, FIRST + EVERY, 2 * EVERY))
        return tl.reshape(pairs, (pairs.shape[0], pairs.shape[1], GROUP))


@triton.jit
def terms(values, begun, TERM: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr, GROUP: tl.constexpr):
    found = ()
    for k in tl.static_range(GROUP):
        found += (filled(TERM(values[k], ((begun + k).to(tl.int64),)), (GROUPS, LINES)),)  # type: ignore[assignment]
    return found


@triton.jit
def joined_back(states, JOINED: tl.constexpr, GROUP: tl.constexpr):
    """Each state of a group joined to those after it."""
    joined = (states[GROUP - 1],)
    for k in tl.static_range(1, GROUP):
        joined = (JOINED(joined[0], states[GROUP - 1 - k]),) + joined  # type: ignore[assignment]  # noqa: RUF005
    return joined


@triton.jit
def joined_on(states, JOINED: tl.constexpr, GROUP: tl.constexpr):
    """Each state of a group joined to those before it."""
    joined = (states[0],)
    for k in tl.static_range(1, GROUP):
        joined += (JOINED(joined[k - 1], states[k]),)  # type: ignore[assignment]
    return joined


@triton.jit
def before_groups(carry, totals, JOINED: tl.constexpr, SCAN: tl.constexpr, GROUPS: tl.constexpr, LINES: tl.constexpr):
    """What comes before each group, from the carry on, and after the last one."""
    group = tl.arange(0, GROUPS)[:, None]
    scanned = SCAN(totals)
    earlier, last = (), ()
    for i in tl.static_range(len(scanned)):
        earlier += (tl.gather(scanned[i], tl.broadcast_to(tl.maximum(group - 1, 0), (GROUPS, LINES)), 0),)  # type: ignore[assignment]
        last += (tl.gather(scanned[i], tl.full((1, LINES), GROUPS - 1, tl.int32), 0),)  # type: ignore[assignment]
    return chosen(group > 0, JOINED(carry, earlier), carry, (GROUPS, LINES)), JOINED(carry, last)
