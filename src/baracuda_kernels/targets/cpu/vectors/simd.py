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

from baracuda_kernels.targets.cpu.vectors.lanes import *  # noqa: F403
from baracuda_kernels.targets.cpu.vectors.memory import *  # noqa: F403
from baracuda_kernels.targets.cpu.vectors.pairs import *  # noqa: F403
from baracuda_kernels.targets.cpu.vectors.summation_order import *  # noqa: F403
