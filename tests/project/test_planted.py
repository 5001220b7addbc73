"""The faults that `planted` plants can be planted; whether tests find them it says itself, in an hour."""

from __future__ import annotations

import ast

import pytest

from planted import FAULTS, PACKAGE, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_it_changes_one_line_and_leaves_python(fault: Fault) -> None:
    text = (ROOT / PACKAGE / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.right) == 1 and fault.right != fault.wrong
    assert "\n" not in fault.right + fault.wrong
    ast.parse(text.replace(fault.right, fault.wrong))


def test_they_are_in_every_family() -> None:
    assert len(FAULTS) >= 30 and len({fault.name for fault in FAULTS}) == len(FAULTS)
    families = {path.parent.name for path in (ROOT / PACKAGE / "ops").glob("*/__init__.py")} - {
        "fusion"
    }  # whose kernels are others'
    assert families <= {part for fault in FAULTS for part in fault.file.split("/")}
