"""Small matrix products and transposes over `simd` lanes, in scratch memory that a body owns.

A matrix in scratch is row-major, its pitch a whole number of vectors, its rows filled up to a whole number of tiles; what fills it up
is zero. A product accumulates c[r, :] += a[r, k] b[k, :] over k in rising order, each c a sum of its own, so neither the tile nor
the other rows enter into its bits. `a` is read one number at a time, by rows or by columns, whichever the steps say.

Like `simd`, this imports Numba: import it inside body factories.
"""

from collections.abc import Callable
from typing import NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu.vectors import simd, tasks
from baracuda_kernels.targets.cpu.vectors.simd import I32, I64, ON_X86, inline, outlined
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["Matrices", "filled", "flush_subnormals", "matrices", "restore_subnormals", "vectors"]

TILE_ROWS = 4
AHEAD = 16  # rows to ask for before they are read: the hardware does not follow such strides
FULL, LOWER, UPPER = 0, 1, 2  # which k a row of `a` has: all, those up to the diagonal, those from the diagonal on


@intrinsic
def _tile(typingctx, c, at_c, pitch_c, a, at_a, row_step, k_step, b, at_b, pitch_b, count, width, fresh, shape):
    """TILE_ROWS rows of `width` vectors of a product; literals: `width`, `fresh` (start from zero instead of c) and `shape`.

    LOWER: after `count` whole steps come those of a triangle on the diagonal. UPPER: the first steps are such a triangle.
    """
    if not all(isinstance(literal, types.IntegerLiteral) for literal in (width, fresh, shape)):
        return None
    columns, starts_at_zero, form = width.literal_value, fresh.literal_value, shape.literal_value

    def codegen(context, builder, signature, args):
        c, at_c, pitch_c, a, at_a, row_step, k_step, b, at_b, pitch_b, count = args[:11]
        scalar = context.get_data_type(signature.args[0].dtype)
        vector, size = ir.VectorType(scalar, LANES), context.get_abi_sizeof(scalar)
        cells = [(r, v) for r in range(TILE_ROWS) for v in range(columns)]
        fused = builder.module.declare_intrinsic(
            f"llvm.fmuladd.v{LANES}{'f64' if size == 8 else 'f32'}", fnty=ir.FunctionType(vector, [vector] * 3)
        )

        def place(pointer, *terms):
            return builder.gep(pointer, [sum_of(terms)])

        def sum_of(terms):
            total = terms[0]
            for term in terms[1:]:
                total = builder.add(total, term)
            return total

        def vector_at(pointer, v):
            there = builder.gep(pointer, [ir.Constant(I64, v * LANES)])
            return builder.bitcast(there, vector.as_pointer())

        rows_of_a = [place(a, at_a, builder.mul(row_step, ir.Constant(I64, r))) for r in range(TILE_ROWS)]
        rows_of_c = [place(c, at_c, builder.mul(pitch_c, ir.Constant(I64, r))) for r in range(TILE_ROWS)]
        first_of_b = place(b, at_b)

        def step(sums, k, rows):
            """The sums after step k for some of the rows."""
            row = builder.gep(first_of_b, [builder.mul(k, pitch_b)])
            loaded = [builder.load(vector_at(row, v), align=size) for v in range(columns)]
            along = builder.mul(k, k_step)
            result = dict(sums)
            for r in rows:
                number = simd.splat(builder, builder.load(builder.gep(rows_of_a[r], [along])))
                for v in range(columns):
                    result[r, v] = builder.call(fused, [number, loaded[v], sums[r, v]])
            return result

        def start(r, v):
            return ir.Constant(vector, None) if starts_at_zero else builder.load(vector_at(rows_of_c[r], v), align=size)

        sums = {cell: start(*cell) for cell in cells}
        first = ir.Constant(I64, 0)
        if form == UPPER:
            for k in range(TILE_ROWS):
                sums = step(sums, ir.Constant(I64, k), range(k + 1))
            first = ir.Constant(I64, TILE_ROWS)

        before, head = builder.block, builder.append_basic_block("k")
        body, after = builder.append_basic_block("step"), builder.append_basic_block("end")
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(I64)
        k.add_incoming(first, before)
        phis = {cell: builder.phi(vector) for cell in cells}
        for cell in cells:
            phis[cell].add_incoming(sums[cell], before)
        builder.cbranch(builder.icmp_signed("<", k, count), body, after)
        builder.position_at_end(body)
        grown = step(phis, k, range(TILE_ROWS))
        k.add_incoming(builder.add(k, ir.Constant(I64, 1)), body)
        for cell in cells:
            phis[cell].add_incoming(grown[cell], body)
        builder.branch(head)
        builder.position_at_end(after)

        sums = phis
        if form == LOWER:
            for more in range(TILE_ROWS):
                sums = step(sums, builder.add(count, ir.Constant(I64, more)), range(more, TILE_ROWS))
        for r, v in cells:
            builder.store(sums[r, v], vector_at(rows_of_c[r], v), align=size)

    i64 = types.int64
    return types.void(c, i64, i64, a, i64, i64, i64, b, i64, i64, i64, width, fresh, shape), codegen


@intrinsic
def _transpose(typingctx, square, target, at, pitch):
    """LANES x LANES numbers from `square` to rows of `target`, columns becoming rows."""

    def codegen(context, builder, signature, args):
        scalar = context.get_data_type(signature.args[0].dtype)
        vector, size = ir.VectorType(scalar, LANES), context.get_abi_sizeof(scalar)

        def there(pointer, offset):
            return builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())

        rows = [builder.load(there(args[0], ir.Constant(I64, i * LANES)), align=size) for i in range(LANES)]
        half = LANES // 2
        low = ir.Constant(ir.VectorType(I32, LANES), [i // 2 + LANES * (i % 2) for i in range(LANES)])
        high = ir.Constant(ir.VectorType(I32, LANES), [half + i // 2 + LANES * (i % 2) for i in range(LANES)])
        for _ in range(LANES.bit_length() - 1):  # each round of interleaving turns one bit of the column into one of the row
            rows = [builder.shuffle_vector(rows[i // 2], rows[i // 2 + half], high if i % 2 else low) for i in range(LANES)]
        for i, row in enumerate(rows):
            builder.store(row, there(args[1], builder.add(args[2], builder.mul(args[3], ir.Constant(I64, i)))), align=size)

    return types.void(square, target, types.int64, types.int64), codegen


def _control(name: str, builder: ir.IRBuilder, slot: ir.Value) -> None:
    bytes_of = ir.IntType(8).as_pointer()
    function = builder.module.declare_intrinsic(f"llvm.x86.sse.{name}", fnty=ir.FunctionType(ir.VoidType(), [bytes_of]))
    builder.call(function, [builder.bitcast(slot, bytes_of)])


@intrinsic
def flush_subnormals(typingctx):
    """Makes f32 and f64 numbers too small to be normal count as zero in this thread, and returns the mode before for `restore_subnormals`.

    Decays fade through that range in every long chunk, and an x86 processor takes a hundred times as long for such a number.
    """

    def codegen(context, builder, signature, args):
        if not ON_X86:
            return ir.Constant(I64, 0)
        slot = cgutils.alloca_once(builder, I32)
        _control("stmxcsr", builder, slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.Constant(I32, 0x8040)), slot)
        _control("ldmxcsr", builder, slot)
        return builder.zext(before, I64)

    return types.int64(), codegen


@intrinsic
def restore_subnormals(typingctx, mode):
    """The mode that `flush_subnormals` returned."""

    def codegen(context, builder, signature, args):
        if ON_X86:
            slot = cgutils.alloca_once(builder, I32)
            builder.store(builder.trunc(args[0], I32), slot)
            _control("ldmxcsr", builder, slot)

    return types.void(types.int64), codegen


@inline
def vectors(columns):
    """How many vectors hold so many columns."""
    return (columns + LANES - 1) // LANES


@inline
def filled(rows):
    """The rows with those that fill up the last tile."""
    return (rows + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS


class Matrices(NamedTuple):
    """What `matrices` makes. Products take (c, pitch, a, row step, k step, b, pitch, rows, vectors across, k count,
    whether only the vectors of c that reach the diagonal are wanted)."""

    multiply: Callable  # c = a b
    add: Callable  # c += a b
    add_lower: Callable  # c += a b, where row r of a has only k <= r
    add_upper: Callable  # c += a b, where row r of a has only k >= r; the count is filled up
    fetch: Callable
    fetch_transposed: Callable
    put: Callable


def matrices(element: str) -> Matrices:
    real = simd.widened(element)
    zero, square_size = real(0), LANES * LANES
    widen = simd.to_f64 if element == "f64" else simd.to_f32  # of f32, if it is to be computed with in f64

    @outlined
    def fetch(source, at, step, rows, columns, target, pitch):
        """Rows of an operand, widened, into scratch."""
        for i in range(rows):
            for v in range(vectors(columns)):
                here, left = at + i * step + v * LANES, columns - v * LANES
                simd.prefetch(source, here + AHEAD * step)
                if left >= LANES:
                    simd.store(target, i * pitch + v * LANES, 1, widen(simd.load(source, here, 1)))
                else:
                    simd.store(target, i * pitch + v * LANES, 1, widen(simd.load_part(source, here, 1, left)))
        for i in range(rows, filled(rows)):
            for v in range(vectors(columns)):
                simd.store(target, i * pitch + v * LANES, 1, simd.spread(zero))

    @outlined
    def fetch_transposed(source, at, step, rows, columns, target, pitch):
        """Rows of an operand, widened, as columns of scratch; the target has whole vectors of rows."""
        square = tasks.scratch(real, square_size)
        for row in range(0, rows, LANES):
            for column in range(0, columns, LANES):
                left = columns - column
                for i in range(LANES):
                    here = at + (row + i) * step + column
                    simd.prefetch(source, here + AHEAD * step)
                    if row + i >= rows:
                        simd.store(square, i * LANES, 1, simd.spread(zero))
                    elif left >= LANES:
                        simd.store(square, i * LANES, 1, widen(simd.load(source, here, 1)))
                    else:
                        simd.store(square, i * LANES, 1, widen(simd.load_part(source, here, 1, left)))
                _transpose(square, target, column * pitch + row, pitch)

    @outlined
    def put(source, pitch, rows, columns, target, at, step):
        """Rows of scratch, rounded, to an operand."""
        for i in range(rows):
            for v in range(vectors(columns)):
                row, left = simd.load(source, i * pitch + v * LANES, 1), columns - v * LANES
                if left >= LANES:
                    simd.store(target, at + i * step + v * LANES, 1, row)
                else:
                    simd.store_part(target, at + i * step + v * LANES, 1, row, left)

    return Matrices(
        _product(element, 1, FULL),
        _product(element, 0, FULL),
        _product(element, 0, LOWER),
        _product(element, 0, UPPER),
        fetch,
        fetch_transposed,
        put,
    )


def _tile_vectors(element: str) -> int:
    """As many as the registers hold beside what is multiplied."""
    return (4 if llvm.get_host_cpu_features().get("avx512f") else 1) // (2 if element == "f64" else 1) or 1


def _product(element: str, fresh: int, shape: int) -> Callable:
    wide = _tile_vectors(element)

    @inline
    def tiles(c, at_c, pitch_c, a, at_a, row_step, k_step, b, at_b, pitch_b, count, across):
        v = 0
        while v + wide <= across:
            _tile(c, at_c + v * LANES, pitch_c, a, at_a, row_step, k_step, b, at_b + v * LANES, pitch_b, count, wide, fresh, shape)
            v += wide
        if wide > 2:
            while v + 2 <= across:
                _tile(c, at_c + v * LANES, pitch_c, a, at_a, row_step, k_step, b, at_b + v * LANES, pitch_b, count, 2, fresh, shape)
                v += 2
        if wide > 1:
            while v < across:
                _tile(c, at_c + v * LANES, pitch_c, a, at_a, row_step, k_step, b, at_b + v * LANES, pitch_b, count, 1, fresh, shape)
                v += 1

    @outlined
    def product(c, pitch_c, a, row_step, k_step, b, pitch_b, rows, across, count, causal):
        for r in range(0, rows, TILE_ROWS):
            first, last, reach = 0, count, across
            if shape == LOWER:
                last = r
            if shape == UPPER:
                first = r
            if causal:
                reach = min(across, (r + TILE_ROWS - 1) // LANES + 1)
            at_a, at_b = r * row_step + first * k_step, first * pitch_b
            tiles(c, r * pitch_c, pitch_c, a, at_a, row_step, k_step, b, at_b, pitch_b, last - first, reach)

    return product
