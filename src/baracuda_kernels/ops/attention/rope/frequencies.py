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

    Each place's factors are below 1; those of a base below 1 only after a scaling that the shift takes back from the product.
    """
    pairs, factors, shift = rotated // 2, [], 0
    with localcontext() as context:
        context.prec = 60
        exponent = Decimal(base).ln() * -2 / rotated  # of one pair more
        for place in range(0, max(1, (pairs - 1).bit_length()), DIGIT_BITS):
            numbers = [digit << place if digit << place < pairs else 0 for digit in range(DIGITS)]  # others do not occur
            powers = [(exponent * number).exp() * (1 if place else QUARTER_TURNS / 4) for number in numbers]
            scale = int(max(powers) - Decimal("1e-40")).bit_length()
            factors += [min(int(power * (1 << FACTOR_BITS) / (1 << scale)), (1 << FACTOR_BITS) - 1) for power in powers]
            shift += scale
    return tuple(factors), min(shift, FACTOR_BITS - 1)  # past it, angles mean nothing
