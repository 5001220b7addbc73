"""The tables' rows, as tables, and what of the inventory is there."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from baracuda_kernels.core import registry
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.ops.elementwise.pair_rows import BINARY_PAIRS, UNARY_PAIRS
from baracuda_kernels.ops.elementwise.rows import ALL, INTEGERS, NUMBERS, ElementwiseRow
from baracuda_kernels.ops.elementwise.tables import BINARY, GATED, TERNARY, UNARY
from generator.tables import code, table

NAMES = {ALL: "all", NUMBERS: "numbers", FLOATS: "floats", INTEGERS: "integers"}
# Names of the inventory for functions that are called something else here.
OTHER_NAMES = {"scaled_dot_product_attention": "sdpa"}
TIERS = ("1", "2", "3")


def rows() -> str:
    """Every op of the tables."""
    parts = []
    for title, rows in (
        ("One operand", UNARY),
        ("Two operands", BINARY),
        ("Three operands", TERNARY),
        ("Gated", GATED),
        ("Two results", UNARY_PAIRS | BINARY_PAIRS),
    ):
        parts += [
            f"### {title}",
            "",
            *table(("op", "what it computes", "dtypes", "parameters", "gradient"), map(_row, rows.values())),
            "",
        ]
    return "\n".join(parts)


def _row(row: ElementwiseRow) -> tuple[str, ...]:
    parameters = ", ".join(f"`{each.name}={each.default:g}`" for each in row.parameters)
    result = "" if row.result is None else f", giving {row.result}"
    result += "".join(f", giving {each} too" for each in row.more_results(row.elements[0]) if each is not row.elements[0])
    return code(row.name), row.says, _elements(row.elements) + result, parameters, "yes" if row.differentiable else "no"


def _elements(elements: Sequence[ElementKind]) -> str:
    return NAMES.get(tuple(elements)) or ", ".join(map(str, elements))


def coverage(inventory: Path) -> str:
    """What of each category of the inventory can be called, and what cannot yet."""
    with inventory.open(encoding="utf-8", newline="") as file:
        primitives = list(csv.DictReader(file))
    there = set(registry.functions())
    there |= {name for name, ours in OTHER_NAMES.items() if ours in there}
    lines, missing = [], []
    for category in dict.fromkeys(each["category"] for each in primitives):
        own = [each for each in primitives if each["category"] == category]
        counts = []
        for tier in TIERS:
            names = [each["primitive"] for each in own if each["tier"] == tier]
            counts.append(f"{sum(name in there for name in names)} of {len(names)}" if names else "")
        lines.append((category, *counts))
        absent = [each["primitive"] for each in own if each["primitive"] not in there]
        if len(absent) < len(own) and absent:
            missing.append(f"- {category}: {', '.join(absent)}")
    total = sum(each["primitive"] in there for each in primitives)
    headings = ("category", *(f"tier {tier}" for tier in TIERS))
    return "\n".join(
        [f"{total} of {len(primitives)} primitives are there.", "", *table(headings, lines), "", "Missing in categories that have been started:",
         "", *missing, ""]
    )  # fmt: skip
