"""The site has everything: each public name in its reference, each page in its navigation, each setting on the page about them."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry

PACKAGE = Path(bk.__file__).resolve().parent
ROOT = PACKAGE.parents[1]
DOCS = ROOT / "docs"
SETTINGS = (DOCS / "settings.md").read_text(encoding="utf-8")


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("generator.reference")


def test_everything_public_is_in_the_reference(reference: Any) -> None:
    names = {name: set(reference.names_on(text)) for name, (_, text) in reference.pages(DOCS / "op_inventory.csv").items()}
    assert set().union(*(found for page, found in names.items() if page != "pytorch")) >= set(bk.__all__)
    assert names["pytorch"] == set(bt.__all__) - set(registry.functions())
    assert set(registry.functions()) <= set(bt.__all__)  # which the page says


def test_everything_in_the_reference_says_what_it_is(reference: Any) -> None:
    """A sentence stands behind each signature, before a table or the next heading."""
    section = re.compile(r"^#{2,4} (\S+)\n\n(?:```python\n[^`]+```\n\n)+(.*)$", re.MULTILINE)
    for name, (_, text) in reference.pages(DOCS / "op_inventory.csv").items():
        found = section.findall(text)
        assert name == "index" or found
        assert [each for each, says in found if not says or says.startswith(("#", "| "))] == []


def test_fields_have_descriptions_and_no_comments_for_type_checkers(reference: Any) -> None:
    from generator.declared import _NOTE, field_notes

    text = "\n".join([
        "    kind: Kind  # type: ignore[valid-type]", "    shape: Shape",
        "    axis: int  # type: ignore[misc]  # counted from 0", "    eps: float = 1e-6  # added to the mean square",
    ])  # fmt: skip
    assert _NOTE.findall(text) == [("kind", ""), ("axis", "counted from 0"), ("eps", "added to the mean square")]
    notes = [field_notes(plan.descriptor_type) for plan in registry.plans().values()]
    assert not [note for each in notes for note in each.values() if "type:" in note]
    assert field_notes(bk.ReduceJointDescriptor)["kind"].startswith("the reduction")


def test_every_field_of_a_preference_is_described() -> None:
    for field in dataclasses.fields(bk.PlanPreference):
        assert re.search(rf"^\| `{field.name}` \| .+ \| .+ \| [^|]+ \|$", SETTINGS, re.MULTILINE), field.name


def test_every_environment_variable_is_described() -> None:
    found = {name for file in PACKAGE.rglob("*.py") for name in variables_read(file.read_text(encoding="utf-8"))}
    assert {"BARACUDA_CACHE_DIR", "BARACUDA_CACHE_BYTES", "BARACUDA_NUM_THREADS", "TRITON_INTERPRET"} <= found
    described = re.findall(r"`([A-Z][A-Z_0-9]+)`", "".join(line for line in SETTINGS.splitlines() if line.startswith("| `")))
    assert found - set(described) == set()


def test_environment_variables_are_found_however_they_are_read() -> None:
    text = "\n".join([
        'PLACE, ROOM = "A_B", "C_D"', 'OTHERS = ("E_F", "G_H")', "os.environ.get(PLACE)", 'os.getenv("I_J", "")', 'os.environ["K"]',
        '"L" in os.environ', "def number(name):", "    return os.environ.get(name)", "os.environ | more",
    ])  # fmt: skip
    assert set(variables_read(text)) == {"A_B", "C_D", "E_F", "G_H", "I_J", "K", "L"}


def variables_read(source: str) -> Iterator[str]:
    """Names of environment variables; where one is read by a name that is given, all constants of the module that look like one."""
    if "environ" not in source and "getenv" not in source:
        return
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="get", value=ast.Attribute(attr="environ")), args=[asked, *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="getenv"), args=[asked, *_]):
                pass
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=asked, ctx=ast.Load()):
                pass
            case ast.Compare(left=asked, ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr="environ")]):
                pass
            case _:
                continue
        if isinstance(asked, ast.Constant):
            yield str(asked.value)
            continue
        for statement in tree.body:
            values = ast.walk(statement.value) if isinstance(statement, ast.Assign) else ()
            constants = (each.value for each in values if isinstance(each, ast.Constant))
            yield from (each for each in constants if isinstance(each, str) and re.fullmatch("[A-Z]+(_[A-Z0-9]+)+", each))


def test_every_page_is_in_the_navigation(reference: Any) -> None:
    named = set(re.findall(r"\w+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    named |= {f"{family}.md" for family in reference.families.families()}
    assert {page.name for page in DOCS.glob("*.md")} - named == set()
