"""Which op on neighbours it is."""

from enum import Enum

__all__ = ["NeighbourKind"]


class NeighbourKind(Enum):
    DIFF = "diff"
    GRADIENT = "gradient"
    TRAPEZOID = "trapezoid"
