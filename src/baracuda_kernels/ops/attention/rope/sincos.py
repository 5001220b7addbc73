"""Cosine and sine of position times frequency, sixteen pairs at a time, and the shuffles that rotary layouts need.

Frequencies come in quarter turns, as high + low. A product with the position is exact as a sum of two floats, so whole turns come
off without an error, and what is left is good to the last bits of f64 at any position that f64 can hold.

Like `simd`, this imports Numba: import it inside body factories.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from baracuda_kernels.targets.cpu.vectors.simd import Lanes, bits, fma, inline, where
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

__all__ = ["cos_sin_f32", "cos_sin_f64", "evens", "interleave_high", "interleave_low", "move", "odds", "swap_neighbours"]

_I32 = ir.IntType(32)


def _shuffle(order):
    """The lanes of two vectors, those of the second counted on from LANES, in the given order."""

    @intrinsic
    def shuffle(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return builder.shuffle_vector(args[0], args[1], ir.Constant(ir.VectorType(_I32, LANES), order))

        return a(a, b), codegen

    return shuffle


_zipped = [lane + half * LANES for lane in range(LANES) for half in (0, 1)]
interleave_low, interleave_high = _shuffle(_zipped[:LANES]), _shuffle(_zipped[LANES:])
evens, odds = (_shuffle([*range(first, 2 * LANES, 2)]) for first in (0, 1))
_neighbours = _shuffle([lane ^ 1 for lane in range(LANES)])


@inline
def swap_neighbours(v):
    """Lanes 2i and 2i + 1 exchanged."""
    return _neighbours(v, v)


@intrinsic
def _to_f32(typingctx, value):
    def codegen(context, builder, signature, args):
        return builder.fptrunc(args[0], ir.VectorType(ir.FloatType(), LANES))

    return Lanes(types.float32)(value), codegen


@intrinsic
def _nearest(typingctx, value):
    """The nearest whole number, at any magnitude."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        rint = builder.module.declare_intrinsic(f"llvm.rint.v{LANES}f64", fnty=ir.FunctionType(kind, [kind]))
        return builder.call(rint, [args[0]])

    return value(value), codegen


@intrinsic
def _move_one(typingctx, source, at, target, to):
    def codegen(context, builder, signature, args):
        builder.store(builder.load(builder.gep(args[0], [args[1]])), builder.gep(args[2], [args[3]]))

    return types.void(source, types.int64, target, types.int64), codegen


@inline
def move(source, at, target, to, count):
    """Copies elements bit by bit, a NaN's too."""
    for i in range(count):
        _move_one(source, at + i, target, to + i)


@inline
def _reduced(position, high, low):
    """The angle in quarter turns as a whole number, in the low bits of an integer, and the rest, at most half a quarter."""
    product = high * position
    error = fma(low, position, fma(high, position, product * -1.0))
    turns = fma(_nearest(product * 0.25), -4.0, product) + fma(_nearest(error * 0.25), -4.0, error)
    shifted = turns + 6755399441055744.0
    return bits(shifted), turns - (shifted - 6755399441055744.0)


@inline
def _in_quadrant(quarters, cos, sin):
    """cos and sin of an angle from those of its rest."""
    odd = (quarters << 63) < 0
    c, s = where(odd, sin, cos), where(odd, cos, sin)
    return where((quarters + 1 << 62) < 0, c * -1.0, c), where((quarters << 62) < 0, s * -1.0, s)


@inline
def cos_sin_f64(position, high, low):
    """cos and sin of position · (high + low) quarter turns."""
    quarters, rest = _reduced(position, high, low)
    a = rest * 1.5707963267948966
    z = a * a
    p = fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08)
    p = fma(p, z, 2.75573137070700676789e-06)
    p = fma(p, z, -1.98412698298579493134e-04)
    p = fma(p, z, 8.33333333332248946124e-03)
    p = fma(p, z, -1.66666666666666324348e-01)
    sin = fma(p * z, a, a)
    q = fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09)
    q = fma(q, z, -2.75573143513906633035e-07)
    q = fma(q, z, 2.48015872894767294178e-05)
    q = fma(q, z, -1.38888888888741095749e-03)
    q = fma(q, z, 4.16666666666666019037e-02)
    cos = fma(z * z, q, fma(z, -0.5, 1.0))
    return _in_quadrant(quarters, cos, sin)


@inline
def cos_sin_f32(position, high, low):
    """Sine and cosine, reduced in f64 and then computed in f32."""
    quarters, rest = _reduced(position, high, low)
    a = _to_f32(rest * 1.5707963267948966)
    z = a * a
    p = fma(z, -1.9515295891e-4, 8.3321608736e-3)
    p = fma(p, z, -1.6666654611e-1)
    sin = fma(p * z, a, a)
    q = fma(z, 2.443315711809948e-5, -1.388731625493765e-3)
    q = fma(q, z, 4.166664568298827e-2)
    cos = fma(z * z, q, fma(z, -0.5, 1.0))
    return _in_quadrant(quarters, cos, sin)
