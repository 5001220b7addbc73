"""The problems an op is tried and timed on. Tests, `verify`, bench and demo all draw from here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Generic, TypeVar

from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import ElementKind

D = TypeVar("D", bound=Descriptor)


class Cases(Generic[D]):
    """Base of an op's cases; `descriptor` is the descriptor's class, so that two directions can share one set."""

    on_matrix_units = False  # whether it is made of matrix products, whose rate bounds it as the memory's does

    def __init__(self, descriptor: type[D]) -> None:
        self.descriptor = descriptor

    def corners(self, element: ElementKind) -> Iterator[D]:
        """Problems that between them reach every corner of the op and every path of its kernels."""
        raise NotImplementedError

    def tiles(self, element: ElementKind) -> Iterator[D]:
        """Problems that between them reach every tile a CUDA kernel can be launched with. Only their extents matter."""
        return self.corners(element)

    def draw(self, random: Random, element: ElementKind) -> D:
        """A random valid problem, small enough to check in a blink."""
        raise NotImplementedError

    def showcase(self) -> Iterator[D]:
        """What the bench and the demo time, the most telling first."""
        raise NotImplementedError

    def cuda_showcase(self) -> Iterator[D]:
        """What is timed on a CUDA device, where problems have to be larger."""
        return self.showcase()

    def inputs(self, descriptor: D, rng: Any) -> dict[str, Any]:
        """Inputs as float64 arrays, by name; those left out are normal random numbers."""
        return {}

    def from_options(self, options: dict[str, Any]) -> D:
        """The problem that a user names by some of its fields; the others are those of the first showcase."""
        return replace(next(self.showcase()), **options)

    def flops(self, descriptor: D) -> int:
        """Floating-point operations, a function such as exp counted as one."""
        raise NotImplementedError

    def summed_extent(self, descriptor: D) -> int:
        """The longest sum in the formula: the error bound in f64 grows with its root."""
        raise NotImplementedError

    def is_long_chain(self) -> bool:
        """Whether the looser error bounds apply: the backward of attention or of a scan."""
        return False
