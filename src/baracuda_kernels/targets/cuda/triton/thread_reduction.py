"""Reductions within a thread, for loops in which threads should not wait for each other.

Triton spreads a block over the threads in vectors of 16 bytes, and then over again until all of it has a place: position p of
a block belongs to thread p / VECTOR mod THREADS. Seen as an array of [again, thread, vector], what one thread has is reduced
over the first and last axis without a word to any other. Where a block is spread otherwise, the result is the same sum, slower.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["column_max", "column_sum", "thread_max", "thread_sum"]


@triton.jit
def thread_max(values, THREADS: tl.constexpr, VECTOR: tl.constexpr):
    """[THREADS] of a block of one axis."""
    return tl.max(tl.max(tl.reshape(values, (values.shape[0] // (THREADS * VECTOR), THREADS, VECTOR)), 2), 0)


@triton.jit
def thread_sum(values, THREADS: tl.constexpr, VECTOR: tl.constexpr):
    return tl.sum(tl.sum(tl.reshape(values, (values.shape[0] // (THREADS * VECTOR), THREADS, VECTOR)), 2), 0)


@triton.jit
def column_max(values, LANES: tl.constexpr):
    """[LANES, columns] of a block of rows and columns, LANES rows of which all threads hold at a time."""
    return tl.max(tl.reshape(values, (values.shape[0] // LANES, LANES, values.shape[1])), 0)


@triton.jit
def column_sum(values, LANES: tl.constexpr):
    return tl.sum(tl.reshape(values, (values.shape[0] // LANES, LANES, values.shape[1])), 0)
