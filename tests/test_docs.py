"""What the docs say is true: their code runs, their excerpts are in the source, their generated parts are current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels.bench import report
from baracuda_kernels.cli import ops

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PACKAGE = ROOT / "src" / "baracuda_kernels"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def generate() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path) -> None:
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        exec(compile(block, page.name, "exec"), names)
    assert isinstance(names["plan"], bk.Plan)


def test_the_first_plan_has_at_most_15_lines() -> None:
    assert len(python_blocks(ROOT / "README.md")[0].splitlines()) <= 15


def test_the_excerpts_of_contributing_are_in_the_source() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (PACKAGE / "ops" / "softmax").glob("*.py")]
    blocks = python_blocks(ROOT / "CONTRIBUTING.md")
    assert blocks
    for block in blocks:
        assert any(block in source for source in sources), f"no longer in the source:\n{block}"


def test_the_op_matrix_is_current() -> None:
    assert (ROOT / "docs" / "ops.md").read_text(encoding="utf-8") == ops.markdown(), "run `make docs`"


def test_the_generated_parts_of_the_readme_are_current(generate: Any) -> None:
    arch = bk.Device.cpu().arch().value
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert generate.filled(text).replace(arch, "x86_64") == text, "run `make docs`"
    assert "batch-invariant" in text


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_a_recorded_run_becomes_tables() -> None:
    times = {name: {"median": seconds, "minimum": seconds} for name, seconds in
             {"torch copy_": 0.004, "numba.softmax": 0.005, "PyTorch": 0.010}.items()}  # fmt: skip
    row = {
        "op": "softmax", "problem": "softmax f32 [8,8] axis 1", "kernel": "numba.softmax", "times": times,
        "floor": times["torch copy_"], "share_of_floor": 0.8, "times_faster_than": {"PyTorch": 2.0},
    }  # fmt: skip
    wrong = row | {"problem": "wrong", "share_of_floor": None}
    record = {"cpu": "a processor", "cores": 2, "date": "2026-01-31T00:00:00", "versions": {}, "rows": [row, wrong], "host": []}
    text = report.markdown(record)
    assert "| softmax | softmax f32 [8,8] axis 1 | `numba.softmax` | 4 | 5 | 80% | 2.00× |" in text
    assert "wrong" not in text
