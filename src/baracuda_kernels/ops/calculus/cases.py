"""What cases of ops on neighbours share: every line along the axis is a problem of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.cases import Cases, Part, places
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.ops.calculus.runs import Scan

__all__ = ["LineCases"]


class LineCases(Cases[Any]):
    def drawn_line(self, random: Random) -> tuple[Shape, int]:
        """A shape and an axis of it."""
        shape = tuple(random.choice((0, 1, 2, 3, 5, 9)) for _ in range(random.randint(1, 3)))
        return shape, random.randrange(len(shape))

    def from_options(self, options: dict[str, Any]) -> Any:
        if "shape" in options:
            options = {"axis": len(options["shape"]) - 1} | options
        return super().from_options(options)

    def parts(self, descriptor: Any) -> Iterator[Part]:
        lines = math.prod(descriptor.with_extent(1)) if descriptor.extent else 0
        for line in places(lines):
            yield Part(self.alone(descriptor), partial(self.taken, descriptor, line=line))

    def alone(self, descriptor: Any) -> Any:
        """The problem of one line."""
        return replace(descriptor, shape=(descriptor.extent,), axis=0)

    def taken(self, descriptor: Any, name: str, values: Any, line: int) -> Any:
        """What an operand has along that line."""
        import numpy

        every = numpy.moveaxis(values, descriptor.axis, -1)
        return every.reshape(math.prod(every.shape[:-1]), every.shape[-1])[line]

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        read: set[int] = set()
        for run in descriptor.runs:
            read |= {run.input} if isinstance(run, Scan) else {each.operand for each in run.reads}
        given = super().bytes_read(descriptor, operands)
        return {each.name: given[each.name] if at in read else 0 for at, each in enumerate(operands) if each.name in given}

    def steps(self, descriptor: Any) -> int:
        """Operations that make one result."""
        raise NotImplementedError

    def flops(self, descriptor: Any) -> int:
        return math.prod(descriptor.shape) * self.steps(descriptor)

    def summed_extent(self, descriptor: Any) -> int:
        return 1
