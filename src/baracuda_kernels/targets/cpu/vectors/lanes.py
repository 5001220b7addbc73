"""Sixteen lanes in registers: their type, arithmetic, masks, and reductions. Bodies import `simd`."""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = [
    "I1", "I32", "I64", "Half", "Lanes", "as_float", "bits", "extract", "first_lanes", "float64", "fma", "inline", "int64",
    "largest", "maximum", "outlined", "pointer_to", "splat", "spread", "to_f32", "to_f64", "tree_sum", "where", "widened",
]  # fmt: skip

int64, float64 = types.int64, types.float64  # for `tasks.scratch` and casts
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)

# For helpers of bodies: no reordering, no contraction; bodies call them and nobody else, so they need no way in from Python or C, which
# would take a sixth of the time to compile.
_LINKED = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inline = njit(forceinline=True, **_LINKED)  # always, by LLVM
outlined = njit(**_LINKED)  # long, or called from several places


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


def widened(element: str) -> Any:  # a type of Numba, which bodies call like a function
    """What an element is computed in: f64 for f64, f32 for all narrower floats."""
    return types.float64 if element == "f64" else types.float32


def register_type(storage):
    return types.float32 if isinstance(storage, Half) else storage


# --- the vector type ---------------------------------------------------------------------------------------------------


class Lanes(types.Type):
    """Sixteen numbers of one type; a mask if they are booleans."""

    def __init__(self, scalar: types.Type):
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


def vector_of(llvm_scalar: ir.Type) -> ir.VectorType:
    return ir.VectorType(llvm_scalar, LANES)


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        scalar = I1 if fe_type.scalar == types.boolean else dmm.lookup(fe_type.scalar).get_value_type()
        super().__init__(dmm, fe_type, vector_of(scalar))


def splat(builder, value):
    """While code is generated: an LLVM value in every lane."""
    kind = vector_of(value.type)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(vector_of(I32), [0] * LANES))


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

    @overload(operation, jit_options={"nopython": True, **_LINKED})
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
        return lane_mask(builder, context.cast(builder, args[0], signature.args[0], types.int64))

    return Lanes(types.boolean)(count), codegen


def lane_mask(builder, count):
    return builder.icmp_signed("<", ir.Constant(vector_of(I64), list(range(LANES))), splat(builder, count))


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
        return builder.shuffle_vector(args[0], args[0], ir.Constant(vector_of(I32), order))

    return value(value, distance), codegen


@inline
def tree_sum(v):
    """The sum of the lanes: the upper half onto the lower, again and again."""
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
