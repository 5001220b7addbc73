"""Twice sixteen lanes at a time, and cache lines asked for before they are read. Bodies import `simd`."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu import float16
from baracuda_kernels.targets.cpu.vectors.lanes import I32, I64, Lanes, register_type, vector_of
from baracuda_kernels.targets.cpu.vectors.memory import mark_streamed, memory_at, put, widen
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["load_pair", "prefetch", "prefetch_pair", "store_pair", "stream_pair"]

# A pair is 2 * LANES contiguous elements in two vectors: the first half and the second, unless `halves.in_turn`.


def _line_of_words(builder, pointer, offset):
    return builder.bitcast(builder.gep(pointer, [offset]), vector_of(I32).as_pointer())


def _halves_of_pair(context, builder, args, storage):
    second = builder.add(args[1], ir.Constant(args[1].type, LANES))
    return [memory_at(context, builder, args[0], offset, storage) for offset in (args[1], second)]


@intrinsic
def load_pair(typingctx, pointer, offset):
    """A pair, as a tuple."""
    storage = pointer.dtype
    kind = types.UniTuple(Lanes(register_type(storage)), 2)

    def codegen(context, builder, signature, args):
        if float16.in_turn(storage.name):
            vectors = float16.split_bf16(builder, builder.load(_line_of_words(builder, args[0], args[1]), align=2))
        else:
            memories = _halves_of_pair(context, builder, args, storage)
            vectors = [widen(builder, storage, builder.load(memory.address, align=memory.align)) for memory in memories]
        return context.make_tuple(builder, kind, vectors)

    return kind(pointer, types.int64), codegen


def _pair_store(past_caches: bool):
    @intrinsic
    def store_pair(typingctx, pointer, offset, first, second):
        """The vectors of a pair; a NaN in them must stem from 16-bit floats: see `halves.join_bf16`."""
        storage = pointer.dtype

        def codegen(context, builder, signature, args):
            if float16.in_turn(storage.name):
                line = _line_of_words(builder, args[0], args[1])
                stored = builder.store(float16.join_bf16(builder, args[2], args[3]), line, align=64 if past_caches else 2)
                if past_caches:
                    mark_streamed(builder, stored)
            else:
                for memory, value in zip(_halves_of_pair(context, builder, args, storage), args[2:], strict=True):
                    put(builder, storage, memory, value, past_caches)

        return types.void(pointer, types.int64, first, second), codegen

    return store_pair


store_pair, stream_pair = _pair_store(past_caches=False), _pair_store(past_caches=True)


def _prefetching(elements: int):
    @intrinsic
    def prefetch(typingctx, pointer, offset):
        """Asks for the cache lines of elements that will be read soon; any address will do."""

        def codegen(context, builder, signature, args):
            byte = ir.IntType(8)
            first = builder.bitcast(builder.gep(args[0], [args[1]]), byte.as_pointer())
            function = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), I32, I32, I32])
            ask = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=function)
            for at in range(0, elements * context.get_abi_sizeof(context.get_data_type(pointer.dtype)), 64):
                address = builder.gep(first, [ir.Constant(I64, at)])
                builder.call(ask, [address, *(ir.Constant(I32, number) for number in (0, 3, 1))])  # read, keep close, data

        return types.void(pointer, types.int64), codegen

    return prefetch


prefetch, prefetch_pair = _prefetching(1), _prefetching(2 * LANES)
