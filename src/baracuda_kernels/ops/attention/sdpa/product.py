"""Matrix products on small tiles, written once for every element.

C += A·B, where B is a strip of a few vectors of columns, packed and widened by `pack_rows` or `pack_columns`, and A is read
where it lies, one number at a time, spread over the lanes. An element of C is one chain of fused multiply-adds over the depth,
whatever the tile, so tiles can be shaped to the machine's registers without affecting the result.

Like `simd`, this imports Numba: import it inside body factories.
"""

from typing import NamedTuple

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu import float16
from baracuda_kernels.targets.cpu.vectors.simd import I1, I32, I64, Half, fma, inline, load, load_part, store, tree_sum
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["DEPTH", "ProductTile", "multiplier", "pack_columns", "pack_rows", "tile_of"]

DEPTH = 128  # products are summed so many at a time, then added up: a multiple of LANES


class ProductTile(NamedTuple):
    """What is kept in registers: rows of C, each of `vectors` times LANES columns."""

    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        return self.vectors * LANES


def tile_of(element: str) -> ProductTile:
    """The tile whose sums fill this machine's registers."""
    wide = element == "f64"
    if binding.get_host_cpu_features().get("avx512f", False):
        return ProductTile(6, 2 if wide else 4)
    return ProductTile(3 if wide else 6, 1)


def multiplier(tile: ProductTile):
    """C[:rows, :columns] of one tile, set (fresh) or added to: A·B over `depth`.

    A is at a[at_a], with a step from row to row and one along the depth; B is packed; C is at c[at_c], rows `step_c` apart.
    """

    @intrinsic
    def multiply(typingctx, a, at_a, row_step, depth_step, b, c, at_c, step_c, rows, columns, depth, fresh):
        def codegen(context, builder, signature, args):
            a, at_a, row_step, depth_step, b, c, at_c, step_c, rows, columns, depth, fresh = args
            scalar = a.type.pointee
            start = builder.gep(a, [at_a])
            # Rows that are not there repeat the last one: nothing is read that does not exist.
            sources = [start]
            for r in range(1, tile.rows):
                there = builder.icmp_signed("<", ir.Constant(I64, r), rows)
                sources.append(builder.select(there, builder.gep(sources[-1], [row_step]), sources[-1]))
            _ask_for(builder, tile, c, at_c, step_c)
            sums = _sums(builder, tile, scalar, sources, depth_step, b, depth)
            whole = builder.icmp_signed("==", columns, ir.Constant(I64, tile.columns))
            for r in range(tile.rows):
                with builder.if_then(builder.icmp_signed("<", ir.Constant(I64, r), rows)):
                    at = builder.gep(c, [builder.add(at_c, builder.mul(step_c, ir.Constant(I64, r)))])
                    with builder.if_else(whole) as (full, part):
                        with full:
                            _keep(builder, at, sums[r], fresh, None)
                        with part:
                            _keep(builder, at, sums[r], fresh, columns)

        whole_numbers = [types.int64] * 3
        return types.void(a, *whole_numbers, b, c, *[types.int64] * 5, types.boolean), codegen

    return multiply


def _ask_for(builder, tile, c, at_c, step_c):
    """Asks for the lines of C that will be written, so that they come while the sums are taken."""
    byte = ir.IntType(8).as_pointer()
    ask = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32]))
    line = 64 // (8 if isinstance(c.type.pointee, ir.DoubleType) else 4)
    for r in range(tile.rows):
        row = builder.add(at_c, builder.mul(step_c, ir.Constant(I64, r)))
        for column in range(0, tile.columns, line):
            at = builder.gep(c, [builder.add(row, ir.Constant(I64, column))])
            builder.call(ask, [builder.bitcast(at, byte), *(ir.Constant(I32, number) for number in (1, 3, 1))])  # to write


def _sums(builder, tile, scalar, sources, depth_step, b, depth):
    """The loop over the depth: one chain of fused multiply-adds per element of the tile."""
    vector = ir.VectorType(scalar, LANES)
    before = builder.block
    loop, done = builder.append_basic_block("depth"), builder.append_basic_block("summed")
    zero, nothing = ir.Constant(I64, 0), ir.Constant(vector, None)
    builder.cbranch(builder.icmp_signed(">", depth, zero), loop, done)
    builder.position_at_end(loop)
    index, offset = builder.phi(I64), builder.phi(I64)
    sums = [[builder.phi(vector) for _ in range(tile.vectors)] for _ in sources]
    line = builder.gep(b, [builder.mul(index, ir.Constant(I64, tile.columns))])
    columns = [
        builder.load(builder.bitcast(builder.gep(line, [ir.Constant(I64, v * LANES)]), vector.as_pointer()), align=64)
        for v in range(tile.vectors)
    ]
    added = []
    for source, row in zip(sources, sums, strict=True):
        number = _splat(builder, builder.load(builder.gep(source, [offset])), vector)
        added.append([_fma(builder, number, column, total) for column, total in zip(columns, row, strict=True)])
    following = builder.add(index, ir.Constant(I64, 1))
    for phi, first, later in ((index, zero, following), (offset, zero, builder.add(offset, depth_step))):
        phi.add_incoming(first, before)
        phi.add_incoming(later, loop)
    for row, later in zip(sums, added, strict=True):
        for phi, value in zip(row, later, strict=True):
            phi.add_incoming(nothing, before)
            phi.add_incoming(value, loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, done)
    builder.position_at_end(done)
    results = [[builder.phi(vector) for _ in row] for row in added]
    for row, later in zip(results, added, strict=True):
        for phi, value in zip(row, later, strict=True):
            phi.add_incoming(nothing, before)
            phi.add_incoming(value, loop)
    return results


def _splat(builder, number, vector):
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(I32, 0))
    zeros = ir.Constant(ir.VectorType(I32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _suffix(vector) -> str:
    name = str(vector.element)
    return f"v{LANES}" + {"float": "f32", "double": "f64"}.get(name, name)


def _fma(builder, a, b, c):
    function = ir.FunctionType(a.type, [a.type] * 3)
    return builder.call(builder.module.declare_intrinsic(f"llvm.fmuladd.{_suffix(a.type)}", fnty=function), [a, b, c])


def _keep(builder, row, sums, fresh, columns):
    """Stores one row of sums, or adds them to what is there; of the last vectors only what lies within `columns`."""
    vector = sums[0].type
    size = 8 if isinstance(vector.element, ir.DoubleType) else 4
    for v, total in enumerate(sums):
        at = builder.bitcast(builder.gep(row, [ir.Constant(I64, v * LANES)]), vector.as_pointer())
        mask = None if columns is None else _lanes_before(builder, builder.sub(columns, ir.Constant(I64, v * LANES)))
        slot = cgutils.alloca_once_value(builder, total)
        with builder.if_then(builder.not_(fresh)):
            builder.store(builder.fadd(_read(builder, at, vector, size, mask), total), slot)
        result = builder.load(slot)
        if mask is None:
            builder.store(result, at, align=size)
        else:
            function = ir.FunctionType(ir.VoidType(), [vector, vector.as_pointer(), I32, mask.type])
            masked = builder.module.declare_intrinsic(f"llvm.masked.store.{_suffix(vector)}.p0", fnty=function)
            builder.call(masked, [result, at, ir.Constant(I32, size), mask])


def _read(builder, at, vector, size, mask):
    if mask is None:
        return builder.load(at, align=size)
    function = ir.FunctionType(vector, [vector.as_pointer(), I32, ir.VectorType(I1, LANES), vector])
    masked = builder.module.declare_intrinsic(f"llvm.masked.load.{_suffix(vector)}.p0", fnty=function)
    return builder.call(masked, [at, ir.Constant(I32, size), mask, ir.Constant(vector, None)])


def _lanes_before(builder, count):
    lanes = ir.VectorType(I64, LANES)
    return builder.icmp_signed("<", ir.Constant(lanes, list(range(LANES))), _splat(builder, count, lanes))


# --- packing ---------------------------------------------------------------------------------------------------------------


@inline
def pack_rows(x, at, step, rows, columns, width, packed):
    """`rows` rows of `columns` numbers, `step` apart, to rows of `width`, widened, the rest zero. True if all are finite."""
    nothing = load_part(x, at, 1, 0)
    spoiled = nothing
    for i in range(rows):
        here, place = at + i * step, i * width
        c = 0
        while c + LANES <= columns:
            v = load(x, here + c, 1)
            store(packed, place + c, 1, v)
            spoiled = fma(v, 0.0, spoiled)
            c += LANES
        if c < columns:
            v = load_part(x, here + c, 1, columns - c)
            store(packed, place + c, 1, v)
            spoiled = fma(v, 0.0, spoiled)
            c += LANES
        while c < width:
            store(packed, place + c, 1, nothing)
            c += LANES
    return tree_sum(spoiled) == 0.0


def _turner(full: bool):
    """Sixteen by sixteen numbers, rows `step` apart, turned over into rows of `packed` that are `width` apart."""

    @intrinsic
    def turn(typingctx, x, at, step, rows, columns, packed, place, width):
        storage = x.dtype

        def codegen(context, builder, signature, args):
            x, at, step, rows, columns, packed, place, width = args
            kind = ir.VectorType(x.type.pointee, LANES)
            size = context.get_abi_sizeof(x.type.pointee)
            lines = []
            for r in range(LANES):
                here = builder.gep(x, [builder.add(at, builder.mul(step, ir.Constant(I64, r)))])
                memory = builder.bitcast(here, kind.as_pointer())
                if full:
                    raw = builder.load(memory, align=size)
                else:
                    there = builder.icmp_signed("<", ir.Constant(I64, r), rows)
                    count = builder.select(there, columns, ir.Constant(I64, 0))
                    raw = _read(builder, memory, kind, size, _lanes_before(builder, count))
                lines.append(float16.widen(builder, storage.name, raw) if isinstance(storage, Half) else raw)
            half = LANES // 2
            low = [lane // 2 + lane % 2 * LANES for lane in range(LANES)]
            shuffles = [ir.Constant(ir.VectorType(I32, LANES), [lane + first for lane in low]) for first in (0, half)]
            # Interleaving each line with the one half a square below, four times over, turns the square.
            while half:
                pairs = zip(lines[: LANES // 2], lines[LANES // 2 :], strict=True)
                lines = [builder.shuffle_vector(a, b, order) for a, b in pairs for order in shuffles]
                half //= 2
            for r, line in enumerate(lines):
                here = builder.gep(packed, [builder.add(place, builder.mul(width, ir.Constant(I64, r)))])
                builder.store(line, builder.bitcast(here, line.type.as_pointer()), align=4)

        return types.void(x, *[types.int64] * 4, packed, types.int64, types.int64), codegen

    return turn


_turn, _turn_part = _turner(True), _turner(False)


@inline
def pack_columns(x, at, step, rows, columns, width, packed):
    """`rows` rows, at most `width`, of `columns` numbers, `step` apart, become columns: `columns` rows of `width`, the rest zero.

    `packed` has room for `columns` rounded up to whole vectors.
    """
    for c in range(0, columns, LANES):
        for r in range(0, width, LANES):
            if r + LANES <= rows and c + LANES <= columns:
                _turn(x, at + r * step + c, step, LANES, LANES, packed, c * width + r, width)
            else:
                _turn_part(x, at + r * step + c, step, rows - r, columns - c, packed, c * width + r, width)
