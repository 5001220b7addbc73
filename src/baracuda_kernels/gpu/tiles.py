"""What the tiles of all CUDA kernels are reckoned with. No backend is imported: declarations ask tiles for their workspace."""

from __future__ import annotations

__all__ = ["power_of_two"]


def power_of_two(number: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, number - 1).bit_length()
