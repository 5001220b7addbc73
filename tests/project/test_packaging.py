"""What is published: one version everywhere, and archives with all that belongs in them and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.builders.plugin.interface import BuilderInterface
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import baracuda_kernels as bk

from lowest import lowest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


def files(builder: type[BuilderInterface]) -> set[str]:
    """Where files of the checkout come to lie in the archive."""
    return {Path(file.distribution_path).as_posix() for file in builder(str(ROOT)).recurse_included_files()}


def test_the_version_is_the_same_everywhere() -> None:
    declared = WheelBuilder(str(ROOT)).metadata.version
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    released = re.search(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert citation is not None and released is not None
    assert bk.__version__ == declared == citation[1] == released[1]


def test_the_wheel_is_the_package_and_nothing_else() -> None:
    wheel = files(WheelBuilder)
    assert wheel == {
        file.relative_to(SOURCE).as_posix()
        for file in (SOURCE / "baracuda_kernels").rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }
    assert {Path(file).name for file in wheel if not file.endswith((".py", ".pyi"))} == {"py.typed", "shares.json"}


def test_the_source_distribution_has_what_its_tests_and_docs_need() -> None:
    sdist = files(SdistBuilder)
    assert {f"src/{file}" for file in files(WheelBuilder)} < sdist
    assert {file.relative_to(ROOT).as_posix() for folder in ("docs", "tests") for file in (ROOT / folder).rglob("*.py")} < sdist
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "constraints.txt", "pyproject.toml"} < sdist
    assert {file.partition("/")[0] for file in sdist if "/" in file} == {"bench", "docs", "examples", "src", "tests"}


def test_the_metadata_is_valid_and_names_every_python_that_is_admitted() -> None:
    metadata = WheelBuilder(str(ROOT)).metadata
    metadata.validate_fields()  # classifiers among them
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(metadata.core.classifiers))
    assert [int(minor) for minor in named] == [11, 12, 13, 14] and metadata.core.requires_python == ">=3.11"
    assert {"cuda", "jax", "cupy", "docs", "test", "dev"} <= metadata.core.optional_dependencies.keys()


def test_the_lowest_versions_are_those_of_the_ranges() -> None:
    versions = list(lowest())
    ranges = {requirement.partition(">=")[0] for requirement in WheelBuilder(str(ROOT)).metadata.core.dependencies}
    assert {version.partition("==")[0] for version in versions} == ranges | {"triton", "jax"}
    assert {"torch==2.9.*", "jax==0.4.35.*", "rich==13.0.*"} < set(versions)
