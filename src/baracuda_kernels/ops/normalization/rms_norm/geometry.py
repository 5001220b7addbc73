"""The geometry of an RMSNorm's operands, as the words that its bodies read."""

import struct
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.targets.geometry import Dim, as_words, dim_words, merged

# The words of a launch; from ROWS_AT on the dims that lead to a row, then those within a row, of one operand after the other.
TASKS, PER_TASK, ROWS, EXTENT, STREAM, EPS, GROUPS, PITCH, STEP_DGAMMA, INNER = range(10)
ROWS_AT = INNER + 4
DONE = 1  # of the backward's counter: groups that are finished

STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader


def geometry(problem: Any, leading: Sequence[Any], inner: Sequence[Any]) -> tuple[list[Dim], list[list[Dim]], bool]:
    """The dims that lead to a row, those within it of each operand (none of an absent gamma), and whether all rows are contiguous."""
    rank = len(problem.outer_shape)
    outer = merged(problem.outer_shape, [layout.stride[:rank] for layout in leading])
    within = []
    for layout in inner:
        first = rank if layout is not None and layout.shape == problem.input_shape else 0  # all of gamma is a row
        within.append([] if layout is None else merged(layout.shape[first:], [layout.stride[first:]]))
    side_by_side = [Dim(problem.norm_total_extent, (1,))]
    return outer, within, all(dims in ([], side_by_side) for dims in within)


def launch_words(head: list[int], outer: list[Dim], inner: list[list[Dim]]) -> Any:
    tail = dim_words(outer)
    places = []
    for dims in inner:
        places.append(ROWS_AT + len(tail))
        tail += dim_words(dims)
    return as_words([*head, *places, *[0] * (ROWS_AT - INNER - len(places)), *tail])


def streams(work_bytes: int, size: int, steps: Sequence[int]) -> bool:
    """Whether results are written with non-temporal stores: only large ones, and only if every row keeps the alignment of the first."""
    return work_bytes > STREAM_BYTES and all(step * size % 64 == 0 for step in steps)


def bits(number: float) -> int:
    return struct.unpack("q", struct.pack("d", number))[0]
