"""Every reduction, by its name."""

from __future__ import annotations

from baracuda_kernels.ops.reduction.joint_rows import JOINT
from baracuda_kernels.ops.reduction.pair_rows import PAIRS
from baracuda_kernels.ops.reduction.rows import TABLE

__all__ = ["EVERY"]

EVERY = TABLE | PAIRS | JOINT
