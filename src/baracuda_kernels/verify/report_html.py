"""A run of `verify` as one page: the table, what did not hold, and how the errors are distributed. Needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from baracuda_kernels.verify.promises import BINS, PROMISES
from baracuda_kernels.verify.suite import Line, share_of_bound

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.ok { color: #2a8a4a; } .failed { color: #d03030; font-weight: bold; }
.errors { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; } figcaption { font-size: 13px; }
rect { fill: #4a7ebb; } text { fill: currentColor; font: 10px system-ui, sans-serif; text-anchor: middle; }
.wide { overflow-x: auto; }
code { background: #8882; padding: .1rem .3rem; }
"""
_HEADINGS = ("relative error", "of its bound", "worst ulp", "rms ulp")
_WIDTH, _HEIGHT, _FLOOR = 20, 90, 14  # of a bar, of the tallest, of the room for numbers below


def page(lines: list[Line], record: dict[str, Any]) -> str:
    failed = [result for line in lines for result in line.results if not result.held]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    said = "every promise was kept" if not failed else f"{len(failed)} promises were not kept"
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Numerical guarantees</title>',
        f"<style>{_STYLE}</style><h1>Numerical guarantees</h1>",
        f"<p>{escape(record['device'])}; {escape(versions)}; {escape(record['date'])}; depth {record['depth']}: {said}.</p>",
        *_table(lines),
        *_failures(failed),
        "<h2>What is checked</h2><dl>",
        *(f"<dt><b>{name}</b></dt><dd>{escape(promise.means)}</dd>" for name, promise in PROMISES.items()),
        "</dl><h2>Errors</h2><p>How many elements of all outputs are how far from the float64 reference, in units in the last place of",
        f" their element: up to {BINS[0]:g}, up to {BINS[1]:g}, ..., more than {BINS[-1]:g}.</p>",
        '<div class="errors">',
        *(_figure(line) for line in lines if line.errors),
        "</div><h2>By output</h2>",
        *_by_output(lines),
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _table(lines: list[Line]) -> Iterator[str]:
    checks = [name for name in PROMISES if any(line.verdict(name) is not None for line in lines)]
    headings = ("kernel", "element", *_HEADINGS, *checks)
    yield f'<div class="wide"><table>{_row("th", headings)}'
    for line in lines:
        verdicts = "".join(_verdict(line.verdict(check)) for check in checks)
        yield _row("td", (escape(line.kernel), line.element, *_numbers(line)), verdicts)
    yield "</table></div>"


def _row(tag: str, cells: Iterable[str], more: str = "") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}{more}</tr>"


def _numbers(line: Line) -> tuple[str, ...]:
    closest = line.closest
    if closest is None:
        return ("", "", "", "")
    return f"{closest.relative:.2e}", f"{share_of_bound(closest):.0%}", f"{line.worst_ulp:.3g}", f"{line.rms_ulp:.2g}"


def _by_output(lines: list[Line]) -> Iterator[str]:
    yield f'<div class="wide"><table>{_row("th", ("kernel", "element", "output", "its element", "bound", *_HEADINGS))}'
    for line in lines:
        for name, part in line.by_output().items():
            closest = part.closest
            assert closest is not None
            yield _row("td", (escape(line.kernel), line.element, name, closest.element, f"{closest.bound:.1e}", *_numbers(part)))
    yield "</table></div>"


def _verdict(held: bool | None) -> str:
    return {True: '<td class="ok">ok</td>', False: '<td class="failed">FAILED</td>', None: "<td></td>"}[held]


def _failures(failed: list[Any]) -> Iterator[str]:
    if failed:
        yield "<h2>Not kept</h2><ul>"
        for result in failed:
            yield f"<li>{escape(result.kernel)} {result.check}, {escape(str(result.problem))}<br>"
            yield f"{escape('; '.join(result.says[:3]))}<br><code>{escape(result.command)}</code></li>"
        yield "</ul>"


def _figure(line: Line) -> str:
    counts = line.histogram
    tallest, bars = max(counts, default=0) or 1, []
    for number, count in enumerate(counts):
        # Square roots, so that the few that are far off can be seen beside the many that are not.
        height = _HEIGHT * (count / tallest) ** 0.5
        bars.append(
            f'<rect x="{number * _WIDTH + 1}" y="{_HEIGHT - height:.1f}" width="{_WIDTH - 2}" height="{height:.1f}">'
            f"<title>{count} elements {_range(number)}</title></rect>"
        )
    marks = [
        f'<text x="{(number + 1) * _WIDTH}" y="{_HEIGHT + 11}">{edge:g}</text>'
        for number, edge in enumerate(BINS)
        if edge in (0.25, 1, 4, 16, 64)
    ]
    size = f"{len(counts) * _WIDTH} {_HEIGHT + _FLOOR}"
    return (
        f'<figure><svg viewBox="0 0 {size}" width="{len(counts) * _WIDTH}">{"".join(bars)}{"".join(marks)}</svg>'
        f"<figcaption>{escape(line.kernel)} {line.element}: {sum(counts)} elements</figcaption></figure>"
    )


def _range(number: int) -> str:
    if number == len(BINS):
        return f"more than {BINS[-1]:g} ulp off"
    return f"up to {BINS[number]:g} ulp off"
