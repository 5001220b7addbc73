"""The table of errors, from the runs recorded in docs/accuracy/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.tables import code, table

ELEMENTS = ("f32", "f16", "bf16")


def text(folder: Path) -> str:
    """Every op: its worst result on each device, and the operand of that in f32."""
    runs = sorted(
        (json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")), key=lambda run: str(run["kind"])
    )
    lines = [f"Measured on {run['device']} ({_versions(run)})." for run in runs]
    headings = ["op"]
    for run in runs:
        headings += [f"{run['kind']}, f32", "worst at", f"{run['kind']}, f16", f"{run['kind']}, bf16"]
    found = [{(each["op"], each["element"]): each for each in run["ops"]} for run in runs]
    ops = dict.fromkeys(each["op"] for run in runs for each in run["ops"])
    rows = [(code(op), *(cell for of_run in found for cell in _cells(op, of_run))) for op in ops]
    return "\n".join([*lines, "", *table(headings, rows, right=headings[1:]), ""])


def _cells(op: str, found: dict[tuple[str, str], Any]) -> list[str]:
    f32, *halves = (found.get((op, element)) for element in ELEMENTS)
    at = "" if f32 is None or not f32["ulp"] else f"{float(f32['at']):.9g}"
    return [_ulp(f32), at, *map(_ulp, halves)]


def _ulp(measured: Any) -> str:
    return "" if measured is None else f"{measured['ulp']:.2f}"


def _versions(run: Any) -> str:
    return ", ".join(
        f"{name} {version}" for name, version in run["versions"].items() if name in ("torch", "triton", "numba", "numpy")
    )
