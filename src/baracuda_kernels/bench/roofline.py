"""A roofline as an SVG: what each problem reached, against what the memory and the tensor cores allow at its intensity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape

from baracuda_kernels.bench.engine import PRODUCT, BenchRow
from baracuda_kernels.core.cost.copies import COPIES

__all__ = ["svg"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 520, 70, 270, 40, 60
COLOURS = ("#0b6e4f", "#c84c09", "#2f4b9c", "#8f2d56", "#a58a00", "#4d6a6d", "#7b4fb5", "#b3202c", "#118ab2", "#6b705c")
Point = tuple[float, float]


def svg(rows: Iterable[BenchRow]) -> str:
    """Ours as filled marks, the fastest peer as a ring, one colour for each op; one roof for all rows of a run."""
    timed = [row for row in rows if row.ours is not None and row.floor is not None and row.bytes and row.flops]
    if not timed:
        return _page(['<text x="20" y="30">Nothing was timed.</text>'])
    bandwidth = max(row.bytes / row.times[name].median for row in timed for name in COPIES if name in row.times)
    peak = max((row.flops / row.times[PRODUCT].median for row in timed if PRODUCT in row.times), default=None)
    scale = _Scale(timed, bandwidth, peak)
    colours = {op: COLOURS[number % len(COLOURS)] for number, op in enumerate(dict.fromkeys(row.op for row in timed))}
    parts = [*scale.axes(), *scale.roof(bandwidth, peak)]
    for row in timed:
        parts += _marks(row, scale, colours[row.op])
    parts += _legend(colours)
    return _page(parts)


class _Scale:
    """Both axes are logarithmic: operations per byte to the right, operations per second upwards."""

    def __init__(self, rows: list[BenchRow], bandwidth: float, peak: float | None) -> None:
        intensities = [row.flops / row.bytes for row in rows]
        reached = [row.flops / times.median for row in rows for times in row.times.values()]
        roofs = [bandwidth * max(intensities)] if peak is None else [peak]
        self.x = math.floor(math.log10(min(intensities))), math.ceil(math.log10(max(intensities)) + 0.01)
        self.y = math.floor(math.log10(min(reached))), math.ceil(math.log10(max([*reached, *roofs])))

    def at(self, intensity: float, rate: float) -> Point:
        across = (math.log10(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(rate) - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def axes(self) -> Iterator[str]:
        for power in range(self.x[0], self.x[1] + 1):
            x, _ = self.at(10.0**power, 10.0 ** self.y[0])
            yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" class="grid"/>'
            yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_power(power)}</text>'
        for power in range(self.y[0], self.y[1] + 1):
            _, y = self.at(10.0 ** self.x[0], 10.0**power)
            yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_rate(10.0**power)}</text>'
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 16}" text-anchor="middle">operations per byte</text>'
        yield f'<text x="{LEFT - 55}" y="{TOP - 16}">operations per second</text>'

    def roof(self, bandwidth: float, peak: float | None) -> Iterator[str]:
        lowest, highest = 10.0 ** self.x[0], 10.0 ** self.x[1]
        ridge = highest if peak is None else min(highest, peak / bandwidth)
        # Where the memory's line starts below the picture, it is drawn from the picture's edge on.
        start = max(lowest, 10.0 ** self.y[0] / bandwidth)
        corners = [self.at(start, bandwidth * start), self.at(ridge, bandwidth * ridge)]
        if peak is not None:
            corners.append(self.at(highest, peak))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        yield f'<polyline points="{path}" class="roof"><title>{bandwidth / 1e9:.0f} GB/s</title></polyline>'


def _marks(row: BenchRow, scale: _Scale, colour: str) -> Iterator[str]:
    assert row.ours is not None
    intensity = row.flops / row.bytes
    peers = {name: row.times[name].median for name in row.others()}
    if peers:
        name = min(peers, key=peers.__getitem__)
        x, y = scale.at(intensity, row.flops / peers[name])
        said = escape(f"{name}: {row.op} {row.problem}")
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="{colour}"><title>{said}</title></circle>'
    x, y = scale.at(intensity, row.flops / row.ours.median)
    share = "" if row.share_of_floor is None else f", {row.share_of_floor:.0%} of the floor"
    said = escape(f"{row.op} {row.problem}{share}")
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{said}</title></circle>'


def _legend(colours: dict[str, str]) -> Iterator[str]:
    x = WIDTH - RIGHT + 24
    for number, (op, colour) in enumerate(colours.items()):
        y = TOP + 12 + 20 * number
        yield f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"/><text x="{x + 12}" y="{y + 4}">{escape(op)}</text>'
    y = TOP + 30 + 20 * len(colours)
    yield f'<circle cx="{x}" cy="{y}" r="5" fill="none" stroke="#555"/><text x="{x + 12}" y="{y + 4}">the fastest of the others</text>'
    yield f'<line x1="{x - 6}" y1="{y + 20}" x2="{x + 6}" y2="{y + 20}" class="roof"/>'
    yield f'<text x="{x + 12}" y="{y + 24}">copy and product, measured</text>'


def _page(parts: Iterable[str]) -> str:
    style = "text{font:12px sans-serif;fill:#222}.grid{stroke:#e3e3e3}.roof{stroke:#333;stroke-width:2;fill:none}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
    return "\n".join([head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>", ""])


def _power(power: int) -> str:
    return f"{10.0**power:g}"


def _rate(rate: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:g} {unit}"
    return f"{rate:g}"
