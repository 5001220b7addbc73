"""The gradient of a running product on CUDA.

That of a factor is what comes before it, P, times what follows from it, R: P is a running product of the factors before, and R, which is
d and the next factor times the next R, a running composition of such steps, back from the end. Nothing is divided, so that zeros are
factors like others. A program takes one tile; if a line has several, what comes before and after each is found first.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.formula.expression import Program
from baracuda_kernels.ops.scan.rows import ScanFormulas
from baracuda_kernels.ops.scan.triton_bodies import SEGMENTS, TOTALS, only_row, scanning
from baracuda_kernels.targets.cuda.triton.indexing import along, offset

__all__ = ["backwards", "product_gradients"]


def backwards(formulas: ScanFormulas) -> Any:
    """What scans a tile of states from its last row on."""
    return scanning(Program((*formulas.states, *formulas.states), formulas.states, formulas.combine), is_back=True)


@triton.jit
def product_gradients(
    d_result, factors, d_input, totals, lines, blocks, extent, segments, extents, outer_steps, beside_steps, axis_steps,
    TERM: tl.constexpr, VALUE: tl.constexpr, PREFIXES: tl.constexpr, SUFFIXES: tl.constexpr, PART: tl.constexpr, WIDE: tl.constexpr,
    REVERSE: tl.constexpr, BESIDE: tl.constexpr, ALONG: tl.constexpr, LINES: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64 if WIDE else tl.int32)
    segment = program % segments
    block = program // segments
    line = block % blocks * LINES + tl.arange(0, LINES)[None, :]
    outer = block // blocks
    is_there = line < lines
    walked = segment * STEPS + tl.arange(0, STEPS)[:, None]
    inside = (walked < extent) & is_there
    FORWARD: tl.constexpr = -1 if REVERSE else 1
    place = extent - 1 - walked if REVERSE else walked
    d_result += offset(outer, extents, outer_steps[0]) + along(line, beside_steps[0], BESIDE[0])
    factors += offset(outer, extents, outer_steps[1]) + along(line, beside_steps[1], BESIDE[1])
    d_input += offset(outer, extents, outer_steps[2]) + along(line, beside_steps[2], BESIDE[2])
    has_next = (walked + 1 < extent) & is_there
    is_later = inside & (walked > 0)
    d = tl.load(d_result + along(place, axis_steps[0], ALONG[0]), mask=inside)
    x = tl.load(factors + along(place, axis_steps[1], ALONG[1]), mask=inside)
    following = tl.load(factors + along(place + FORWARD, axis_steps[1], ALONG[1]), mask=has_next)
    preceding = tl.load(factors + along(place - FORWARD, axis_steps[1], ALONG[1]), mask=is_later)
    at = (place.to(tl.int64),)
    before = PREFIXES((tl.where(is_later, TERM((d, preceding), at)[1], 1.0),))[0]
    slope = tl.where(has_next, TERM((d, following), at)[1], 1.0)
    slope, after = SUFFIXES((slope, tl.where(inside, TERM((d, x), at)[0], 0.0)))
    slot = (outer.to(tl.int64) * lines + line) * segments + segment
    if PART == TOTALS:
        row = tl.arange(0, STEPS)[:, None]
        tl.store(totals[0] + slot, only_row(before, row == STEPS - 1), mask=is_there)
        tl.store(totals[1] + slot, only_row(slope, row == 0), mask=is_there)
        tl.store(totals[2] + slot, only_row(after, row == 0), mask=is_there)
    else:
        if PART == SEGMENTS:
            before *= tl.load(totals[0] + slot - 1, mask=is_there & (segment > 0), other=1.0)
            after += slope * tl.load(totals[2] + slot + 1, mask=is_there & (segment + 1 < segments), other=0.0)
        value = VALUE((before * after, slope), (d, x), at)[0]
        target = d_input + along(place, axis_steps[2], ALONG[2])
        tl.store(target, tl.broadcast_to(value, (STEPS, LINES)).to(d_input.dtype.element_ty), mask=inside)
