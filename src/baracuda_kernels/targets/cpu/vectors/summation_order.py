"""The one order in which every CPU kernel sums, fixed in the source so that bits depend on the numbers alone.

Element i of a sum goes to lane i mod LANES; a block of BLOCK elements ends with its lanes added as a binary tree;
the blocks of a segment are added one after the other in f64, and so are the segments. Neither the number of rows, nor the
layout, nor threads, nor the width of the machine's registers enters.
"""

__all__ = ["BLOCK", "LANES", "SEGMENTS", "segment_length"]

LANES = 16
BLOCK = 4096
SEGMENTS = 64  # at most this many of one sum, so that a few KB hold what threads pass to each other


def segment_length(extent: int) -> int:
    """How many elements of a sum over `extent` form a segment: whole blocks, the same for every row of that length."""
    blocks = -(-extent // BLOCK)
    return BLOCK * max(1, -(-blocks // SEGMENTS))
