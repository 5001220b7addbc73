"""The problems an op is tested and timed on, shared by tests, `verify`, bench and demo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import ElementKind

D = TypeVar("D", bound=Descriptor)


class Extreme(Enum):
    """Extreme inputs for which a kernel's NaN and infinities must be exactly where the formula's are."""

    NAN = "NaN"
    INFINITIES = "infinities"
    ZEROS = "zeros"
    LARGEST = "the largest numbers"  # a kernel whose sums overflow where the formula's do not cannot say this
    SMALLEST = "the smallest numbers"


class Part(NamedTuple):
    """One row, or one entry of the batch, as a problem of its own."""

    descriptor: Any
    take: Callable[[str, Any], Any]  # an operand's name and the whole of it to the part's; None where it is a sum over all parts


def places(count: int) -> list[int]:
    """The indices of the first two, a middle and the last of so many; none of a single one."""
    return sorted({0, 1, count // 2, count - 1}) if count > 1 else []


def entry(name: str, values: Any, number: int) -> Any:
    """One entry along the first axis, which is kept with extent 1."""
    return values[number : number + 1]


class Cases(Generic[D]):
    """Base of an op's cases; `descriptor` is the descriptor's class, so that two directions can share one set."""

    on_matrix_units = False  # whether it is made of matrix products, whose rate bounds it as the memory's does
    extremes: ClassVar[tuple[Extreme, ...]] = (Extreme.NAN, Extreme.ZEROS, Extreme.SMALLEST)  # all kernels of the op take

    def __init__(self, descriptor: type[D]) -> None:
        self.descriptor = descriptor

    def corners(self, element: ElementKind) -> Iterator[D]:
        """Problems that together reach every edge case of the op and every path of its kernels."""
        raise NotImplementedError

    def tiles(self, element: ElementKind) -> Iterator[D]:
        """Problems that together reach every tile a CUDA kernel can be launched with. Only their extents matter."""
        return self.corners(element)

    def draw(self, random: Random, element: ElementKind) -> D:
        """A random valid problem, small enough to check quickly."""
        raise NotImplementedError

    def showcase(self) -> Iterator[D]:
        """What the bench and the demo time, the most representative first."""
        raise NotImplementedError

    def cuda_showcase(self) -> Iterator[D]:
        """What is timed on a CUDA device, where problems must be larger."""
        return self.showcase()

    def showcase_layouts(self, descriptor: D) -> Iterator[dict[str, str]]:
        """The layouts in which a problem is timed: by the input's name, its layout if not row-major (see `bench.layouts`)."""
        yield {}

    def inputs(self, descriptor: D, rng: Any) -> dict[str, Any]:
        """Inputs as float64 arrays, by name; missing ones are drawn from a normal distribution."""
        return {}

    def parts(self, descriptor: D) -> Iterator[Part]:
        """A few parts of a problem that are independent of the rest; none for an op without a batch."""
        yield from ()

    def from_options(self, options: dict[str, Any]) -> D:
        """The problem with these fields; the others are those of the first showcase problem."""
        return replace(next(self.showcase()), **options)

    def bytes_read(self, descriptor: D, operands: Sequence[Operand]) -> dict[str, int]:
        """Bytes that kernels must read of each input: all of it, unless no result depends on its elements."""
        given = (each for each in operands if not each.writes and each.presence(descriptor) is not False)
        return {each.name: each.size(descriptor) for each in given}

    def flops(self, descriptor: D) -> int:
        """Floating-point operations, a function such as exp counted as one."""
        raise NotImplementedError

    def summed_extent(self, descriptor: D) -> int:
        """The longest sum in the formula: the error bound in f64 grows with its root."""
        raise NotImplementedError

    def is_long_chain(self) -> bool:
        """Whether the looser error bounds apply: the backward of attention or of a scan."""
        return False
