"""The part of attention's backward that goes by keys: dv = attnᵀ · dy and dk = dscoresᵀ · q · scale.

A block of keys sums over the queries of every head that shares its slot, one head after the other, so a shared slot is
written once and by one thread.
"""

from collections.abc import Callable

from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["BLOCK_KEYS", "columns_body"]

# The words of a launch; then of x and of the gradient the steps along batch, head (or slot) and row.
TASKS, FIRST, BLOCKS, SLOTS, GROUP, QUERIES, KEYS, WIDTH, SCALE, STEPS = range(10)
X, OUT = STEPS, STEPS + 3

BLOCK_KEYS = 192
MOST_COLUMNS = 128


def columns_body(element: str) -> tuple[Callable, tuple]:
    """Blocks of keys, one to a task."""
    from baracuda_kernels.ops.attention.sdpa import product
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    inline, real = simd.inline, simd.widened(element)
    tile = product.tile_of(element)
    multiply, strip, height, depth_step = product.multiplier(tile), tile.columns, tile.rows, product.DEPTH
    pack_rows, zero = product.pack_rows, real(0)
    strip_buffer, matrix_buffer, out_buffer = depth_step * strip, depth_step * BLOCK_KEYS, BLOCK_KEYS * MOST_COLUMNS

    @inline
    def add_head(words, matrix, at_matrix, x, at_x, packed, packed_matrix, out, keys, column, columns):
        for i in range(0, words[QUERIES], depth_step):
            depth = min(depth_step, words[QUERIES] - i)
            pack_rows(matrix, at_matrix + i * words[KEYS], words[KEYS], depth, keys, BLOCK_KEYS, packed_matrix)
            for s in range(0, columns, strip):
                pack_rows(x, at_x + i * words[X + 2] + column + s, words[X + 2], depth, min(strip, columns - s), strip, packed)
                for r in range(0, keys, height):
                    few, place = min(height, keys - r), s * BLOCK_KEYS + r * strip
                    multiply(packed_matrix, r, 1, BLOCK_KEYS, packed, out, place, strip, few, strip, depth, False)

    @inline
    def write(words, out, y, at, keys, columns, scale):
        for s in range(0, columns, strip):
            for r in range(keys):
                for c in range(0, min(strip, columns - s), LANES):
                    v = simd.load(out, s * BLOCK_KEYS + r * strip + c, 1) * scale
                    place, rest = at + r * words[OUT + 2] + s + c, columns - s - c
                    if rest >= LANES:
                        simd.store(y, place, 1, v)
                    else:
                        simd.store_part(y, place, 1, v, rest)

    def columns_of(words, counter, matrix, x, y):
        packed, packed_matrix = tasks.scratch(real, strip_buffer), tasks.scratch(real, matrix_buffer)
        out, scale = tasks.scratch(real, out_buffer), real(tasks.as_f64(words, SCALE)[0])
        heads, square = words[SLOTS] * words[GROUP], words[QUERIES] * words[KEYS]
        task = tasks.claim(counter, -1)
        while task < words[TASKS]:
            n, key = words[FIRST] + task // words[BLOCKS], task % words[BLOCKS] * BLOCK_KEYS
            batch, slot, keys = n // words[SLOTS], n % words[SLOTS], min(BLOCK_KEYS, words[KEYS] - key)
            at_y = batch * words[OUT] + slot * words[OUT + 1] + key * words[OUT + 2]
            for column in range(0, words[WIDTH], MOST_COLUMNS):
                columns = min(MOST_COLUMNS, words[WIDTH] - column)
                for s in range(0, columns, strip):
                    for i in range(0, keys * strip, LANES):
                        simd.store(out, s * BLOCK_KEYS + i, 1, simd.spread(zero))
                for head in range(slot * words[GROUP], (slot + 1) * words[GROUP]):
                    at_matrix = (batch * heads + head) * square + key
                    at_x = batch * words[X] + head * words[X + 1]
                    add_head(words, matrix, at_matrix, x, at_x, packed, packed_matrix, out, keys, column, columns)
                write(words, out, y, at_y + column, keys, columns, scale)
            task = tasks.claim(counter, task)

    return columns_of, (tasks.words, tasks.words, *[simd.pointer_to(element)] * 3)
