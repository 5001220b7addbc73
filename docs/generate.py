"""Writes the generated parts of the docs: `make docs`."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from baracuda_kernels import cli
from baracuda_kernels.cli import ops
from generator import accuracy, autocast, deviations, elementwise, functions, homes, performance, picture, reference, stub
from generator.families import block, families
from generator.tables import between

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def main() -> None:
    for page, text in pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """Every page that has generated parts, as it should be now."""
    runs = performance.records(ROOT / "bench" / "results")
    parts = {
        ROOT / "README.md": {"performance": performance.telling(runs)},
        DOCS / "choices.md": {"explain": explained()},
        DOCS / "performance.md": {"performance": performance.short(runs)},
        DOCS / "reading_explain.md": {"explain": explained()},
        DOCS / "settings.md": {"preference": reference.preference()},
        DOCS / "functional.md": {"functions": functions.text()},
        DOCS / "pytorch.md": {"autocast": autocast.text()},
        DOCS / "bench.md": {"results": performance.long(runs)},
        DOCS / "deviations.md": {"deviations": deviations.text(), "missing": deviations.missing()},
        DOCS / "accuracy.md": {"accuracy": accuracy.text(DOCS / "accuracy")},
    }
    parts |= {DOCS / f"{name}.md": {plan.__name__: block(plan) for plan in plans} for name, plans in families().items()}
    parts[DOCS / "elementwise.md"]["rows"] = elementwise.rows()
    parts[DOCS / "coverage.md"] = {"coverage": elementwise.coverage(DOCS / "op_inventory.csv")}
    shares = {ROOT / "src" / "baracuda_kernels" / "core" / "cost" / "shares.json": performance.shares(runs)}
    package = ROOT / "src" / "baracuda_kernels"
    stubs = {package / "functional.pyi": stub.text(), package / "torch" / "functional.pyi": stub.text(tensors=True)}
    tables = {package / "ops" / "homes.py": homes.text()}
    pictures = {DOCS / "pictures" / "cuda.svg": picture.svg([run for run in runs if "gpu" in run and not run.get("survey")])}
    return (
        shares
        | stubs
        | tables
        | pictures
        | {DOCS / "ops.md": ops.markdown()}
        | {page: filled(page, contents) for page, contents in parts.items()}
    )


def filled(page: Path, parts: dict[str, str]) -> str:
    text = page.read_text(encoding="utf-8")
    for name, content in parts.items():
        text = between(text, name, content)
    return text


def explained() -> str:
    """A command and what it prints."""
    arguments = ["explain", "softmax_backward", "--shape", "64,1024", "--dtype", "bf16", "--no-times"]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        cli.main(arguments)
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    return "\n".join(["```console", f"$ baracuda-kernels {' '.join(arguments)}", *lines, "```", ""])


if __name__ == "__main__":
    main()
