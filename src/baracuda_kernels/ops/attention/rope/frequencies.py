"""How far each pair turns per position, to twice the precision of f64, as the kernels want it: in quarter turns."""

from __future__ import annotations

import functools
import math
import sys
from decimal import Decimal, localcontext

QUARTER_TURNS = Decimal("0.63661977236758134307553505349005744813783858296182579499066937623558719053")  # in a radian: 2/π


@functools.lru_cache(maxsize=64)
def quarter_turns(base: float, rotated: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """base^(-2i/R) · 2/π for every pair i, each as the sum of two floats, high and low."""
    high, low = [], []
    with localcontext() as context:
        context.prec = 60
        ratio = Decimal(base) ** (Decimal(-2) / rotated)
        turn = QUARTER_TURNS
        for _ in range(rotated // 2):
            high.append(min(float(turn), sys.float_info.max))  # past it, angles mean nothing
            low.append(float(turn - Decimal(high[-1])))
            turn *= ratio
    return tuple(high), tuple(part if math.isfinite(part) else 0.0 for part in low)
