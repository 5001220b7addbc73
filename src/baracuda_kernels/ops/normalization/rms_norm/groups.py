"""How the rows of a backward are split into groups, each with a partial sum of dgamma in the workspace.

The split is a function of the problem alone, so the order in which dgamma is summed is too, whatever the number of cores.
"""

from __future__ import annotations

from baracuda_kernels.ops.normalization.rms_norm.descriptor import HALVES, RMSNormBackwardDescriptor
from baracuda_kernels.targets.cpu.vectors.summation_order import LANES

MOST_GROUPS = 64
FEWEST_ROWS = 8  # of a group, so that partial sums weigh little beside the rows


def rows_per_group(rows: int) -> int:
    return max(FEWEST_ROWS, -(-rows // MOST_GROUPS))


def group_count(rows: int) -> int:
    return -(-rows // rows_per_group(rows))


def partial_pitch(extent: int) -> int:
    """The distance from one group's partial sums to the next: whole vectors."""
    return -(-extent // LANES) * LANES


def partial_bytes(descriptor: RMSNormBackwardDescriptor) -> int:
    """Partial sums of dgamma, a row of them for each group of rows: f32 for 16-bit floats, which that suits however many there are, else f64."""
    if not descriptor.has_gamma:
        return 0
    size = 4 if descriptor.element in HALVES else 8
    return size * group_count(descriptor.row_count) * partial_pitch(descriptor.norm_total_extent)
