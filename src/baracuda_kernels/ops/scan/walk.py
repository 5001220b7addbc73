"""The layout of a scan's lines, as arguments of a Triton body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.ops.scan.rows import ScanFormulas
from baracuda_kernels.ops.scan.tiles import ScanTile
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES, Argument, Count, Step, is_wide
from baracuda_kernels.targets.cuda.triton.indexing import dims
from baracuda_kernels.targets.geometry import Dim, collapse, dim_of

__all__ = ["Walk"]


class Walk(NamedTuple):
    """Along lines, from the first element on or back from the last; the lines of a tile are neighbours `beside` each other."""

    axis: Dim
    beside: Dim
    others: list[Dim]
    is_back: bool

    @classmethod
    def of(cls, shape: Shape, axis: int, strides: Sequence[Sequence[int]], is_back: bool) -> Walk:
        others = collapse(shape, strides, [axis])
        beside = others.pop() if others else Dim(1, (1,) * len(strides))  # the last operand's steps are smallest there
        return cls(dim_of(shape, strides, axis), beside, others, is_back)

    @property
    def by_columns(self) -> bool:
        return self.beside.extent > 1 and self.beside.steps[-1] == 1 < abs(self.axis.steps[-1])

    @property
    def in_strips(self) -> bool:
        """Whether threads have columns of their own: operands that lie otherwise would make the compiler shuffle every element, for minutes."""
        return self.by_columns and all(step == 1 for step in self.beside.steps)

    @property
    def lines(self) -> int:
        return self.beside.extent * math.prod(dim.extent for dim in self.others)

    def blocks(self, tile: ScanTile) -> int:
        """How many tiles lie beside each other."""
        return -(-self.beside.extent // tile.lines)

    def programs(self, tile: ScanTile) -> int:
        return self.blocks(tile) * math.prod(dim.extent for dim in self.others)

    def group(self, tile: ScanTile, formulas: ScanFormulas) -> int:
        """How many elements are read at once along rows."""
        smallest = min(element.size for element in (*formulas.inputs, *formulas.outputs))
        return min(VECTOR_BYTES // smallest, tile.steps) if 1 in self.axis.steps else 1

    def counts(self, tile: ScanTile, element: ElementKind) -> tuple[Argument, ...]:
        """The numbers of lines, of adjacent tiles, and of a line's elements."""
        by_columns, by_rows = self._vectors(tile, element)
        return Count(self.beside.extent, by_columns), Count(self.blocks(tile)), Count(self.axis.extent, by_rows)

    def steps(self, tile: ScanTile, element: ElementKind) -> tuple[Argument, ...]:
        """Other extents, and of every operand the steps along them, between neighbouring lines, and along a line."""
        by_columns, by_rows = self._vectors(tile, element)
        extents, outer_steps = dims(self.others, len(self.axis.steps), by_columns or by_rows)
        return extents, tuple(outer_steps), _steps(self.beside, by_rows), _steps(self.axis, by_columns)

    def constants(self, tile: ScanTile, programs: int) -> dict[str, Any]:
        along, beside = (tuple(step == 1 for step in dim.steps) for dim in (self.axis, self.beside))
        wide = is_wide(max(programs, self.axis.extent, self.beside.extent))
        return {"BESIDE": beside, "ALONG": along, "LINES": tile.lines, "STEPS": tile.steps, "WIDE": wide}

    def _vectors(self, tile: ScanTile, element: ElementKind) -> tuple[ElementKind | None, ElementKind | None]:
        """Along which of the two vectors are read, if any: whose steps and extents matter for that."""
        return (None if tile.vector == 1 else element, None) if self.by_columns else (None, element)


def _steps(dim: Dim, element: ElementKind | None) -> tuple[Step, ...]:
    """Single steps are no whole vectors, and need not be."""
    return tuple(Step(step if dim.extent > 1 else 0, None if step == 1 else element) for step in dim.steps)
