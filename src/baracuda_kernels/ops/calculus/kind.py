"""Which op on neighbours it is."""

from enum import Enum

__all__ = ["NeighbourKind"]


class NeighbourKind(Enum):
    CUMULATIVE_TRAPEZOID = "cumulative_trapezoid"
    DIFF = "diff"
    GRADIENT = "gradient"
    TRAPEZOID = "trapezoid"
