"""All rows, by the number of their operands."""

from __future__ import annotations

from baracuda_kernels.ops.elementwise import (
    activation_rows,
    binary_rows,
    complex_rows,
    gated_rows,
    polynomial_rows,
    several_operand_rows,
    special_rows,
    ternary_rows,
    unary_rows,
)
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["BINARY", "GATED", "TERNARY", "UNARY"]


def _by_name(*tables: tuple[ElementwiseRow, ...]) -> dict[str, ElementwiseRow]:
    forms = complex_rows.FORMS
    rows = [row for table in tables for row in table]
    return {row.name: row.with_complex(forms[row.name]) if row.name in forms else row for row in rows}


UNARY = _by_name(unary_rows.ROWS, activation_rows.ROWS, special_rows.ROWS)
BINARY = _by_name(binary_rows.ROWS, polynomial_rows.ROWS, several_operand_rows.BINARY)
TERNARY = _by_name(ternary_rows.ROWS, several_operand_rows.TERNARY)
GATED = _by_name(gated_rows.ROWS)
