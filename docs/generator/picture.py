"""Recorded runs as a picture: of every op the share of the copy floor that ours and each peer reach for its first problem, all in one run."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from baracuda_kernels.bench.report import USUAL_PEERS, machine, recorded_peers
from generator.performance import newest_rows

LEFT, WIDTH, BAR, GAP = 480, 460, 9, 10  # pixels; the floor is WIDTH / 1.1 from the left edge of the bars
LONGEST = 76  # letters of a problem that there is room for
MOST = 1.1
COLOURS = ("#3b6fd4", "#e0912f", "#8a8f98", "#5aa469", "#b065b0", "#c8b23c")
FONT = 'font-family="system-ui, sans-serif"'


def svg(runs: list[dict[str, Any]]) -> str:
    rows = list({row["op"]: row for row in reversed(newest_rows(runs))}.values())[::-1]
    names = list(dict.fromkeys(name for row in rows for name in recorded_peers(row)))
    peers = [name for name in USUAL_PEERS if name in names] + [name for name in names if name not in USUAL_PEERS]
    colours = dict(zip(["ours", *peers], COLOURS, strict=False))
    machines = dict.fromkeys(machine(run) for run in runs)
    top = 68 + 12 * len(machines)
    lines, y = [], top
    for row in rows:
        shares = {"ours": row["share_of_floor"]}
        shares |= {name: row["share_of_floor"] / ratio for name, ratio in recorded_peers(row).items() if name in colours}
        middle = y + BAR * len(shares) / 2 + 4
        label = f"{row['op']}: {row['problem']}"
        label = label if len(label) <= LONGEST else f"{label[:LONGEST]}…"
        lines.append(_text(LEFT - 8, middle, label, "end", 11))
        for name, share in shares.items():
            length = WIDTH * min(share, MOST) / MOST
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" fill="{colours[name]}"/>')
            lines.append(_text(LEFT + length + 4, y + BAR - 1, f"{share:.0%}", "start", 9))
            y += BAR
        y += GAP
    floor = LEFT + WIDTH / MOST
    lines.append(f'<line x1="{floor:.1f}" y1="{top - 6}" x2="{floor:.1f}" y2="{y}" stroke="#444" stroke-dasharray="3 3"/>')
    lines.append(_text(floor, top - 10, "copy", "middle", 10))
    lines.append(_text(12, 20, "Share of the copy floor: time of a copy of as many bytes / time taken", "start", 14))
    for number, place in enumerate(machines):
        lines.append(_text(12, 36 + 12 * number, place, "start", 10))
    x = 12
    for name, colour in colours.items():
        lines.append(f'<rect x="{x}" y="{top - 30}" width="9" height="9" fill="{colour}"/>')
        lines.append(_text(x + 12, top - 22, name, "start", 10))
        x += 26 + 6 * len(name)
    height, width = y + 8, LEFT + WIDTH + 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {FONT}>{escape(text)}</text>'
