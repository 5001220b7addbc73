"""Writes the generated parts of the docs: `make docs`."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

from baracuda_kernels import cli
from baracuda_kernels.bench.report import markdown
from baracuda_kernels.cli import ops

ROOT = Path(__file__).resolve().parent.parent
NO_RESULTS = "No run has been recorded yet: `make bench` measures this machine.\n"


def main() -> None:
    (ROOT / "docs" / "ops.md").write_text(ops.markdown(), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")


def filled(text: str) -> str:
    """The README with its generated parts as they should be now."""
    return between(between(text, "explain", explained()), "performance", performance())


def between(text: str, name: str, content: str) -> str:
    """What stands between the markers of this name is replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{content}\n{end}", text, flags=re.DOTALL)


def explained() -> str:
    """A command and what it prints."""
    arguments = ["explain", "softmax_backward", "--shape", "64,1024", "--dtype", "bf16"]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        cli.main(arguments)
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    return "\n".join(["```console", f"$ baracuda-kernels {' '.join(arguments)}", *lines, "```", ""])


def performance() -> str:
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "bench" / "results").glob("*.json")]
    # Each record is one run: only times within one are comparable.
    return "\n".join(markdown(record) for record in sorted(records, key=lambda record: record["date"])) or NO_RESULTS


if __name__ == "__main__":
    main()
