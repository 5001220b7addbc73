"""How far each pair turns per position, as the kernels want it: in quarter turns, to twice the precision of f64, and in turns.

A table of turns would need memory on the device, so CUDA kernels are given the factors of base^(-2i/R), one for each octal digit
that the number of a pair can have, and multiply them.
"""

from __future__ import annotations

import functools
import math
import sys
from decimal import Decimal, localcontext

QUARTER_TURNS = Decimal("0.63661977236758134307553505349005744813783858296182579499066937623558719053")  # in a radian: 2/π
DIGIT_BITS, FACTOR_BITS = 3, 128
DIGITS = 1 << DIGIT_BITS


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


@functools.lru_cache(maxsize=64)
def turns_by_digit(base: float, rotated: int) -> tuple[tuple[int, ...], int]:
    """The factors of base^(-2i/R) / 2π for every digit at every octal place of i, lowest first, as fractions of 2^128, and a shift.

    i counts from the pair that turns fastest, the last one of a base below 1, so that no factor is more than 1, save the fastest
    pair's own: that is scaled down, and shifting the product takes the scale back.
    """
    pairs, factors = rotated // 2, []
    with localcontext() as context:
        context.prec = 60
        log = Decimal(base).ln() * 2 / rotated
        fastest = max(Decimal(1), (-log * (pairs - 1)).exp()) * QUARTER_TURNS / 4
        shift = int(fastest).bit_length()
        for place in range(0, max(1, (pairs - 1).bit_length()), DIGIT_BITS):
            scale = 1 if place else fastest / (1 << shift)
            powers = [(-abs(log) * (digit << place)).exp() * scale for digit in range(DIGITS)]
            factors += [min(int(power * (1 << FACTOR_BITS)), (1 << FACTOR_BITS) - 1) for power in powers]
    return tuple(factors), min(shift, FACTOR_BITS - 1)  # past it, angles mean nothing
