"""Puts on record what other libraries' own tests make of our functions: `python tests/tools/judged.py [PyTorch] [JAX] [NumPy]`, after a change for the better.

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

import jax
import numpy
import torch

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

import judging  # noqa: E402
import lax_cases  # noqa: E402
import numpy_cases  # noqa: E402
import opinfo  # noqa: E402
from judging import Outcome, Verdict  # noqa: E402


def of_pytorch() -> Iterator[tuple[str, str, list[Verdict]]]:
    for name, entry in opinfo.ENTRIES.items():
        for dtype in opinfo.dtypes_of(entry):
            yield name, str(dtype), list(opinfo.forward(entry, dtype))
        if entry.error_inputs_func:
            yield name, "errors", list(opinfo.errors(entry))
        for dtype in opinfo.EXACT if entry.supports_autograd else ():
            if dtype in entry.dtypes:
                yield name, f"gradients of {dtype}", list(opinfo.gradients(entry, dtype))
                if entry.supports_gradgrad:
                    yield name, f"second derivatives of {dtype}", list(opinfo.gradients(entry, dtype, second=True))


def of_jax() -> Iterator[tuple[str, str, list[Verdict]]]:
    for name in lax_cases.RECORDS:
        yield name, "records", list(lax_cases.recorded(name))
    for name in lax_cases.HARNESSES:
        yield name, "harnesses", list(lax_cases.harnessed(name))


def of_numpy() -> Iterator[tuple[str, str, list[Verdict]]]:
    for name in numpy_cases.NAMES:
        for element in numpy_cases.ELEMENTS:
            yield name, element, list(numpy_cases.judged(name, element))


JUDGES = {
    "PyTorch": (torch.__version__.partition("+")[0], of_pytorch),
    "JAX": (jax.__version__, of_jax),
    "NumPy": (numpy.__version__, of_numpy),
}


def recorded(version: str, judged: Iterator[tuple[str, str, list[Verdict]]]) -> dict[str, Any]:
    refused: dict[str, dict[str, int]] = {}
    totals: dict[str, dict[str, int]] = {}
    for name, kind, verdicts in judged:
        print(name, kind, len(verdicts), file=sys.stderr, flush=True)  # how far it has come
        if several := sum(each.outcome is Outcome.REFUSED for each in verdicts):
            refused.setdefault(name, {})[kind] = several
        for each in verdicts:
            if each.outcome is Outcome.WRONG:
                print(f"wrong: {name}, {kind}: {each.says}")
        group = kind if kind in ("records", "harnesses", "errors") else kind.partition(" of ")[0] if " of " in kind else "samples"
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
    for judge in sys.argv[1:] or JUDGES:
        version, judged = JUDGES[judge]
        found = recorded(version, judged())
        record = json.loads(judging.RECORD.read_text(encoding="utf-8")) | {judge: found}
        judging.RECORD.write_text(by_line(record), encoding="utf-8")
        print(judge, json.dumps(found["totals"]), flush=True)


if __name__ == "__main__":
    main()
