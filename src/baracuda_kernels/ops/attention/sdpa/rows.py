"""The part of attention that goes by rows: everything of the forward, and the gradients of scores and queries.

Both directions are one scheme over a block of query rows. With (a, b, c) = (q, k, v) forward and (dy, v, k) backward:

    marks = a · bᵀ                       forward: scores             backward: dattn
    fold    each row to a number or two    its maximum and its sum     the sum of attn · dattn
    weights                                attn                        dscores
    out = weights · c                      y                           dq, scaled

f32 and f64 keep marks and weights where the weights belong, in attn or dscores_ws. Halves keep them in f32 on the stack; rows
that do not fit there are computed in segments, once to fold them and once more for the weights.
"""

import math
from collections.abc import Callable

from baracuda_kernels.targets.cpu.vectors.summation_order import BLOCK, LANES

__all__ = ["rows_body", "segment_and_rows"]

# The words of a launch; then of each operand its steps along batch, head and row.
TASKS, FIRST, BLOCKS, ROWS, SEGMENT, HEADS, GROUP, QUERIES, KEYS, INNER, WIDTH, CAUSAL, SCALE, SAVED_STEP, STEPS = range(15)
A, B, C, SAVED, OUT = range(STEPS, STEPS + 15, 3)

BUFFER = 49152  # numbers of a block that 16-bit floats keep on the stack
OUT_BUFFER = 16384  # numbers of the output that a block sums up at a time
MOST_ROWS = 192


def segment_and_rows(element: str, keys: int) -> tuple[int, int]:
    """How many keys are computed at a time, and how many queries."""
    padded = max(1, -(-keys // LANES)) * LANES
    if element in ("f16", "bf16"):
        segment = min(padded, BUFFER // 12 // LANES * LANES)
        return segment, min(MOST_ROWS // 2, BUFFER // segment)
    return padded, max(24, min(MOST_ROWS, (1 << 19) // (padded * (8 if element == "f64" else 4)) // 6 * 6))


def _softmax_parts(element: str, masked: bool) -> tuple[Callable, Callable]:
    from baracuda_kernels.targets.cpu.vectors import simd
    from baracuda_kernels.targets.cpu.vectors.vmath import exp_nonpositive

    inline, real, minus_infinity = simd.inline, simd.widened(element), -math.inf
    lowest = real(minus_infinity)

    @inline
    def score(marks, at, mask, at_mask, mask_step, scale, count):
        """Sixteen scores; those past `count` and those that the mask hides are -inf, whatever the product was."""
        t = simd.load(marks, at, 1) if count >= LANES else simd.load_part(marks, at, 1, count)
        t = t * scale
        if masked:
            if mask_step != 1:
                m = simd.load_strided_part(mask, at_mask, mask_step, min(count, LANES))
            elif count >= LANES:
                m = simd.load(mask, at_mask, 1)
            else:
                m = simd.load_part(mask, at_mask, 1, count)
            t = simd.where(m <= lowest, lowest, t + m)
        return t if count >= LANES else simd.where(simd.first_lanes(count), t, lowest)

    @inline
    def highest(marks, at, mask, at_mask, mask_step, scale, count):
        a = simd.spread(lowest)
        b, c, d = a, a, a
        j = 0
        while j + 4 * LANES <= count:
            # Four chains, since one would wait for itself.
            a = simd.maximum(a, score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, LANES))
            j += LANES
            b = simd.maximum(b, score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, LANES))
            j += LANES
            c = simd.maximum(c, score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, LANES))
            j += LANES
            d = simd.maximum(d, score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, LANES))
            j += LANES
        while j < count:
            a = simd.maximum(a, score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, count - j))
            j += LANES
        return simd.largest(simd.maximum(simd.maximum(a, b), simd.maximum(c, d)))

    @simd.outlined
    def fold(marks, at, mask, at_mask, mask_step, scale, count, kept, tops, totals, row):
        """Takes `count` more keys into a row's maximum and sum, and keeps their exponentials."""
        before = tops[row]
        top = max(before, highest(marks, at, mask, at_mask, mask_step, scale, count))
        base = real(0) if top == lowest else top
        total = 0.0
        first = 0
        while first < count:
            size = min(BLOCK, count - first)
            acc = simd.spread(real(0))
            for i in range(0, size, LANES):
                j = first + i
                t = score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, count - j)
                e = exp_nonpositive(t - base)
                acc = acc + e
                if kept:
                    if count - j >= LANES:
                        simd.store(marks, at + j, 1, e)
                    else:
                        simd.store_part(marks, at + j, 1, e, count - j)
            total += float(simd.tree_sum(acc))
            first += BLOCK
        if before > lowest:
            total += totals[row] * math.exp(float(before) - float(top))
        tops[row] = top
        totals[row] = total

    @simd.outlined
    def weights(marks, at, mask, at_mask, mask_step, scale, count, kept, top, total, matrix, at_matrix, copies):
        """The share of each key; nothing at all has a share where no score was finite."""
        base = real(0) if top == lowest else top
        share = real(0) if total == 0.0 else real(1.0 / total)
        for j in range(0, count, LANES):
            rest = count - j
            if kept:
                e = simd.load(marks, at + j, 1) if rest >= LANES else simd.load_part(marks, at + j, 1, rest)
            else:
                e = exp_nonpositive(score(marks, at + j, mask, at_mask + j * mask_step, mask_step, scale, rest) - base)
            e = e * share
            if rest >= LANES:
                simd.store(marks, at + j, 1, e)
                if copies:
                    simd.store(matrix, at_matrix + j, 1, e)
            else:
                simd.store_part(marks, at + j, 1, e, rest)
                if copies:
                    simd.store_part(matrix, at_matrix + j, 1, e, rest)

    return fold, weights


def _gradient_parts(element: str) -> tuple[Callable, Callable]:
    from baracuda_kernels.targets.cpu.vectors import simd

    real = simd.widened(element)

    @simd.outlined
    def fold(marks, at, attn, at_attn, attn_step, scale, count, kept, tops, totals, row):
        """Adds attn · dattn over `count` more keys."""
        total = 0.0
        first = 0
        while first < count:
            size = min(BLOCK, count - first)
            acc = simd.spread(real(0))
            i = 0
            while i + LANES <= size:
                j = first + i
                acc = simd.fma(simd.load(marks, at + j, 1), simd.load(attn, at_attn + j, 1), acc)
                i += LANES
            if i < size:
                j, rest = first + i, size - i
                acc = simd.fma(simd.load_part(marks, at + j, 1, rest), simd.load_part(attn, at_attn + j, 1, rest), acc)
            total += float(simd.tree_sum(acc))
            first += BLOCK
        totals[row] += total

    @simd.outlined
    def weights(marks, at, attn, at_attn, attn_step, scale, count, kept, top, total, matrix, at_matrix, copies):
        mean = real(total)
        j = 0
        while j + LANES <= count:
            g = simd.load(attn, at_attn + j, 1) * (simd.load(marks, at + j, 1) - mean)
            simd.store(marks, at + j, 1, g)
            if copies:
                simd.store(matrix, at_matrix + j, 1, g)
            j += LANES
        if j < count:
            rest = count - j
            g = simd.load_part(attn, at_attn + j, 1, rest) * (simd.load_part(marks, at + j, 1, rest) - mean)
            simd.store_part(marks, at + j, 1, g, rest)
            if copies:
                simd.store_part(matrix, at_matrix + j, 1, g, rest)

    return fold, weights


def rows_body(direction: str, element: str, saved: str) -> tuple[Callable, tuple]:
    """Blocks of query rows, one to a task. `saved` says whether a forward has a mask."""
    from baracuda_kernels.ops.attention.sdpa import product
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    forward, masked, halves = direction == "forward", saved == "masked", element in ("f16", "bf16")
    fold, weights = _softmax_parts(element, masked) if forward else _gradient_parts(element)
    inline, outlined, real, float64 = simd.inline, simd.outlined, simd.widened(element), simd.float64
    tile = product.tile_of(element)
    multiply, strip, height, depth_step = product.multiplier(tile), tile.columns, tile.rows, product.DEPTH
    pack_rows, pack_columns = product.pack_rows, product.pack_columns
    strip_buffer, a_buffer, minus_infinity = depth_step * strip, (MOST_ROWS // 2 * depth_step if halves else LANES), -math.inf
    zero, lowest = real(0), real(minus_infinity)

    @outlined
    def marks_of(words, a, at_a, packed_a, b, at_b, packed, marks, at, pitch, rows, first, count):
        """marks = a · bᵀ for `count` keys from `first` on."""
        inner = words[INNER]
        for j in range(0, count, strip):
            columns = min(strip, count - j)
            for d in range(0, max(inner, 1), depth_step):
                depth = min(depth_step, inner - d)
                pack_columns(b, at_b + (first + j) * words[B + 2] + d, words[B + 2], columns, depth, strip, packed)
                if halves and (j == 0 or inner > depth_step):
                    pack_rows(a, at_a + d, words[A + 2], rows, depth, depth_step, packed_a)
                for r in range(0, rows, height):
                    place, few = at + r * pitch + j, min(height, rows - r)
                    if halves:
                        multiply(packed_a, r * depth_step, depth_step, 1, packed, marks, place, pitch, few, columns, depth, d == 0)
                    else:
                        here = at_a + d + r * words[A + 2]
                        multiply(a, here, words[A + 2], 1, packed, marks, place, pitch, few, columns, depth, d == 0)

    @inline
    def fill(numbers, at, count):
        for j in range(0, count, LANES):
            if count - j >= LANES:
                simd.store(numbers, at + j, 1, simd.spread(zero))
            else:
                simd.store_part(numbers, at + j, 1, simd.spread(zero), count - j)

    @outlined
    def add_visible(words, marks, at, pitch, packed, mask, at_mask, out, at_out, rows, row, key, depth):
        """The product for keys that hold NaN or infinities: those hidden from a query are left out of its sum."""
        for r in range(rows):
            for c in range(0, strip, LANES):
                acc = simd.spread(zero)
                for j in range(depth):
                    hidden = words[CAUSAL] != 0 and key + j > row + r
                    if masked:
                        m = simd.load_strided_part(mask, at_mask + r * words[SAVED + 2] + (key + j) * words[SAVED_STEP], 1, 1)
                        hidden = hidden or simd.extract(m, 0) == lowest
                    if not hidden:
                        acc = simd.fma(simd.load(packed, j * strip + c, 1), marks[at + r * pitch + j], acc)
                simd.store(out, at_out + r * strip + c, 1, simd.load(out, at_out + r * strip + c, 1) + acc)

    @outlined
    def add_product(words, marks, at, pitch, c, at_c, packed, mask, at_mask, out, rows, row, first, count, column, columns):
        """out += weights · c for `count` keys from `first` on and `columns` columns from `column` on, strip by strip."""
        for s in range(0, columns, strip):
            width = min(strip, columns - s)
            for j in range(0, count, depth_step):
                depth = min(depth_step, count - j)
                here = at_c + (first + j) * words[C + 2] + column + s
                finite = pack_rows(c, here, words[C + 2], depth, width, strip, packed)
                if forward and not finite and (masked or words[CAUSAL] != 0):
                    add_visible(words, marks, at + j, pitch, packed, mask, at_mask, out, s * rows, rows, row, first + j, depth)
                else:
                    for r in range(0, rows, height):
                        from_marks, place, few = at + r * pitch + j, s * rows + r * strip, min(height, rows - r)
                        multiply(marks, from_marks, pitch, 1, packed, out, place, strip, few, strip, depth, False)

    @outlined
    def write(words, out, y, at_y, rows, columns, scale):
        for s in range(0, columns, strip):
            for r in range(rows):
                for c in range(0, min(strip, columns - s), LANES):
                    v, place = simd.load(out, s * rows + r * strip + c, 1), at_y + r * words[OUT + 2] + s + c
                    if not forward:
                        v = v * scale
                    if columns - s - c >= LANES:
                        simd.store(y, place, 1, v)
                    else:
                        simd.store_part(y, place, 1, v, columns - s - c)

    @outlined
    def block(words, a, b, c, saved, marks, matrix, y, packed, packed_a, out, tops, totals, n, row, rows):
        keys, segment, step, scale = words[KEYS], words[SEGMENT], words[SAVED_STEP], real(tasks.as_f64(words, SCALE)[0])
        batch, head = n // words[HEADS], n % words[HEADS]
        shared = head // words[GROUP]
        at_a = batch * words[A] + head * words[A + 1] + row * words[A + 2]
        at_b = batch * words[B] + shared * words[B + 1]
        at_c = batch * words[C] + shared * words[C + 1]
        at_saved = batch * words[SAVED] + head * words[SAVED + 1] + row * words[SAVED + 2]
        at_y = batch * words[OUT] + head * words[OUT + 1] + row * words[OUT + 2]
        at_matrix = (n * words[QUERIES] + row) * keys
        at_marks, pitch = (0, segment) if halves else (at_matrix, keys)
        reach = min(keys, row + rows) if words[CAUSAL] != 0 else keys  # keys that the last row sees
        kept = keys <= segment
        for r in range(rows):
            tops[r] = lowest
            totals[r] = 0.0
        if not kept:
            for first in range(0, reach, segment):
                count = min(segment, reach - first)
                marks_of(words, a, at_a, packed_a, b, at_b, packed, marks, at_marks, pitch, rows, first, count)
                for r in range(rows):
                    sees = max(0, min(count, row + r + 1 - first)) if words[CAUSAL] != 0 else count
                    there = at_saved + r * words[SAVED + 2] + first * step
                    fold(marks, at_marks + r * pitch, saved, there, step, scale, sees, False, tops, totals, r)
        widest = max(OUT_BUFFER // rows // strip, 1) * strip
        for column in range(0, max(words[WIDTH], 1), widest):
            columns = min(widest, words[WIDTH] - column)
            fill(out, 0, rows * ((columns + strip - 1) // strip) * strip)
            for first in range(0, keys, segment):
                count, whole = min(segment, max(0, reach - first)), min(segment, keys - first)
                if not kept or column == 0:
                    marks_of(words, a, at_a, packed_a, b, at_b, packed, marks, at_marks, pitch, rows, first, count)
                    for r in range(rows):
                        sees = max(0, min(count, row + r + 1 - first)) if words[CAUSAL] != 0 else count
                        here, place = at_marks + r * pitch, at_matrix + r * keys + first
                        there = at_saved + r * words[SAVED + 2] + first * step
                        if kept:
                            fold(marks, here, saved, there, step, scale, sees, True, tops, totals, r)
                        weights(marks, here, saved, there, step, scale, sees, kept, tops[r], totals[r], matrix, place, halves)
                        fill(matrix, place + sees, whole - sees)
                        if halves:
                            fill(marks, here + sees, count - sees)
                add_product(
                    words, marks, at_marks, pitch, c, at_c, packed, saved, at_saved, out, rows, row, first, count, column, columns
                )
            write(words, out, y, at_y + column, rows, columns, scale)

    @inline
    def rows(words, counter, a, b, c, saved, marks, matrix, y):
        packed, packed_a = tasks.scratch(real, strip_buffer), tasks.scratch(real, a_buffer)
        out, tops, totals = tasks.scratch(real, OUT_BUFFER), tasks.scratch(real, MOST_ROWS), tasks.scratch(float64, MOST_ROWS)
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            n, row = words[FIRST] + task // words[BLOCKS], task % words[BLOCKS] * words[ROWS]
            count = min(words[ROWS], words[QUERIES] - row)
            block(words, a, b, c, saved, marks, matrix, y, packed, packed_a, out, tops, totals, n, row, count)
            task = tasks.claim(counter, task)

    def narrow(words, counter, a, b, c, saved, matrix, y):
        rows(words, counter, a, b, c, saved, tasks.scratch(real, BUFFER), matrix, y)

    def wide(words, counter, a, b, c, saved, matrix, y):
        rows(words, counter, a, b, c, saved, matrix, matrix, y)

    return narrow if halves else wide, (tasks.words, tasks.words, *[simd.pointer_to(element)] * 6)
