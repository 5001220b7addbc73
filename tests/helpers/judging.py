"""Cases out of other libraries' own tests, and what becomes of each here.

A case passes, or a line of `deviations` says that it is meant to differ, or a typed error of ours refuses it, because it is not there yet. How many
are refused is on record, function by function, and may only fall. Everything else is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import baracuda_kernels as bk

import deviations
from deviations import Case

RECORD = Path(__file__).with_name("not_there_yet.json")


class Outcome(Enum):
    PASSES = "passes"
    DIFFERS = "differs"  # as a line of the table of deviations says
    REFUSED = "refused"  # by a typed error of ours
    WRONG = "wrong"  # another number, shape or dtype, or an error that is not ours


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    says: str = ""
    line: deviations.Deviation | None = None


def judged(case: Case, call: Callable[[], Any], difference: Callable[[Any], str]) -> Verdict:
    """What our call makes of a case; `difference` says what is not as expected about a result, or nothing."""
    line = deviations.about(case)
    try:
        got = call()
    except bk.Error as refusal:
        found = Verdict(Outcome.REFUSED, str(refusal), line)
        return Verdict(Outcome.DIFFERS, str(refusal), line) if line is not None and line.reads is None else found
    except Exception as error:  # whatever it is, it is not ours
        return Verdict(Outcome.WRONG, f"{type(error).__name__}: {error}", line)
    says = difference(got)
    if not says:
        return Verdict(Outcome.PASSES)
    if line is not None and not (line.reads and difference(line.reads(got, case))):
        return Verdict(Outcome.DIFFERS, says, line)
    return Verdict(Outcome.WRONG, says, line)


def raised(case: Case, call: Callable[[], Any], wanted: type[BaseException]) -> Verdict:
    """Whether our call raises what theirs does, as a typed error."""
    line = deviations.about(case)
    try:
        call()
    except bk.Error as error:
        if isinstance(error, wanted):
            return Verdict(Outcome.PASSES)
        says = f"{type(error).__name__}, which is no {wanted.__name__}: {error}"
    except Exception as error:  # whatever it is, it is not ours
        says = f"{type(error).__name__}, not of ours: {error}"
    else:
        says = f"no error, theirs a {wanted.__name__}"
    return Verdict(Outcome.WRONG if line is None else Outcome.DIFFERS, says, line)


def on_record(judge: str) -> dict[str, Any]:
    """What was counted of a judge's cases: the version, the totals, and of each function how many are refused."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")).get(judge, {"version": "", "refused": {}})
    return found


def assert_no_worse(judge: str, version: str, function: str, found: dict[str, Iterable[Verdict]]) -> None:
    """Nothing wrong, and no more refused than on record, with the version that it was counted with."""
    verdicts = {kind: list(each) for kind, each in found.items()}
    wrong = [f"{kind}: {each.says}" for kind, several in verdicts.items() for each in several if each.outcome is Outcome.WRONG]
    assert not wrong, "\n".join(wrong)
    record = on_record(judge)
    if record["version"] != version:
        return
    for kind, several in verdicts.items():
        refused = [each.says for each in several if each.outcome is Outcome.REFUSED]
        allowed = record["refused"].get(function, {}).get(kind, 0)
        assert len(refused) <= allowed, f"{kind}: {len(refused)} refused, {allowed} on record\n" + "\n".join(refused[:5])


def totals(verdicts: Iterable[Verdict]) -> dict[str, int]:
    counts = Counter(each.outcome.value for each in verdicts)
    return {outcome.value: counts[outcome.value] for outcome in Outcome if outcome is not Outcome.WRONG}
