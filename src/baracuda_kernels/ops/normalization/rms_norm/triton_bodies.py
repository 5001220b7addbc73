"""The Triton bodies of RMSNorm.

Rows that fit on chip are read once: each program walks tiles of whole rows, reads the next ones ahead, and keeps gamma and, in the
backward, its share of dgamma in registers. Longer rows are read twice: by the forward in two walks of one program, the second one
backwards, while the row's end is still in the cache; by the backward first for the projections of dy on x, in segments, then in
strips of columns. The backward's groups leave their shares of dgamma in the workspace, and a last kernel adds them in a fixed order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.targets.cuda.triton.indexing import offset
from baracuda_kernels.targets.cuda.triton.maths import rounded_product

__all__ = ["add_partials", "backward_rows", "forward_long", "forward_rows", "project_segments"]

TINY, HUGE = tl.constexpr(1e-30), tl.constexpr(1e37)  # mean squares in f32 that are out of this range are taken again, scaled


# --- forward -----------------------------------------------------------------------------------------------------------------


@triton.jit
def forward_rows(
    x, gamma, y, rms, rows, extent, extents, x_steps, y_steps, rms_steps, x_row, gamma_row, y_row,
    EPS: tl.constexpr, ROOT_EPS: tl.constexpr, RANGED: tl.constexpr, SCALED: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr,
    COLS: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr, CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    col = tl.arange(0, COLS)[None, :]
    within = col < (COLS if WHOLE else extent)
    count = tl.maximum(extent, 1).to(ACC)
    if SCALED:
        scale = _scale(gamma, col, within, gamma_row, ROWS, COLS, CONTIGUOUS).to(ACC)
    first, end = _share(rows, tl.program_id(0), tl.num_programs(0), ROWS, WIDE)
    for start in tl.range(first, end, ROWS, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = within if ROWS == 1 else (row < end) & within
        values = tl.load(x + offset(row, extents, x_steps) + _places(col, x_row, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
        square = _sum_of_squares(values) / count + EPS
        root = tl.sqrt(square)
        if RANGED and tl.max(_out_of_range(square).to(tl.int32)) > 0:
            unit = _unit(tl.max(tl.abs(values), 1, keep_dims=True), ROOT_EPS)
            parts, rest = values / unit, ROOT_EPS / unit
            root = unit * tl.sqrt(_sum_of_squares(parts) / count + rest * rest)
        tl.store(rms + offset(row, extents, rms_steps), root.to(rms.dtype.element_ty), mask=row < end)
        result = values * (1.0 / root)
        if SCALED:
            result *= scale
        target = y + offset(row, extents, y_steps) + _places(col, y_row, CONTIGUOUS)
        tl.store(target, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _sum_of_squares(values):
    """The sum of squares of each row. Every lane has the same bits: in a short row, of which a lane has one element, its square must be rounded."""
    squares = values * values if values.shape[1] > 1024 else rounded_product(values, values)
    return tl.sum(squares, 1, keep_dims=True)


@triton.jit
def forward_long(
    x, gamma, y, rms, rows, extent, extents, x_steps, y_steps, rms_steps, x_row, gamma_row, y_row,
    EPS: tl.constexpr, ROOT_EPS: tl.constexpr, RANGED: tl.constexpr, SCALED: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr,
    COLS: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr, CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    x += offset(row, extents, x_steps)
    y += offset(row, extents, y_steps)
    col = tl.arange(0, COLS)
    square = _scaled_squares(x, x_row, extent, tl.full((), 1.0, ACC), COLS, STAGES, CONTIGUOUS) / extent.to(ACC) + EPS
    root = tl.sqrt(square)
    if RANGED and _out_of_range(square):
        tops = tl.zeros((COLS,), ACC)
        for start in range(0, extent, COLS):
            values = tl.load(x + _places(start + col, x_row, CONTIGUOUS), mask=start + col < extent, other=0.0).to(ACC)
            tops = tl.maximum(tops, tl.abs(values))
        unit = _unit(tl.max(tops, 0), ROOT_EPS)
        rest = ROOT_EPS / unit
        total = _scaled_squares(x, x_row, extent, unit, COLS, STAGES, CONTIGUOUS)
        root = unit * tl.sqrt(total / extent.to(ACC) + rest * rest)
    tl.store(rms + offset(row, extents, rms_steps), root.to(rms.dtype.element_ty))
    inverse = 1.0 / root
    last = (extent - 1) // COLS * COLS
    for start in tl.range(0, extent, COLS, num_stages=STAGES):
        place = last - start + col
        result = tl.load(x + _places(place, x_row, CONTIGUOUS), mask=place < extent, other=0.0).to(ACC) * inverse
        if SCALED:
            result *= tl.load(gamma + _places(place, gamma_row, CONTIGUOUS), mask=place < extent, other=0.0).to(ACC)
        tl.store(y + _places(place, y_row, CONTIGUOUS), result.to(y.dtype.element_ty), mask=place < extent)


@triton.jit
def _scaled_squares(x, x_row, extent, unit, COLS: tl.constexpr, STAGES: tl.constexpr, CONTIGUOUS: tl.constexpr):
    """The sum of (x / unit)² over a row."""
    col = tl.arange(0, COLS)
    totals = tl.zeros((COLS,), unit.dtype)
    for start in tl.range(0, extent, COLS, num_stages=STAGES):
        values = tl.load(x + _places(start + col, x_row, CONTIGUOUS), mask=start + col < extent, other=0.0).to(unit.dtype) / unit
        totals += values * values
    return tl.sum(totals, 0)


@triton.jit
def _out_of_range(square):
    """Whether squares may have overflowed or vanished in f32; also of NaN."""
    return (square > TINY) & (square < HUGE) == 0


@triton.jit
def _unit(top, ROOT_EPS: tl.constexpr):
    """What elements up to `top` are measured in, so that no square overflows or vanishes; what is infinite or zero stays so."""
    unit = tl.maximum(top, ROOT_EPS)
    return tl.where((unit > 0.0) & (unit < float("inf")), unit, 1.0)


# --- backward ----------------------------------------------------------------------------------------------------------------


@triton.jit
def project_segments(
    dy, x, gamma, rms, projections, extent, segments, span, extents, dy_steps, x_steps, rms_steps, dy_row, x_row, gamma_row,
    SCALED: tl.constexpr, ACC: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr, CONTIGUOUS: tl.constexpr,
):  # fmt: skip
    """The sum of dy gamma x / rms over a segment of a row."""
    program = tl.program_id(0).to(tl.int64)
    row = program // segments
    dy += offset(row, extents, dy_steps)
    x += offset(row, extents, x_steps)
    first = program % segments * span
    end = tl.minimum(first + span, extent)
    totals = tl.zeros((COLS,), ACC)
    inverse = 1.0 / tl.load(rms + offset(row, extents, rms_steps)).to(ACC)
    for start in tl.range(first, end, COLS, num_stages=STAGES):
        place = start + tl.arange(0, COLS)
        up = tl.load(dy + _places(place, dy_row, CONTIGUOUS), mask=place < end, other=0.0).to(ACC)
        if SCALED:
            up *= tl.load(gamma + _places(place, gamma_row, CONTIGUOUS), mask=place < end, other=0.0).to(ACC)
        totals += up * (tl.load(x + _places(place, x_row, CONTIGUOUS), mask=place < end, other=0.0).to(ACC) * inverse)
    tl.store(projections + program, tl.sum(totals, 0))


@triton.jit
def backward_rows(
    dy, x, gamma, rms, dx, partials, projections, rows, extent, pitch, strips, segments,
    extents, dy_steps, x_steps, dx_steps, rms_steps, dy_row, x_row, gamma_row, dx_row,
    PROJECTED: tl.constexpr, SEGMENTS: tl.constexpr, SINGLE: tl.constexpr, HELD: tl.constexpr, SCALED: tl.constexpr,
    ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
    CONTIGUOUS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dx and shares of dgamma: a group of rows; of their columns all or, where the projections are known, a strip."""
    group, col = tl.program_id(0) // strips, tl.arange(0, COLS)[None, :]
    first_col = (tl.program_id(0) % strips).to(tl.int64) * COLS if PROJECTED else 0
    within = col < (COLS if WHOLE else extent - first_col)
    col += first_col
    share = 1.0 / extent.to(ACC)
    if SCALED:
        dgamma = tl.zeros((ROWS, COLS), ACC)
        if HELD:
            scale = _scale(gamma, col, within, gamma_row, ROWS, COLS, CONTIGUOUS).to(ACC)
    first, end = _share(rows, group, tl.num_programs(0) // strips, ROWS, WIDE)
    for start in tl.range(first, end, ROWS, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = within if ROWS == 1 else (row < end) & within
        values = tl.load(x + offset(row, extents, x_steps) + _places(col, x_row, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
        up = tl.load(dy + offset(row, extents, dy_steps) + _places(col, dy_row, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
        root = tl.load(rms + offset(row, extents, rms_steps), mask=row < end, other=1.0).to(ACC)
        inverse = 1.0 / root
        normed = values * inverse
        if SCALED:
            dgamma += up * normed
            if not HELD:
                scale = tl.load(gamma + _places(col, gamma_row, CONTIGUOUS), mask=inside, other=0.0).to(ACC)
            up *= scale
        if SINGLE:  # of a single element hardly anything but eps remains: rms² - x², without the squares
            result = up * inverse * ((root - values) * inverse) * ((root + values) * inverse)
        else:
            total = _projection(projections, row, end, segments, SEGMENTS) if PROJECTED else tl.sum(up * normed, 1, keep_dims=True)
            result = up * inverse - normed * (total * share * inverse)
        target = dx + offset(row, extents, dx_steps) + _places(col, dx_row, CONTIGUOUS)
        tl.store(target, result.to(dx.dtype.element_ty), mask=inside)
    if SCALED:
        tl.store(partials + group.to(tl.int64) * pitch + col, tl.sum(dgamma, 0, keep_dims=True), mask=within)


@triton.jit
def _projection(projections, row, end, segments, SEGMENTS: tl.constexpr):
    """The sum over all segments of each row."""
    segment = tl.arange(0, SEGMENTS)[None, :]
    shares = projections + row.to(tl.int64) * segments + segment
    return tl.sum(tl.load(shares, mask=(row < end) & (segment < segments), other=0.0), 1, keep_dims=True)


@triton.jit
def add_partials(
    partials, dgamma, extent, groups, pitch, step, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, BATCHES: tl.constexpr
):
    """dgamma: every ROWS-th group in turn, all of them read at once, then the ROWS sums as a tree."""
    col = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    totals = tl.zeros((ROWS, COLS), ACC)
    for batch in tl.static_range(BATCHES):
        group = batch * ROWS + tl.arange(0, ROWS)[:, None]
        totals += tl.load(partials + group.to(tl.int64) * pitch + col, mask=group < groups, other=0.0)  # a row is whole strips
    tl.store(dgamma + col * step, tl.sum(totals, 0, keep_dims=True).to(dgamma.dtype.element_ty), mask=col < extent)


# --- shared by the bodies ----------------------------------------------------------------------------------------------------


@triton.jit
def _share(rows, group, groups, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """The first row of a group and the one after its last: whole tiles, dealt out evenly and in order."""
    tiles = (rows.to(tl.int64) + (ROWS - 1)) // ROWS
    first = group.to(tl.int64) * tiles // groups * ROWS
    end = tl.minimum((group.to(tl.int64) + 1) * tiles // groups * ROWS, rows)
    return first.to(tl.int64 if WIDE else tl.int32), end.to(tl.int64 if WIDE else tl.int32)


@triton.jit
def _scale(gamma, col, within, gamma_row, ROWS: tl.constexpr, COLS: tl.constexpr, CONTIGUOUS: tl.constexpr):
    """gamma beside each row of a tile: of the tile's shape, so that it is held by the threads that hold the tile."""
    places = tl.broadcast_to(_places(col, gamma_row, CONTIGUOUS), (ROWS, COLS))
    return tl.load(gamma + places, mask=tl.broadcast_to(within, (ROWS, COLS)), other=0.0)


@triton.jit
def _places(col, lie, CONTIGUOUS: tl.constexpr):
    """The offsets of positions of a row that lies as (extents, steps)."""
    if CONTIGUOUS:
        return col
    else:
        return offset(col, lie[0], lie[1])
