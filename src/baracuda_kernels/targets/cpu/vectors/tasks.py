"""What a body needs besides vectors: its next task, where its operands lie, stack memory, and signals from other threads.

A body has the signature body(words, counter, operand...). `words` are the int64 numbers that `geometry` and the kernel's
launcher prepared; `counter` is null when one thread does everything, else it counts the tasks handed out:

    task = claim(counter, -1)
    while task < tasks:
        ...
        task = claim(counter, task)

Like `simd`, this imports Numba: import it inside body factories.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu.vectors.simd import I64, inline, pointer_to

__all__ = ["as_f64", "claim", "finish", "flush_streams", "is_aligned", "locate", "scratch", "wait_for", "words"]

words = pointer_to("i64")


@intrinsic
def _is_null(typingctx, pointer):
    def codegen(context, builder, signature, args):
        return builder.icmp_unsigned("==", args[0], ir.Constant(args[0].type, None))

    return types.boolean(pointer), codegen


def _counting(order: str):
    @intrinsic
    def count(typingctx, pointer, index):
        def codegen(context, builder, signature, args):
            return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), ir.Constant(I64, 1), order)

        return types.int64(pointer, types.int64), codegen

    return count


_count, _count_and_publish = _counting("monotonic"), _counting("release")


@inline
def claim(counter, previous):
    """The number of the next task; `previous` is this thread's last one, -1 at the start."""
    if _is_null(counter):
        return previous + 1
    return _count(counter, 0)


@inline
def finish(counter, index):
    """Tells other threads that one more task of those counted in `counter[index]` is done."""
    _count_and_publish(counter, index)


@intrinsic
def _acquire(typingctx, pointer, index):
    def codegen(context, builder, signature, args):
        return builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 8)

    return types.int64(pointer, types.int64), codegen


@inline
def wait_for(counter, index, count):
    """Waits until `count` tasks are done. Tasks are claimed in order, so those waited for are already being worked on."""
    while _acquire(counter, index) < count:
        pass


@intrinsic
def scratch(typingctx, scalar, count):
    """Stack memory for `count` (a literal) numbers of the type `scalar`, aligned for vectors."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    kind = scalar.instance_type

    def codegen(context, builder, signature, args):
        with builder.goto_entry_block():
            buffer = builder.alloca(context.get_data_type(kind), size=ir.Constant(I64, count.literal_value))
            buffer.align = 64
        return buffer

    return types.CPointer(kind)(scalar, count), codegen


@intrinsic
def as_f64(typingctx, pointer, index):
    """The memory from `pointer[index]` on as f64."""
    kind = types.CPointer(types.float64)

    def codegen(context, builder, signature, args):
        return builder.bitcast(builder.gep(args[0], [args[1]]), ir.DoubleType().as_pointer())

    return kind(pointer, types.int64), codegen


@intrinsic
def _address(typingctx, pointer):
    def codegen(context, builder, signature, args):
        return builder.ptrtoint(args[0], I64)

    return types.int64(pointer), codegen


@inline
def is_aligned(pointer):
    """Whether a pointer is aligned for `stream_store`."""
    return _address(pointer) & 63 == 0


@intrinsic
def flush_streams(typingctx):
    """Called after the last `stream_store`, so that other threads see what was stored."""

    def codegen(context, builder, signature, args):
        builder.fence("seq_cst")

    return types.void(), codegen


@inline
def locate(words, at, operands, index, offsets):
    """The offset in each operand of the `index`-th position of the dims that `geometry.dim_words` wrote at `words[at]`."""
    for operand in range(operands):
        offsets[operand] = 0
    position = at + 1 + (words[at] - 1) * (operands + 1)
    while position > at:
        here = index
        if position > at + 1:
            index = here // words[position]
            here -= index * words[position]
        for operand in range(operands):
            offsets[operand] += here * words[position + 1 + operand]
        position -= operands + 1
