"""What the gradients of a chunk need of its decays, and the gradients of these, for Triton bodies.

The log-decay of step k multiplies every path that leads from before k to k or later: from step to step, from the start to a step, from
a step to the end, from start to end. Its gradient is the sum over just these.
"""

from __future__ import annotations

import triton
import triton.language as tl

from baracuda_kernels.ops.attention.ssd.triton_chunk import decay, decays_between, load_steps, log_decays
from baracuda_kernels.ops.attention.ssd.triton_forward import PARTS

__all__ = ["crossing_paths", "decays_of", "exponent_gradients", "flow_of", "lower", "store_steps", "store_sum"]

LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def decays_of(
    dt, rate, prepared, keeps, chunk, length, dt_step,
    PREPARED: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """The lengths of a chunk's steps, and the decays: between steps, from the start to each, from each to the end, from start to end."""
    order = tl.arange(0, CHUNK)
    if PREPARED:
        place = prepared + chunk.to(tl.int64) * (PARTS * CHUNK)
        sums, total = tl.load(place + 2 * CHUNK + order), tl.load(place + 3 * CHUNK - 1)
        between = tl.exp2(tl.where(order[:, None] >= order[None, :], sums[:, None] - sums[None, :], float("-inf")))
        return tl.load(place + order), between, tl.exp2(sums), tl.exp2(total - sums), tl.load(keeps + chunk)
    else:
        steps = load_steps(dt, dt_step, chunk * CHUNK, length, CHUNK)
        sums, total = log_decays(steps, rate, length - chunk * CHUNK)
        since, to_end = decay(sums, ACC, PRECISE), decay(total - sums, ACC, PRECISE)
        return steps.to(ACC), decays_between(sums, ACC, PRECISE), since, to_end, decay(total, ACC, PRECISE)


@triton.jit
def flow_of(
    dt, rate, prepared, keeps, chunk, length, dt_step,
    backwards, PREPARED: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """What of each step's input reaches the chunk's end, or `backwards`, what of the state before the chunk reaches each step; what of that
    state is left at the end, and the log of that."""
    if PREPARED:
        place = prepared + chunk.to(tl.int64) * (PARTS * CHUNK) + tl.arange(0, CHUNK)
        total = tl.load(prepared + chunk.to(tl.int64) * (PARTS * CHUNK) + (3 * CHUNK - 1))
        weights = tl.load(place + tl.where(backwards, 2 * CHUNK, CHUNK))
        weights = tl.where(backwards, tl.exp2(weights), weights)
        return weights, tl.load(keeps + chunk), total.to(tl.float64) * LN2
    else:
        steps = load_steps(dt, dt_step, chunk * CHUNK, length, CHUNK)
        sums, total = log_decays(steps, rate, length - chunk * CHUNK)
        weights = decay(tl.where(backwards, sums, total - sums), ACC, PRECISE) * tl.where(backwards, 1.0, steps.to(ACC))
        return weights, decay(total, ACC, PRECISE), total


@triton.jit
def lower(pairs):
    """Nothing from the future, even if that is not finite."""
    order = tl.arange(0, pairs.shape[0])
    return tl.where(order[:, None] >= order[None, :], pairs, 0.0)


@triton.jit
def crossing_paths(paths, EXACT: tl.constexpr):
    """For every step the sum over paths from before it to it or later; or the terms that are summed from the end for that."""
    order = tl.arange(0, paths.shape[0])
    paths = tl.where(order[:, None] > order[None, :], paths, 0.0)
    if EXACT:  # no difference of sums, which would lose what is small beside its neighbours
        paths = tl.cumsum(paths, 0, reverse=True)
        return tl.sum(tl.where(order[:, None] > order[None, :], paths, 0.0), 1)
    else:
        return tl.sum(paths, 1) - tl.sum(paths, 0)


@triton.jit
def exponent_gradients(crossing, reading, ending, across, EXACT: tl.constexpr):
    """The gradient of every step's log-decay, from all paths: between steps, from the start, to the end, from start to end."""
    if EXACT:
        order = tl.arange(0, ending.shape[0])
        earlier = tl.sum(tl.where(order[:, None] > order[None, :], ending[None, :], 0.0), 1)
        return crossing + tl.cumsum(reading, 0, reverse=True) + earlier + across
    else:
        return tl.cumsum(crossing + reading, 0, reverse=True) + (tl.cumsum(ending, 0) - ending) + across


@triton.jit
def store_steps(pointer, step, first, length, values):
    place = first + tl.arange(0, values.shape[0])
    tl.store(pointer + place.to(tl.int64) * step, values.to(pointer.dtype.element_ty), mask=place < length)


@triton.jit
def store_sum(pointer, values):
    """Of a row of a matrix, not of a vector: at the sum of a vector that comes from a product, Triton's compiler for Blackwell stops."""
    tl.store(pointer + tl.arange(0, 1), tl.sum(values[None, :], 1))
