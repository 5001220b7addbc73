"""The lowest versions that the package admits, as constraints for pip: `python tests/tools/lowest.py > lowest.txt`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lowest() -> Iterator[str]:
    """A line for each library that an op may run on."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for requirement in (*project["dependencies"], *extras["cuda"], *extras["jax"]):
        name, version = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()
        yield f"{name}=={version if '.' in version else version + '.0'}.*"


if __name__ == "__main__":
    print(*lowest(), sep="\n")
