"""All rows, by the number of their operands."""

from __future__ import annotations

from baracuda_kernels.ops.elementwise import activation_rows, binary_rows, gated_rows, ternary_rows, unary_rows
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["BINARY", "GATED", "TERNARY", "UNARY"]


def _by_name(*tables: tuple[ElementwiseRow, ...]) -> dict[str, ElementwiseRow]:
    return {row.name: row for table in tables for row in table}


UNARY = _by_name(unary_rows.ROWS, activation_rows.ROWS)
BINARY = _by_name(binary_rows.ROWS)
TERNARY = _by_name(ternary_rows.ROWS)
GATED = _by_name(gated_rows.ROWS)
