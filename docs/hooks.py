"""What the site has beyond docs/: the API reference, and pages that lie elsewhere in the repository. mkdocs.yml names this file."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from generator import families, reference

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# Pages of the repository, each with its place on the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "bench/results/README.md": "bench_results.md",
}
FROM = {place: path for path, place in ELSEWHERE.items()}
# What stands in the navigation for pages that are found: those of the families of ops, and those of the reference, in a folder of its name.
FAMILIES, REFERENCE = "families", "api"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_ROW, _CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`]*`")

_pages = {f"{REFERENCE}/{name}.md": page for name, page in reference.pages(DOCS / "op_inventory.csv").items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages that are found take their places in the navigation."""
    found = {
        FAMILIES: [f"{name}.md" for name in families.families()],
        REFERENCE: [{title: path} for path, (title, _) in _pages.items()],
    }
    for sections in config.nav or []:
        for section, pages in sections.items():
            sections[section] = [page for each in pages for page in found.get(str(each), [each])]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, place in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    for path, (_, text) in _pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links are those of the repository: they lead to where its files lie on the site. What is not on it is named without a link."""
    here = page.file.src_uri
    source = FROM.get(here, f"docs/{here}")

    def place(target: str) -> str | None:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        found = ELSEWHERE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        return found and posixpath.relpath(found, posixpath.dirname(here) or ".")

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        at = place(target)
        return text if at is None else f"[{text}]({at}{anchor or ''})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_ROW.sub(_with_bars, _LINK.sub(link, part)) for part in parts[::2]]
    return "".join(parts)


def _with_bars(row: re.Match[str]) -> str:
    """In code within a table, GitHub wants a bar with a backslash, and Python's Markdown one without."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])
