"""Recorded runs as a picture: of every problem the share of the copy floor that ours and each peer reach, all in one run."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from baracuda_kernels.bench.report import USUAL_PEERS, machine, recorded_peers
from generator.performance import newest_rows

LEFT, WIDTH, BAR, GAP, TOP = 480, 460, 9, 10, 64  # pixels; the floor is WIDTH / 1.1 from the left edge of the bars
MOST = 1.1
COLOURS = ("#3b6fd4", "#e0912f", "#8a8f98", "#5aa469", "#b065b0", "#c8b23c")
FONT = 'font-family="system-ui, sans-serif"'


def svg(runs: list[dict[str, Any]]) -> str:
    rows = newest_rows(runs)
    names = list(dict.fromkeys(name for row in rows for name in recorded_peers(row)))
    peers = [name for name in USUAL_PEERS if name in names] + [name for name in names if name not in USUAL_PEERS]
    colours = dict(zip(["ours", *peers], COLOURS, strict=False))
    lines, y = [], TOP
    for row in rows:
        shares = {"ours": row["share_of_floor"]}
        shares |= {name: row["share_of_floor"] / ratio for name, ratio in recorded_peers(row).items() if name in colours}
        middle = y + BAR * len(shares) / 2 + 4
        lines.append(_text(LEFT - 8, middle, f"{row['op']}: {row['problem']}", "end", 11))
        for name, share in shares.items():
            length = WIDTH * min(share, MOST) / MOST
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" fill="{colours[name]}"/>')
            lines.append(_text(LEFT + length + 4, y + BAR - 1, f"{share:.0%}", "start", 9))
            y += BAR
        y += GAP
    floor = LEFT + WIDTH / MOST
    lines.append(f'<line x1="{floor:.1f}" y1="{TOP - 6}" x2="{floor:.1f}" y2="{y}" stroke="#444" stroke-dasharray="3 3"/>')
    lines.append(_text(floor, TOP - 10, "copy", "middle", 10))
    lines.append(_text(12, 20, "Share of the copy floor: time of a copy of as many bytes / time taken", "start", 14))
    for number, place in enumerate(dict.fromkeys(f"{machine(run)}; {run['date'][:10]}" for run in runs)):
        lines.append(_text(12, 36 + 12 * number, place, "start", 10))
    x = LEFT
    for name, colour in colours.items():
        lines.append(f'<rect x="{x}" y="{TOP - 20}" width="9" height="9" fill="{colour}"/>')
        lines.append(_text(x + 12, TOP - 12, name, "start", 10))
        x += 26 + 6 * len(name)
    height, width = y + 8, LEFT + WIDTH + 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {FONT}>{escape(text)}</text>'
