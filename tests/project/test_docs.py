"""What the docs say is true: their code runs, their excerpts are in the source, their generated parts are current."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels.bench import report

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PACKAGE = ROOT / "src" / "baracuda_kernels"


BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def python_blocks(page: Path) -> list[str]:
    return [code for code, _ in BLOCK.findall(page.read_text(encoding="utf-8"))]


def anchors(page: Path) -> set[str]:
    """What can stand behind "#" in a link to the page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("generate")


def runs_here(page: Path) -> bool:
    """Whether it has code, and no device is missing that it says it needs."""
    from conftest import DEVICE

    needs_device = "**This page needs a GPU.**" in page.read_text(encoding="utf-8")
    return bool(python_blocks(page)) and (DEVICE.kind is bk.DeviceKind.CUDA or not needs_device)


@pytest.mark.parametrize("page", list(filter(runs_here, PAGES)), ids=lambda page: page.name)
def test_the_code_of_a_page_runs_and_prints_what_is_shown(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    if page.name == "jax.md":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_default_device", jax.devices("cpu")[0])  # where the page's arrays are
    for code, shown in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, page.name, "exec"), names)
        printed = capsys.readouterr().out
        assert printed.replace(bk.Device.cpu().arch().value, "x86_64") == shown
    assert isinstance(names["plan"], bk.Plan)


def test_the_first_result_takes_six_lines() -> None:
    assert sum(map(bool, python_blocks(ROOT / "README.md")[0].splitlines())) == 6


def test_the_excerpts_of_contributing_are_in_the_source() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (PACKAGE / "ops").rglob("*.py")]
    blocks = python_blocks(ROOT / "CONTRIBUTING.md")
    assert blocks
    for block in blocks:
        assert any(block in source for source in sources), f"no longer in the source:\n{block}"


def test_the_generated_parts_are_current(generate: Any) -> None:
    arch = bk.Device.cpu().arch().value
    pages = generate.pages()
    stale = [page.name for page, text in pages.items() if text.replace(arch, "x86_64") != page.read_text(encoding="utf-8")]
    assert not stale, "run `make docs`"
    assert ROOT / "README.md" in pages and ROOT / "docs" / "ops.md" in pages


def test_every_plan_is_described_on_a_linked_page_with_an_example(generate: Any) -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name, plans in generate.families().items():
        page = ROOT / "docs" / f"{name}.md"
        assert f"({page.name})" in index
        assert {plan.__name__.lower() for plan in plans} | {"formulas", "shapes", "at-the-edges", "example"} <= anchors(page)
        assert all(shown for _, shown in BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


# --- what the generated parts are derived from --------------------------------------------------------------------------------


def test_limits_are_found_by_asking(generate: Any) -> None:
    from generator import promises

    kernels = {kernel.name: kernel for kernel in bk.SoftmaxPlan.kernels}
    common = ["`input_shape`: a rank of at most 8", "`kind`: SOFTMAX or LOG_SOFTMAX"]
    assert promises.limits(bk.SoftmaxPlan, kernels["numba.softmax"]) == common
    columns = "`extent`: at most 4096 along an axis that is not the innermost (f32)"
    logs = "`element`: f32 or f64 for a log-softmax along the innermost axis (f16, bf16)"
    assert promises.limits(bk.SoftmaxPlan, kernels["aten.softmax"]) == [*common, columns, logs]
    never = dataclasses.replace(kernels["numba.softmax"], limits=(lambda descriptor: iter(()),))
    with pytest.raises(LookupError, match="no problem was found"):
        promises.limits(bk.SoftmaxPlan, never)


def test_bounds_are_those_of_the_checks(generate: Any) -> None:
    from generator import promises

    assert list(promises.bounds(bk.SoftmaxPlan).values()) == ["2e-6", "1e-13·√n", "6e-4", "4e-3"]
    assert list(promises.bounds(bk.SdpaBackwardPlan).values()) == ["4e-6", "1e-13·√n", "1.5e-3", "1e-2"]


def test_shapes_are_lists_of_extents_or_names(generate: Any) -> None:
    from generator.declared import derived, shape_text

    assert shape_text(bk.SdpaDescriptor, "k_shape") == "[batch_size, kv_heads, key_len, d_k]"
    assert shape_text(bk.SoftmaxDescriptor, "input_shape") == "input_shape"
    assert shape_text(bk.RMSNormDescriptor, "rms_shape") == "rms_shape"
    assert list(derived(bk.SdpaDescriptor, "kv_heads")) == ["- `kv_heads` = `num_heads if num_kv_heads is None else num_kv_heads`"]


def test_a_page_without_a_place_for_a_plan_is_refused(generate: Any) -> None:
    with pytest.raises(ValueError, match="SoftmaxPlan: begin"):
        generate.between("# A page", "SoftmaxPlan", "content")


def test_the_short_table_shows_the_first_rows_of_the_newest_run(generate: Any) -> None:
    from generator import performance

    def row(op: str, element: str, number: int, checked: bool = True, **ratios: float) -> Any:
        descriptor, time = {"element": element}, {"median": 0.001}
        times, errors = {"numba." + op: time}, [{"output": "y", "error": 0.0, "bound": 1e-6}] if checked else []
        return {"op": op, "problem": f"{element} {number}", "kernel": f"numba.{op}", "descriptor": descriptor, "times": times,
                "errors": errors, "floor": time, "share_of_floor": 1.0, "times_faster_than": ratios}  # fmt: skip

    machine = {"cpu": "a processor", "cores": 2, "versions": {}}
    ratios = {"PyTorch": 3.0, "JAX": 2.0, "aten.softmax": 1.5, "bare products": 0.5, "torch.compile": 1.2}
    new = machine | {"date": "2026-02", "remark": "Loud.", "rows": [
        row("softmax", "f32", 1, **ratios), row("softmax", "f32", 2), row("softmax", "bf16", 3)]}  # fmt: skip
    old = machine | {
        "date": "2026-01",
        "rows": [row("softmax", "f32", 0), *(row("softmax_backward", kind, 4) for kind in ("f32", "bf16"))],
    }
    unchecked = machine | {"date": "2026-03", "rows": [row("softmax", "f32", 5, checked=False)]}
    first = performance._most_telling("rms_norm", "cpu")
    shown = machine | {"date": "2026-01", "rows": [row("rms_norm", "f32", 6) | {"descriptor": first}]}
    special = machine | {"date": "2026-04", "rows": [row("rms_norm", "f32", 7)]}  # newer, and no problem of the showcase
    text = performance.short([old, shown, new, unchecked, special])
    assert [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| rms_norm")] == ["f32 6"]
    assert [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| softmax")] == ["f32 1", "bf16 3", "f32 4"]
    assert "| 1.20× | torch.compile | 2.00× | JAX |" in text and "softmax: Loud." in text


def test_the_first_rows_compare_like_with_like(generate: Any) -> None:
    from generator import performance

    runs = performance.records(ROOT / "bench" / "results")
    rows = performance.telling(runs).splitlines()[2:]
    assert len(rows) == len(performance.TELLING) == 6
    peers = {tuple(map(str.strip, row.split("|")))[1:3]: row.split("|")[-2].strip() for row in rows}
    assert peers["`softmax`", "softmax bf16 [4096,4096]"] == "PyTorch (into given memory)"
    assert peers["`softmax`", "softmax bf16 [32768,4096]"] == "Liger (allocates)"  # faster than all that write into given memory


def test_what_was_measured_again_counts_once(generate: Any) -> None:
    from generator import performance

    few, many = (bk.UnaryDescriptor(bk.UnaryKind.EXP, (count,), bk.ElementKind.F32).plain() for count in (4, 400))

    def run(share: float, *problems: Any, given: int = 8) -> Any:
        rows = [
            {"op": "unary", "kernel": "k", "descriptor": each, "share_of_floor": share, "bytes": given * each["shape"][0]}
            for each in problems
        ]
        return {"device": "cuda", "rows": rows}

    told = json.loads(performance.shares([run(0.5, few, many), run(0.7, few)]))
    assert told == {"cuda": {"k": [{"problem": few, "share": 0.7}, {"problem": many, "share": 0.5}]}}
    # The floor was once a copy of all that was given, where a copy of what is read is meant.
    told = json.loads(performance.shares([run(1.5, few, given=12)]))
    assert told == {"cuda": {"k": [{"problem": few, "share": 1.0}]}}
    told = json.loads(performance.shares([run(1.5, few, given=80_000)]))
    assert told["cuda"]["k"][0]["share"] == 0.00015  # and not 0, which no time would follow from


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
