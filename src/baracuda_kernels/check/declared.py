"""What an op's cases can say beyond what all of them must: which parts are independent, which extreme numbers it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Part(NamedTuple):
    """One row, or one entry of the batch, as a problem of its own."""

    descriptor: Any
    take: Callable[[str, Any], Any]  # an operand's name and the whole of it to the part's; None where it is a sum over all parts


@runtime_checkable
class HasParts(Protocol):
    """Cases of an op with a batch: says which parts of a problem are independent of the rest, a few telling ones."""

    def parts(self, descriptor: Any) -> Iterator[Part]: ...


def parts_of(cases: object, descriptor: Any) -> list[Part]:
    return list(cases.parts(descriptor)) if isinstance(cases, HasParts) else []


def places(count: int) -> list[int]:
    """The first two, one in the middle and the last of so many; none where there is nothing to be independent of."""
    return sorted({0, 1, count // 2, count - 1}) if count > 1 else []


def entry(name: str, values: Any, number: int) -> Any:
    """One entry of the first axis, which stays."""
    return values[number : number + 1]


class Extreme(Enum):
    """Numbers for which a kernel's NaN and infinities are where the formula's are."""

    NAN = "NaN"
    INFINITIES = "infinities"
    ZEROS = "zeros"
    LARGEST = "the largest numbers"  # a kernel whose sums overflow where the formula's do not cannot say this
    SMALLEST = "the smallest numbers"


EVERY_OP = (Extreme.NAN, Extreme.ZEROS, Extreme.SMALLEST)


def extremes_of(cases: object) -> tuple[Extreme, ...]:
    """What the cases declare as `extremes`, or what goes for every op."""
    declared: tuple[Extreme, ...] = getattr(cases, "extremes", EVERY_OP)
    return declared
