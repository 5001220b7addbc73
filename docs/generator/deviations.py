"""Where functions differ from the frameworks', from the tables of the tests that judge them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

from generator.tables import code, table

HELPERS = Path(__file__).resolve().parents[2] / "tests" / "helpers"


def text() -> str:
    """The table of what is meant to differ."""
    lines = [
        (line.judge, ", ".join(map(code, line.of)) or "all", line.when, line.reason) for line in _module("deviations").DEVIATIONS
    ]
    return "\n".join(table(("framework", "functions", "calls", "why"), lines)) + "\n"


def missing() -> str:
    """How many cases pass, and which functions refuse some, most of them first."""
    parts = []
    for judge, record in json.loads((HELPERS / "not_there_yet.json").read_text(encoding="utf-8")).items():
        rows = [
            (group, str(sum(counts.values())), *(str(counts[each]) for each in ("passes", "differs", "refused")))
            for group, counts in record["totals"].items()
        ]
        parts += [f"Of {judge} {record['version']}:", ""]
        parts += [*table(("cases", "in all", "pass", "differ as meant", "are refused"), rows, ("in all", "pass")), ""]
        refused = {name: sum(kinds.values()) for name, kinds in record["refused"].items()}
        names = [f"{code(name)} {count}" for name, count in sorted(refused.items(), key=lambda each: (-each[1], each[0]))]
        parts += [f"Refused, by function: {', '.join(names)}.", ""]
    return "\n".join(parts)


def _module(name: str) -> ModuleType:
    """A module of the tests' helpers, without their folder on the path."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HELPERS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
