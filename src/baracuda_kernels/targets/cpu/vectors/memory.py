"""Vectors in memory: loaded and widened once, rounded once and stored. Bodies import `simd`."""

import platform
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu import float16
from baracuda_kernels.targets.cpu.vectors.lanes import (
    I1,
    I32,
    Half,
    Lanes,
    extract,
    first_lanes,
    inline,
    lane_mask,
    register_type,
    spread,
    vector_of,
    where,
)
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = [
    "CONTIGUOUS", "ON_X86", "STRIDED", "VectorAccess", "load", "load_one", "load_part", "load_strided", "load_strided_part", "store",
    "store_one", "store_part", "store_strided", "store_strided_part", "stream_store",
]  # fmt: skip

ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


def widen(builder, storage, raw):
    return float16.widen(builder, storage.name, raw) if isinstance(storage, Half) else raw


def _narrow(builder, storage, value):
    return float16.narrow(builder, storage.name, value) if isinstance(storage, Half) else value


class _Memory(NamedTuple):
    """A vector in memory: its LLVM type, its address, the alignment of its elements and the intrinsics' suffix."""

    kind: ir.Type
    address: Any
    align: int
    suffix: str


def memory_at(context, builder, pointer, offset, storage) -> _Memory:
    scalar = context.get_data_type(storage)
    kind = vector_of(scalar)
    address = builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())
    name = {"float": "f32", "double": "f64"}.get(str(scalar), str(scalar))
    return _Memory(kind, address, context.get_abi_sizeof(scalar), f"v{LANES}{name}.p0")


@intrinsic
def load(typingctx, pointer, offset, step):
    """Sixteen contiguous elements."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = memory_at(context, builder, args[0], args[1], storage)
        return widen(builder, storage, builder.load(memory.address, align=memory.align))

    return Lanes(register_type(storage))(pointer, types.int64, types.int64), codegen


@intrinsic
def load_part(typingctx, pointer, offset, step, count):
    """The first `count` elements, nothing read past them; the other lanes are zero."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = memory_at(context, builder, args[0], args[1], storage)
        function = ir.FunctionType(memory.kind, [memory.kind.as_pointer(), I32, vector_of(I1), memory.kind])
        masked = builder.module.declare_intrinsic(f"llvm.masked.load.{memory.suffix}", fnty=function)
        mask, nothing = lane_mask(builder, args[3]), ir.Constant(memory.kind, None)
        return widen(builder, storage, builder.call(masked, [memory.address, ir.Constant(I32, memory.align), mask, nothing]))

    return Lanes(register_type(storage))(pointer, types.int64, types.int64, types.int64), codegen


def put(builder, storage, memory, value, past_caches):
    raw = _narrow(builder, storage, value)
    if not past_caches:
        builder.store(raw, memory.address, align=memory.align)
        return
    if isinstance(storage, Half) and ON_X86:
        # Hidden from LLVM, which would merge the narrowing into an ordinary store.
        raw = builder.asm(ir.FunctionType(raw.type, [raw.type]), "", "=x,0", [raw], side_effect=False)
    mark_streamed(builder, builder.store(raw, memory.address, align=min(64, LANES * memory.align)))


def mark_streamed(builder, stored):
    stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


def _store(past_caches: bool):
    @intrinsic
    def store(typingctx, pointer, offset, step, value):
        """Sixteen contiguous elements."""

        def codegen(context, builder, signature, args):
            memory = memory_at(context, builder, args[0], args[1], pointer.dtype)
            put(builder, pointer.dtype, memory, args[3], past_caches)

        return types.void(pointer, types.int64, types.int64, value), codegen

    return store


# The second is for large outputs; the address must be aligned as `tasks.is_aligned` says.
store, stream_store = _store(past_caches=False), _store(past_caches=True)


@intrinsic
def store_part(typingctx, pointer, offset, step, value, count):
    """Only the first `count` lanes are written."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = memory_at(context, builder, args[0], args[1], storage)
        function = ir.FunctionType(ir.VoidType(), [memory.kind, memory.kind.as_pointer(), I32, vector_of(I1)])
        masked = builder.module.declare_intrinsic(f"llvm.masked.store.{memory.suffix}", fnty=function)
        raw, mask = _narrow(builder, storage, args[3]), lane_mask(builder, args[4])
        builder.call(masked, [raw, memory.address, ir.Constant(I32, memory.align), mask])

    return types.void(pointer, types.int64, types.int64, value, types.int64), codegen


@intrinsic
def load_one(typingctx, pointer, offset):
    """One element, widened."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        return widen(builder, storage, builder.load(builder.gep(args[0], [args[1]])))

    return register_type(storage)(pointer, types.int64), codegen


@intrinsic
def store_one(typingctx, pointer, offset, value):
    """One element, rounded."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        raw = _narrow(builder, storage, context.cast(builder, args[2], value, register_type(storage)))
        builder.store(raw, builder.gep(args[0], [args[1]]))

    return types.void(pointer, types.int64, value), codegen


@intrinsic
def _with_lane(typingctx, vector, lane, value):
    def codegen(context, builder, signature, args):
        return builder.insert_element(args[0], args[2], args[1])

    return vector(vector, lane, value), codegen


@inline
def load_strided_part(pointer, offset, step, count):
    """The first `count` of sixteen elements `step` apart; the other lanes are zero."""
    v = spread(load_one(pointer, offset))
    v = where(first_lanes(count), v, 0.0)
    for lane in range(1, count):
        v = _with_lane(v, lane, load_one(pointer, offset + lane * step))
    return v


@inline
def load_strided(pointer, offset, step):
    """Sixteen elements `step` apart."""
    return load_strided_part(pointer, offset, step, LANES)


@inline
def store_strided_part(pointer, offset, step, value, count):
    """The first `count` lanes to elements `step` apart."""
    for lane in range(count):
        store_one(pointer, offset + lane * step, extract(value, lane))


@inline
def store_strided(pointer, offset, step, value):
    """Sixteen lanes to elements `step` apart."""
    store_strided_part(pointer, offset, step, value, LANES)


class VectorAccess(NamedTuple):
    """How a body reaches the elements of a row."""

    load: Any
    load_part: Any
    store: Any
    store_part: Any
    stream_store: Any


CONTIGUOUS = VectorAccess(load, load_part, store, store_part, stream_store)
STRIDED = VectorAccess(load_strided, load_strided_part, store_strided, store_strided_part, store_strided)
