"""Puts on record what other libraries' own tests make of our functions: `python tests/tools/judged.py`, after a change for the better.

Writes tests/helpers/not_there_yet.json, from which docs/deviations.md is made (`make docs`), and prints the totals. Some minutes.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

import judging  # noqa: E402
import opinfo  # noqa: E402
from judging import Outcome, Verdict  # noqa: E402


def of_pytorch() -> Iterator[tuple[str, str, list[Verdict]]]:
    for name, entry in opinfo.ENTRIES.items():
        for dtype in opinfo.dtypes_of(entry):
            yield name, str(dtype), list(opinfo.forward(entry, dtype))
        for dtype in opinfo.EXACT if entry.supports_autograd else ():
            if dtype in entry.dtypes:
                yield name, f"gradients of {dtype}", list(opinfo.gradients(entry, dtype))
                if entry.supports_gradgrad:
                    yield name, f"second derivatives of {dtype}", list(opinfo.gradients(entry, dtype, second=True))


def recorded(version: str, judged: Iterator[tuple[str, str, list[Verdict]]]) -> dict[str, Any]:
    refused: dict[str, dict[str, int]] = {}
    totals: dict[str, dict[str, int]] = {}
    for name, kind, verdicts in judged:
        if several := sum(each.outcome is Outcome.REFUSED for each in verdicts):
            refused.setdefault(name, {})[kind] = several
        for each in verdicts:
            if each.outcome is Outcome.WRONG:
                print(f"wrong: {name}, {kind}: {each.says}")
        group = kind.partition(" of ")[0] if " of " in kind else "samples"
        counted = totals.setdefault(group, {})
        for outcome, count in judging.totals(verdicts).items():
            counted[outcome] = counted.get(outcome, 0) + count
    return {"version": version, "totals": totals, "refused": refused}


def by_line(record: dict[str, Any]) -> str:
    """A function a line, so that two changes seldom meet."""
    text = json.dumps(record, indent=1) + "\n"
    return re.sub(r"\{([^{}]*)\}", lambda found: "{" + " ".join(found[1].split()) + "}", text)


def main() -> None:
    warnings.simplefilter("ignore")
    record = {"PyTorch": recorded(torch.__version__.partition("+")[0], of_pytorch())}
    judging.RECORD.write_text(by_line(record), encoding="utf-8")
    print(json.dumps({judge: each["totals"] for judge, each in record.items()}, indent=1))


if __name__ == "__main__":
    main()
