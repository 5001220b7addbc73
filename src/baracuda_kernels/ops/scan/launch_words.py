"""How a scan's work is numbered: what a launch tells a body, and which form of body serves a layout."""

from __future__ import annotations

from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor

__all__ = [
    "BACKWARDS",
    "CHAINS",
    "CHECKPOINT",
    "SIDE_BY_SIDE",
    "SLOT",
    "SLOTS",
    "STRIDED",
    "WAVE",
    "WIDEST",
    "ScanForm",
    "ScanWord",
    "Wave",
    "checkpoint_bytes",
    "segment_of",
    "split_bytes",
    "splits",
]

SIDE_BY_SIDE, BACKWARDS, STRIDED = "1", "-", "s"  # how an operand lies along the walk
SEGMENT = 16384  # elements that are scanned by themselves
LONG = 4 * SEGMENT  # elements from which a line may be split among threads
FEW = 64  # lines that may be
SLOT = 8  # bytes of one number in the workspace
SLOTS = 4  # of them that a segment has
WAVE = 64  # segments that are worked on together, few enough to stay in a cache
CHECKPOINT = 256  # elements between two products that the gradient of one keeps
WIDEST = 512  # columns of a strip
CHAINS = 2  # lines that are walked along together where every element has to wait for the one before


class ScanForm:
    """ROWS and COLUMNS walk whole lines. Of a line's segments TOTALS finds what each comes to, from which SEGMENTS goes on."""

    ROWS, COLUMNS, TOTALS, SEGMENTS = "rows", "columns", "totals", "segments"


class ScanWord:
    """Where a launch's numbers stand; after them the operands' steps along the walk, where it begins, and the other dims."""

    TASKS, PER_TASK, ITEMS, EXTENT, SEGMENT, SEGMENTS, FIRST, DIRECTION, COLUMNS, STRIP, STRIPS, STEPS = range(12)


class Wave:
    """Where it stands beside the task counter which segments are worked on."""

    LINE, FIRST, COUNT = 1, 2, 3
    WORDS = 4


def segment_of(problem: ScanDescriptor) -> int:
    """How many elements form a segment. A product has just one: a part of it may overflow where the whole is zero."""
    return max(problem.extent, 1) if problem.kind in PRODUCTS else SEGMENT


def splits(problem: ScanDescriptor) -> bool:
    """Whether threads may share a line."""
    return problem.kind not in PRODUCTS and problem.extent >= LONG and 0 < problem.lines <= FEW


def split_bytes(problem: ScanDescriptor) -> int:
    """What threads pass to each other."""
    return problem.lines * -(-problem.extent // SEGMENT) * SLOTS * SLOT if splits(problem) else 0


def checkpoint_bytes(problem: ScanBackwardDescriptor) -> int:
    """Workspace for the gradient of a product: the running state at regular intervals."""
    return problem.lines * -(-problem.extent // CHECKPOINT) * SLOT if problem.kind in PRODUCTS else 0
