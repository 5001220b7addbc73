"""Explicit vectors for Numba: sixteen lanes at a time, whatever the machine's registers hold.

A kernel body loads `LANES` elements, widened once to f32 (f64 for f64), computes with ordinary Python operators and stores
them, rounded once. LLVM splits or joins the sixteen lanes to fit SSE, AVX2, AVX-512 or NEON. Nothing is left to the
auto-vectoriser or to contraction, so every sum and every rounding is the one written in the source.

    v = load(x, offset, 1)              a vector; numbers beside it are spread over the lanes
    v = fma(v, 2.0, 1.0)                the only way to a fused multiply-add
    v = where(v > m, v, 0.0)            masks come from comparisons and from `first_lanes(count)`
    s += tree_sum(v)
    store(y, offset, 1, v)

Memory is addressed as (pointer, offset, step), offset and step in elements; the forms without `strided` take step as 1
whatever it says, so that a body can be written once over either `Access`. Importing this module imports Numba; kernels
import it inside their body factories, so a process that finds its kernels on disk never does.
"""

import operator
import platform
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

from baracuda_kernels.lang import halves
from baracuda_kernels.lang.canonical import BLOCK, LANES

__all__ = [
    "Access", "BLOCK", "CONTIGUOUS", "LANES", "Lanes", "ON_X86", "STRIDED", "as_float", "bits", "extract", "first_lanes",
    "float64", "fma", "inline", "int64", "largest", "load", "load_one", "load_pair", "load_part", "load_strided",
    "load_strided_part", "maximum", "pointer_to", "prefetch", "prefetch_pair", "splat", "spread", "store", "store_one", "store_pair",
    "store_part", "store_strided", "store_strided_part", "stream_pair", "stream_store", "to_f32", "to_f64", "tree_sum",
    "where", "widened",
]  # fmt: skip

int64, float64 = types.int64, types.float64  # for `tasks.scratch` and casts
ON_X86 = platform.machine().lower() in ("x86_64", "amd64")
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)

# For helpers of bodies: always inlined by LLVM, no reordering, no contraction.
inline = njit(forceinline=True, error_model="numpy")


# --- storage: what a pointer points at -------------------------------------------------------------------------------


class Half(types.Type):
    """A 16-bit float in memory; it exists in registers only widened to f32."""


@register_model(Half)
class HalfModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.IntType(16))


_STORAGE = {"f32": types.float32, "f64": types.float64, "f16": Half("f16"), "bf16": Half("bf16"), "i64": types.int64}


def pointer_to(element: str) -> types.Type:
    """The Numba type of a pointer to `element`, by its short name: f32, f64, f16, bf16 or i64."""
    return types.CPointer(_STORAGE[element])


def widened(element: str) -> types.Type:
    """What an element is computed in: f64 for f64, f32 for all narrower floats."""
    return types.float64 if element == "f64" else types.float32


def _register_type(storage):
    return types.float32 if isinstance(storage, Half) else storage


# --- the vector type ---------------------------------------------------------------------------------------------------


class Lanes(types.Type):
    """Sixteen numbers of one type; of booleans, a mask."""

    def __init__(self, scalar: types.Type):
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


def _vector(llvm_scalar: ir.Type) -> ir.VectorType:
    return ir.VectorType(llvm_scalar, LANES)


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        scalar = I1 if fe_type.scalar == types.boolean else dmm.lookup(fe_type.scalar).get_value_type()
        super().__init__(dmm, fe_type, _vector(scalar))


def splat(builder, value):
    """While code is generated: an LLVM value in every lane."""
    kind = _vector(value.type)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(_vector(I32), [0] * LANES))


def _as_lanes(context, builder, value, kind, like):
    return value if isinstance(kind, Lanes) else splat(builder, context.cast(builder, value, kind, like.scalar))


@intrinsic
def spread(typingctx, scalar):
    """`scalar` in every lane."""
    kind = Lanes(types.unliteral(scalar))

    def codegen(context, builder, signature, args):
        return _as_lanes(context, builder, args[0], scalar, kind)

    return kind(scalar), codegen


# --- arithmetic ----------------------------------------------------------------------------------------------------------


def _lanewise(emit: Callable, result: Callable = lambda like: like) -> Callable:
    """An operation of one to three operands of which at least one is a vector; numbers are spread."""

    def typed(kinds):
        like = next((kind for kind in kinds if isinstance(kind, Lanes)), None)
        if like is None:
            return None

        def codegen(context, builder, signature, args):
            vectors = [_as_lanes(context, builder, value, kind, like) for value, kind in zip(args, kinds, strict=True)]
            return emit(builder, like, *vectors)

        return result(like)(*kinds), codegen

    return typed


def _operator(operation: Callable, emit: Callable, result: Callable = lambda like: like) -> None:
    typed = _lanewise(emit, result)

    @intrinsic
    def vector(typingctx, a, b):
        return typed((a, b))

    @overload(operation)
    def dispatch(a, b):
        return (lambda a, b: vector(a, b)) if isinstance(a, Lanes) or isinstance(b, Lanes) else None


def _is_float(like) -> bool:
    return isinstance(like.scalar, types.Float)


def _arithmetic(name: str) -> Callable:
    return lambda builder, like, a, b: getattr(builder, "f" + name if _is_float(like) else name)(a, b)


def _comparison(sign: str) -> Callable:
    def emit(builder, like, a, b):
        return (builder.fcmp_ordered if _is_float(like) else builder.icmp_signed)(sign, a, b)

    return emit


for _operation, _name in ((operator.add, "add"), (operator.sub, "sub"), (operator.mul, "mul")):
    _operator(_operation, _arithmetic(_name))
_operator(operator.truediv, lambda builder, like, a, b: builder.fdiv(a, b))
_operator(operator.lshift, lambda builder, like, a, b: builder.shl(a, b))
_operator(operator.rshift, lambda builder, like, a, b: builder.ashr(a, b))
for _operation, _sign in ((operator.lt, "<"), (operator.gt, ">"), (operator.le, "<="), (operator.ge, ">=")):
    _operator(_operation, _comparison(_sign), lambda like: Lanes(types.boolean))


def _emit_fma(builder, like, a, b, c):
    # fmuladd rather than fma: a processor without the instruction gets two roundings instead of a missing library call.
    suffix = f"v{LANES}{'f64' if like.scalar == types.float64 else 'f32'}"
    fused = builder.module.declare_intrinsic(f"llvm.fmuladd.{suffix}", fnty=ir.FunctionType(a.type, [a.type] * 3))
    return builder.call(fused, [a, b, c])


_typed_fma = _lanewise(_emit_fma)


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, rounded once (on a processor that can)."""
    return _typed_fma((a, b, c))


@intrinsic
def where(typingctx, mask, a, b):
    """Lane by lane, `a` where the mask is set, `b` elsewhere: a selection, so NaN in the other one does not leak."""
    like = a if isinstance(a, Lanes) else b

    def codegen(context, builder, signature, args):
        return builder.select(args[0], *(_as_lanes(context, builder, args[i], (mask, a, b)[i], like) for i in (1, 2)))

    return like(mask, a, b), codegen


@inline
def maximum(a, b):
    """The larger; `a` where either is NaN."""
    return where(b > a, b, a)


def _conversion(pairs: dict, emit: str):
    @intrinsic
    def convert(typingctx, value):
        kind = Lanes(pairs[value.scalar])

        def codegen(context, builder, signature, args):
            target = context.get_value_type(kind)
            return args[0] if args[0].type == target else getattr(builder, emit)(args[0], target)

        return kind(value), codegen

    return convert


bits = _conversion({types.float32: types.int32, types.float64: types.int64}, "bitcast")
as_float = _conversion({types.int32: types.float32, types.int64: types.float64}, "bitcast")
to_f64 = _conversion({types.float32: types.float64, types.float64: types.float64}, "fpext")
to_f32 = _conversion({types.float64: types.float32, types.float32: types.float32}, "fptrunc")


@intrinsic
def first_lanes(typingctx, count):
    """The mask of the first `count` lanes."""

    def codegen(context, builder, signature, args):
        return _lane_mask(builder, context.cast(builder, args[0], signature.args[0], types.int64))

    return Lanes(types.boolean)(count), codegen


def _lane_mask(builder, count):
    return builder.icmp_signed("<", ir.Constant(_vector(I64), list(range(LANES))), splat(builder, count))


# --- reductions across lanes, always over the same tree ---------------------------------------------------------------


@intrinsic
def extract(typingctx, value, lane):
    """One lane as a scalar."""

    def codegen(context, builder, signature, args):
        return builder.extract_element(args[0], args[1])

    return value.scalar(value, lane), codegen


@intrinsic
def _rotated(typingctx, value, distance):
    """Lane i of the result is lane i + distance; the distance is a literal."""
    if not isinstance(distance, types.IntegerLiteral):
        return None
    order = [(lane + distance.literal_value) % LANES for lane in range(LANES)]

    def codegen(context, builder, signature, args):
        return builder.shuffle_vector(args[0], args[0], ir.Constant(_vector(I32), order))

    return value(value, distance), codegen


@inline
def tree_sum(v):
    """The sum of the lanes: halves onto halves."""
    v = v + _rotated(v, 8)
    v = v + _rotated(v, 4)
    v = v + _rotated(v, 2)
    v = v + _rotated(v, 1)
    return extract(v, 0)


@inline
def largest(v):
    """The largest lane, NaN passed over unless it is in lane 0."""
    v = maximum(v, _rotated(v, 8))
    v = maximum(v, _rotated(v, 4))
    v = maximum(v, _rotated(v, 2))
    v = maximum(v, _rotated(v, 1))
    return extract(v, 0)


# --- memory: load and widen once, round once and store -----------------------------------------------------------------


def _widen(builder, storage, raw):
    return halves.widen(builder, storage.name, raw) if isinstance(storage, Half) else raw


def _narrow(builder, storage, value):
    return halves.narrow(builder, storage.name, value) if isinstance(storage, Half) else value


class _Memory(NamedTuple):
    """A vector in memory: its LLVM type, its address, the alignment of its elements and the intrinsics' suffix."""

    kind: ir.Type
    address: Any
    align: int
    suffix: str


def _memory(context, builder, pointer, offset, storage) -> _Memory:
    scalar = context.get_data_type(storage)
    kind = _vector(scalar)
    address = builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())
    name = {"float": "f32", "double": "f64"}.get(str(scalar), str(scalar))
    return _Memory(kind, address, context.get_abi_sizeof(scalar), f"v{LANES}{name}.p0")


@intrinsic
def load(typingctx, pointer, offset, step):
    """Sixteen elements side by side."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = _memory(context, builder, args[0], args[1], storage)
        return _widen(builder, storage, builder.load(memory.address, align=memory.align))

    return Lanes(_register_type(storage))(pointer, types.int64, types.int64), codegen


@intrinsic
def load_part(typingctx, pointer, offset, step, count):
    """The first `count` elements, nothing read past them; the other lanes are zero."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = _memory(context, builder, args[0], args[1], storage)
        function = ir.FunctionType(memory.kind, [memory.kind.as_pointer(), I32, _vector(I1), memory.kind])
        masked = builder.module.declare_intrinsic(f"llvm.masked.load.{memory.suffix}", fnty=function)
        mask, nothing = _lane_mask(builder, args[3]), ir.Constant(memory.kind, None)
        return _widen(builder, storage, builder.call(masked, [memory.address, ir.Constant(I32, memory.align), mask, nothing]))

    return Lanes(_register_type(storage))(pointer, types.int64, types.int64, types.int64), codegen


def _put(builder, storage, memory, value, past_caches):
    raw = _narrow(builder, storage, value)
    if not past_caches:
        builder.store(raw, memory.address, align=memory.align)
        return
    if isinstance(storage, Half) and ON_X86:
        # Hidden from LLVM, which would merge the narrowing into an ordinary store.
        raw = builder.asm(ir.FunctionType(raw.type, [raw.type]), "", "=x,0", [raw], side_effect=False)
    _mark_streamed(builder, builder.store(raw, memory.address, align=min(64, LANES * memory.align)))


def _mark_streamed(builder, stored):
    stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


@intrinsic
def store(typingctx, pointer, offset, step, value):
    """Sixteen elements side by side."""

    def codegen(context, builder, signature, args):
        memory = _memory(context, builder, args[0], args[1], pointer.dtype)
        _put(builder, pointer.dtype, memory, args[3], past_caches=False)

    return types.void(pointer, types.int64, types.int64, value), codegen


@intrinsic
def stream_store(typingctx, pointer, offset, step, value):
    """A store past the caches, for large outputs; the address must be aligned as `tasks.is_aligned` says."""

    def codegen(context, builder, signature, args):
        memory = _memory(context, builder, args[0], args[1], pointer.dtype)
        _put(builder, pointer.dtype, memory, args[3], past_caches=True)

    return types.void(pointer, types.int64, types.int64, value), codegen


# A pair is 2 * LANES elements side by side in two vectors: the first half and the second, unless `halves.in_turn`.


def _line_of_words(builder, pointer, offset):
    return builder.bitcast(builder.gep(pointer, [offset]), _vector(I32).as_pointer())


def _halves_of_pair(context, builder, args, storage):
    second = builder.add(args[1], ir.Constant(args[1].type, LANES))
    return [_memory(context, builder, args[0], offset, storage) for offset in (args[1], second)]


@intrinsic
def load_pair(typingctx, pointer, offset):
    """A pair, as a tuple."""
    storage = pointer.dtype
    kind = types.UniTuple(Lanes(_register_type(storage)), 2)

    def codegen(context, builder, signature, args):
        if halves.in_turn(storage.name):
            vectors = halves.split_bf16(builder, builder.load(_line_of_words(builder, args[0], args[1]), align=2))
        else:
            memories = _halves_of_pair(context, builder, args, storage)
            vectors = [_widen(builder, storage, builder.load(memory.address, align=memory.align)) for memory in memories]
        return context.make_tuple(builder, kind, vectors)

    return kind(pointer, types.int64), codegen


def _pair_store(past_caches: bool):
    @intrinsic
    def store_pair(typingctx, pointer, offset, first, second):
        """The vectors of a pair; a NaN in them must stem from halves: see `halves.join_bf16`."""
        storage = pointer.dtype

        def codegen(context, builder, signature, args):
            if halves.in_turn(storage.name):
                line = _line_of_words(builder, args[0], args[1])
                stored = builder.store(halves.join_bf16(builder, args[2], args[3]), line, align=64 if past_caches else 2)
                if past_caches:
                    _mark_streamed(builder, stored)
            else:
                for memory, value in zip(_halves_of_pair(context, builder, args, storage), args[2:], strict=True):
                    _put(builder, storage, memory, value, past_caches)

        return types.void(pointer, types.int64, first, second), codegen

    return store_pair


store_pair, stream_pair = _pair_store(past_caches=False), _pair_store(past_caches=True)


@intrinsic
def store_part(typingctx, pointer, offset, step, value, count):
    """Only the first `count` lanes are written."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        memory = _memory(context, builder, args[0], args[1], storage)
        function = ir.FunctionType(ir.VoidType(), [memory.kind, memory.kind.as_pointer(), I32, _vector(I1)])
        masked = builder.module.declare_intrinsic(f"llvm.masked.store.{memory.suffix}", fnty=function)
        raw, mask = _narrow(builder, storage, args[3]), _lane_mask(builder, args[4])
        builder.call(masked, [raw, memory.address, ir.Constant(I32, memory.align), mask])

    return types.void(pointer, types.int64, types.int64, value, types.int64), codegen


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


@intrinsic
def load_one(typingctx, pointer, offset):
    """One element, widened."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        return _widen(builder, storage, builder.load(builder.gep(args[0], [args[1]])))

    return _register_type(storage)(pointer, types.int64), codegen


@intrinsic
def store_one(typingctx, pointer, offset, value):
    """One element, rounded."""
    storage = pointer.dtype

    def codegen(context, builder, signature, args):
        raw = _narrow(builder, storage, context.cast(builder, args[2], value, _register_type(storage)))
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


class Access(NamedTuple):
    """How a body reaches the elements of a row."""

    load: Any
    load_part: Any
    store: Any
    store_part: Any
    stream_store: Any


CONTIGUOUS = Access(load, load_part, store, store_part, stream_store)
STRIDED = Access(load_strided, load_strided_part, store_strided, store_strided_part, store_strided)
