"""How lines lie in memory, each the elements of one result, and the words that tell a CPU body of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from baracuda_kernels.ops.order_statistics.descriptor import QuantileBackwardDescriptor, QuantileDescriptor
from baracuda_kernels.ops.reduction.geometry import kept_stride
from baracuda_kernels.targets.geometry import Dim, collapse, dim_words, kept_axes

__all__ = [
    "BESIDE",
    "BUFFER",
    "COUNT",
    "INTERPOLATION",
    "ITEMS",
    "KIND",
    "LINE",
    "MOST_THREADS",
    "OUTER",
    "OWN",
    "PER_TASK",
    "QS",
    "Q_COUNT",
    "Q_STEP",
    "SLOPES",
    "STRIPS",
    "TASKS",
    "THREADS",
    "WIDTH",
    "Lines",
    "buffer_bytes",
    "line_words",
    "own_bytes",
    "patterns",
    "strip_of",
    "unstacked",
    "workspace_bytes",
]  # fmt: skip

MOST_THREADS = 64  # that work at once; each has its own buffers in the workspace
STRIP = 16  # adjacent lines that are read together
STRIP_BYTES = 4 << 20  # that they may have
ALIGNMENT = 64

# Where a launch's numbers stand. LINE, SLOPES, QS and OUTER say where others begin, of which there may be more or less; at BESIDE stand
# the extent along which lines are side by side and the steps of the three operands.
(
    TASKS, PER_TASK, ITEMS, THREADS, OWN, BUFFER, COUNT, WIDTH, STRIPS, LINE, SLOPES, QS, Q_COUNT, Q_STEP, KIND, INTERPOLATION, OUTER, BESIDE,
) = range(18)  # fmt: skip


class Lines(NamedTuple):
    """Which lines there are: `beside` each other, and the dims that lead to such neighbours. Steps are of input, results or slopes."""

    beside: Dim
    others: list[Dim]

    @classmethod
    def of(cls, problem: Any, strides: Sequence[Sequence[int]]) -> Lines:
        """The geometry of operands, from their strides along the axes that are kept."""
        dims = collapse(kept_axes(problem.shape, problem.axes), strides)
        return cls(dims.pop(), dims) if dims else cls(Dim(1, (0,) * len(strides)), [])


def line_words(dims: Sequence[Dim]) -> list[int]:
    """Extent and step of the innermost dim, how often it is run through, and the others, which lead to each run."""
    *others, inner = dims
    return [inner.extent, *inner.steps, math.prod(dim.extent for dim in others), *dim_words(others)]


def unstacked(problem: QuantileDescriptor, stride: Sequence[int]) -> tuple[int, list[int]]:
    """How far the results of one q are from those of the next, and their own strides along the axes that are kept."""
    step, own = (stride[0], stride[1:]) if problem.stacked else (0, stride)
    return step, kept_stride(problem, own)


def patterns(q: Sequence[float]) -> tuple[int, ...]:
    """The bits of numbers in f64."""
    return struct.unpack(f"<{len(q)}q", struct.pack(f"<{len(q)}d", *q))


# --- workspace -------------------------------------------------------------------------------------------------------------------


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def buffer_bytes(problem: Any) -> int:
    """The bytes of a line's keys, padded so that adjacent buffers do not compete for the same cache sets."""
    return _aligned(problem.count * problem.element.size) + ALIGNMENT


def strip_of(problem: Any) -> int:
    """How many lines are read together where they are adjacent."""
    return max(1, min(STRIP, problem.lines, STRIP_BYTES // buffer_bytes(problem)))


def own_bytes(problem: Any, width: int) -> int:
    """The workspace of a thread: buffers for the keys of so many lines, and one more; for the gradient of quantiles also four numbers of
    each, the places of two neighbours and their shares."""
    quantiles = len(problem.q) if isinstance(problem, QuantileBackwardDescriptor) else 0
    return (width + 1) * buffer_bytes(problem) + _aligned(quantiles * 4 * 8)


def workspace_bytes(problem: Any) -> int:
    """Buffers for the keys of all lines that threads work on, in any layout."""
    widths = (1, strip_of(problem))
    return max(min(MOST_THREADS, -(-problem.lines // width)) * own_bytes(problem, width) for width in widths)
